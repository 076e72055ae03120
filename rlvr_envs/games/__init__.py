"""Games as episodes of several turns: what makes an interaction, a verifier and rules of a game's moves."""

from rlvr_envs.games.game import Game, GameInteraction, GameVerifier, Move, game_rules

__all__ = ["Game", "GameInteraction", "GameVerifier", "Move", "game_rules"]
