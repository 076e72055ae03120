"""The games of TextArena and GEM as episodes of several turns, each played in the sandbox."""

from rlvr_envs.text_games.dataset import TextGameDataset, text_game_rules
from rlvr_envs.text_games.library import GEM, TEXTARENA, Library, TextGame
from rlvr_envs.text_games.play import GameMessage, TextGameVerifier, play
from rlvr_envs.text_games.two_players import OPPONENTS, RandomMoves, TextGameInteraction, TextOpponent, TextSeat

__all__ = [
    "GEM",
    "OPPONENTS",
    "TEXTARENA",
    "GameMessage",
    "Library",
    "RandomMoves",
    "TextGame",
    "TextGameDataset",
    "TextGameInteraction",
    "TextGameVerifier",
    "TextOpponent",
    "TextSeat",
    "play",
    "text_game_rules",
]
