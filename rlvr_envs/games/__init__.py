"""Games as episodes of several turns. A game is a function, from which an interaction, a verifier and rules are made."""

from rlvr_envs.games.game import Game, GameInteraction, GameVerifier, Move, game_rules
from rlvr_envs.games.in_a_row import InARow
from rlvr_envs.games.in_a_row_data import InARowDataset, in_a_row_rules
from rlvr_envs.games.two_sided import OPPONENTS, Opponent, Seat, Start, TwoSidedInteraction, TwoSidedVerifier, told
from rlvr_envs.games.words import WORDS, SecretWord, WordDataset

__all__ = [
    "OPPONENTS",
    "WORDS",
    "Game",
    "GameInteraction",
    "GameVerifier",
    "InARow",
    "InARowDataset",
    "Move",
    "Opponent",
    "Seat",
    "SecretWord",
    "Start",
    "TwoSidedInteraction",
    "TwoSidedVerifier",
    "WordDataset",
    "game_rules",
    "in_a_row_rules",
    "told",
]
