"""The environments with an id of this package.

Environments of published problems are rows of tables in this folder, such as `mathematics.toml`; `benchmarks` makes classes
from these rows. Any other environment has a file with its data set, its prompt and its class, in this order.

The code that environments share is in `data` (published rows), `procedural` (generated problems), `worlds`, `prompts`, and
`envs`, which makes an environment from a `TaskSpec`. These packages import nothing from `tasks`, so that imports run one way;
`registration` imports from `tasks` and gives the classes their ids. A module is imported when one of its classes is first used.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from verifiers import lazy_face

if TYPE_CHECKING:
    from rlvr_envs.tasks.addition import Addition as Addition
    from rlvr_envs.tasks.arithmetic import Arithmetic as Arithmetic
    from rlvr_envs.tasks.bandit import Bandit as Bandit
    from rlvr_envs.tasks.blackjack import Blackjack as Blackjack
    from rlvr_envs.tasks.blackjack_hand import BlackjackHand as BlackjackHand
    from rlvr_envs.tasks.cliff_walk import CliffWalk as CliffWalk
    from rlvr_envs.tasks.connect_four import ConnectFour as ConnectFour
    from rlvr_envs.tasks.contextual_bandit import ContextualBandit as ContextualBandit
    from rlvr_envs.tasks.countdown import Countdown as Countdown
    from rlvr_envs.tasks.frozen_lake import FrozenLake as FrozenLake
    from rlvr_envs.tasks.function import Function as Function
    from rlvr_envs.tasks.gem import GEMGames as GEMGames
    from rlvr_envs.tasks.gridworld import GridWorld as GridWorld
    from rlvr_envs.tasks.guess_number import GuessNumber as GuessNumber
    from rlvr_envs.tasks.hangman import Hangman as Hangman
    from rlvr_envs.tasks.instructions import Instructions as Instructions
    from rlvr_envs.tasks.linear_equation import LinearEquation as LinearEquation
    from rlvr_envs.tasks.mastermind import Mastermind as Mastermind
    from rlvr_envs.tasks.maze import Maze as Maze
    from rlvr_envs.tasks.polynomial import Polynomial as Polynomial
    from rlvr_envs.tasks.reasoning_gym import ReasoningGym as ReasoningGym
    from rlvr_envs.tasks.reverse import Reverse as Reverse
    from rlvr_envs.tasks.sort import Sort as Sort
    from rlvr_envs.tasks.tables import CLASSES as CLASSES, SOURCES as SOURCES, load as load
    from rlvr_envs.tasks.textarena import TextArena as TextArena
    from rlvr_envs.tasks.tic_tac_toe import TicTacToe as TicTacToe
    from rlvr_envs.tasks.twenty_questions import TwentyQuestions as TwentyQuestions
    from rlvr_envs.tasks.wordle import Wordle as Wordle

_KINDS = ("mathematics", "choice", "other", "programs")
BENCHMARKS = {
    name: kind
    for kind in _KINDS
    for name in re.findall(r"^\[(\w+)\]$", (Path(__file__).parent / f"{kind}.toml").read_text("utf-8"), re.MULTILINE)
}
"""The table of each environment of published problems: `rlvr/GSM8K-v0` is the row `[GSM8K]` of `mathematics.toml`.

Only the names of rows are read here, since this code delays every import of `rlvr_envs`.
"""
MADE = {
    "Addition": "addition",
    "Arithmetic": "arithmetic",
    "Countdown": "countdown",
    "Sort": "sort",
    "Reverse": "reverse",
    "GuessNumber": "guess_number",
    "Mastermind": "mastermind",
    "Wordle": "wordle",
    "Hangman": "hangman",
    "TwentyQuestions": "twenty_questions",
    "Blackjack": "blackjack",
    "TicTacToe": "tic_tac_toe",
    "ConnectFour": "connect_four",
    "LinearEquation": "linear_equation",
    "Polynomial": "polynomial",
    "Function": "function",
    "Instructions": "instructions",
    "ReasoningGym": "reasoning_gym",
    "TextArena": "textarena",
    "GEM": "gem",
    "GridWorld": "gridworld",
    "Maze": "maze",
    "Bandit": "bandit",
    "ContextualBandit": "contextual_bandit",
    "CliffWalk": "cliff_walk",
    "FrozenLake": "frozen_lake",
    "BlackjackHand": "blackjack_hand",
    "Text": "text",
}
"""The modules of environments whose problems are generated, or come from another library or from the user."""
WITH_STATES = ("GridWorld", "Maze", "Bandit", "ContextualBandit", "CliffWalk", "FrozenLake", "BlackjackHand")
"""Environments that also have a plain version with numbered states, such as `rlvr/MazeState-v0`, the class `MazeStateEnv` in
the module `maze`."""

__getattr__, __dir__, __all__ = lazy_face(__name__)
