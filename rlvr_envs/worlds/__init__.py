"""Small worlds of cells, walls, four moves and a goal. `rlvr_envs.exact` computes their values exactly."""

from rlvr_envs.worlds.drawing import draw, read_drawing
from rlvr_envs.worlds.process import Branch, Process, world_process
from rlvr_envs.worlds.rules import (
    Walk,
    WalkVerifier,
    move_tokens,
    step_reward,
    world_of,
    world_rules,
)
from rlvr_envs.worlds.world import MOVES, Cell, World

__all__ = [
    "MOVES",
    "Branch",
    "Cell",
    "Process",
    "Walk",
    "WalkVerifier",
    "World",
    "draw",
    "move_tokens",
    "read_drawing",
    "step_reward",
    "world_of",
    "world_process",
    "world_rules",
]
