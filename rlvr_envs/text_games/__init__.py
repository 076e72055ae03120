"""The games of TextArena and GEM as episodes of several turns, each played in the sandbox."""

from rlvr_envs.text_games.dataset import TextGameDataset, text_game_rules
from rlvr_envs.text_games.library import GEM, TEXTARENA, Library, TextGame
from rlvr_envs.text_games.play import TextGameVerifier, play

__all__ = [
    "GEM",
    "TEXTARENA",
    "Library",
    "TextGame",
    "TextGameDataset",
    "TextGameVerifier",
    "play",
    "text_game_rules",
]
