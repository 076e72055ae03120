"""The environments that have an id, one file each: its data set, the prompt that goes with it, and its class, in this order.

What several of them share is below: `data` (published rows), `procedural` (generated problems), `worlds`, `prompts`, and
`envs`, which makes an environment of a `TaskSpec`. Those import nothing from here, so that imports run one way; `registration`
stands above and gives the classes their ids.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rlvr_envs.data import ProblemDataset, Source
from rlvr_envs.envs import StateEnv, TaskEnv
from rlvr_envs.procedural import ProceduralDataset
from rlvr_envs.tasks import (
    aime24,
    aime25,
    aime26,
    amc23,
    apps,
    codecontests,
    dapo_math_17k,
    deepcoder,
    deepscaler,
    gpqa,
    gsm8k,
    hmmt25,
    humaneval,
    ifbench,
    ifeval,
    json_schema,
    livecodebench,
    math,
    math500,
    mbpp,
    mmlu_pro,
    numina_math,
    olympiadbench,
    omni_math,
    polaris,
    sql,
    supergpqa,
    taco,
)
from rlvr_envs.tasks.addition import Addition, AdditionEnv
from rlvr_envs.tasks.arithmetic import Arithmetic, ArithmeticEnv
from rlvr_envs.tasks.bandit import Bandit, BanditEnv, BanditStateEnv
from rlvr_envs.tasks.blackjack import Blackjack, BlackjackEnv
from rlvr_envs.tasks.blackjack_hand import BlackjackHand, BlackjackHandEnv, BlackjackHandStateEnv
from rlvr_envs.tasks.cliff_walk import CliffWalk, CliffWalkEnv, CliffWalkStateEnv
from rlvr_envs.tasks.connect_four import ConnectFour, ConnectFourEnv
from rlvr_envs.tasks.contextual_bandit import ContextualBandit, ContextualBanditEnv, ContextualBanditStateEnv
from rlvr_envs.tasks.countdown import Countdown, CountdownEnv
from rlvr_envs.tasks.frozen_lake import FrozenLake, FrozenLakeEnv, FrozenLakeStateEnv
from rlvr_envs.tasks.function import Function, FunctionEnv
from rlvr_envs.tasks.gem import GEMEnv, GEMGames
from rlvr_envs.tasks.gridworld import GridWorld, GridWorldEnv, GridWorldStateEnv
from rlvr_envs.tasks.guess_number import GuessNumber, GuessNumberEnv
from rlvr_envs.tasks.hangman import Hangman, HangmanEnv
from rlvr_envs.tasks.instructions import Instructions, InstructionsEnv
from rlvr_envs.tasks.linear_equation import LinearEquation, LinearEquationEnv
from rlvr_envs.tasks.mastermind import Mastermind, MastermindEnv
from rlvr_envs.tasks.maze import Maze, MazeEnv, MazeStateEnv
from rlvr_envs.tasks.polynomial import Polynomial, PolynomialEnv
from rlvr_envs.tasks.reasoning_gym import ReasoningGym, ReasoningGymEnv
from rlvr_envs.tasks.reverse import Reverse, ReverseEnv
from rlvr_envs.tasks.sort import Sort, SortEnv
from rlvr_envs.tasks.text import TextEnv
from rlvr_envs.tasks.textarena import TextArena, TextArenaEnv
from rlvr_envs.tasks.tic_tac_toe import TicTacToe, TicTacToeEnv
from rlvr_envs.tasks.twenty_questions import TwentyQuestions, TwentyQuestionsEnv
from rlvr_envs.tasks.wordle import Wordle, WordleEnv
from verifiers import unknown_name

CLASSES: tuple[type[TaskEnv], ...] = (
    gsm8k.GSM8KEnv,
    math.MATHEnv,
    math500.MATH500Env,
    aime24.AIME24Env,
    aime25.AIME25Env,
    aime26.AIME26Env,
    amc23.AMC23Env,
    hmmt25.HMMT25Env,
    omni_math.OmniMATHEnv,
    olympiadbench.OlympiadBenchEnv,
    dapo_math_17k.DAPOMath17kEnv,
    deepscaler.DeepScaleREnv,
    polaris.PolarisEnv,
    numina_math.NuminaMathEnv,
    gpqa.GPQAEnv,
    mmlu_pro.MMLUProEnv,
    supergpqa.SuperGPQAEnv,
    ifeval.IFEvalEnv,
    ifbench.IFBenchEnv,
    json_schema.JSONSchemaEnv,
    sql.SQLEnv,
    humaneval.HumanEvalEnv,
    mbpp.MBPPEnv,
    livecodebench.LiveCodeBenchEnv,
    apps.APPSEnv,
    taco.TACOEnv,
    codecontests.CodeContestsEnv,
    deepcoder.DeepCoderEnv,
    AdditionEnv,
    ArithmeticEnv,
    CountdownEnv,
    SortEnv,
    ReverseEnv,
    GuessNumberEnv,
    MastermindEnv,
    WordleEnv,
    HangmanEnv,
    TwentyQuestionsEnv,
    BlackjackEnv,
    TicTacToeEnv,
    ConnectFourEnv,
    LinearEquationEnv,
    PolynomialEnv,
    FunctionEnv,
    InstructionsEnv,
    ReasoningGymEnv,
    TextArenaEnv,
    GEMEnv,
    GridWorldEnv,
    MazeEnv,
    BanditEnv,
    ContextualBanditEnv,
    CliffWalkEnv,
    FrozenLakeEnv,
    BlackjackHandEnv,
    TextEnv,
)
"""The class of every id: that of `rlvr/GSM8K-v0` is `GSM8KEnv`."""

STATE_CLASSES: tuple[type[StateEnv], ...] = (
    GridWorldStateEnv,
    MazeStateEnv,
    BanditStateEnv,
    ContextualBanditStateEnv,
    CliffWalkStateEnv,
    FrozenLakeStateEnv,
    BlackjackHandStateEnv,
)
"""The class of every id of a plain Gymnasium environment: that of `rlvr/MazeState-v0` is `MazeStateEnv`."""

_COMPETITIONS = (gsm8k, math, math500, aime24, aime25, aime26, amc23, hmmt25, omni_math, olympiadbench)
_MATH = (*_COMPETITIONS, dapo_math_17k, deepscaler, polaris, numina_math)
_PROGRAMS = (humaneval, mbpp, livecodebench, apps, taco, codecontests, deepcoder)
_SOURCES = (*_MATH, gpqa, mmlu_pro, supergpqa, ifeval, ifbench, json_schema, sql, *_PROGRAMS)
SOURCES: Mapping[str, Source] = MappingProxyType({module.SOURCE.name: module.SOURCE for module in _SOURCES})
"""Where the rows of each benchmark come from, by its name."""

_FAMILIES = (Addition, Arithmetic, Countdown, Sort, Reverse, LinearEquation, Polynomial, Function)
FAMILIES: Mapping[str, type[ProceduralDataset[Any]]] = MappingProxyType({family.name: family for family in _FAMILIES})
"""The families of generated problems, by name."""


def load(name: str, split: str, *, data_dir: str | os.PathLike[str] | None = None) -> ProblemDataset:
    """Load the problems of a benchmark by its name.

    Args:
        name: A key of `SOURCES`, such as `"gsm8k"`.
        split: One of its splits.
        data_dir: As for `Source.load`, which also lists the other errors.

    Raises:
        UnknownNameError: If there is no such benchmark or split.
    """
    if name not in SOURCES:
        raise unknown_name("data set", name, SOURCES)
    return SOURCES[name].load(split, data_dir=data_dir)


__all__ = [
    "CLASSES",
    "FAMILIES",
    "SOURCES",
    "STATE_CLASSES",
    "Addition",
    "Arithmetic",
    "Bandit",
    "Blackjack",
    "BlackjackHand",
    "CliffWalk",
    "ConnectFour",
    "ContextualBandit",
    "Countdown",
    "FrozenLake",
    "Function",
    "GEMGames",
    "GridWorld",
    "GuessNumber",
    "Hangman",
    "Instructions",
    "LinearEquation",
    "Mastermind",
    "Maze",
    "Polynomial",
    "ReasoningGym",
    "Reverse",
    "Sort",
    "TextArena",
    "TicTacToe",
    "TwentyQuestions",
    "Wordle",
    "load",
]
