"""The table of agents in docs/agents.md is that of the code."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable
from dataclasses import fields
from types import ModuleType

import pytest

from tests.docs import ROOT, blocks

DOCS = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
AGENT_ROW = re.compile(r"^\| `([\w+-]+)` \| (.*) \| (.*) \| `(sequence-mean[\w-]*|token-mean)` \|(.*)\|$", re.MULTILINE)
ROWS = {name: parts for name, *parts in AGENT_ROW.findall(DOCS)}


def test_ten_lines_make_an_agent() -> None:
    example = blocks(ROOT / "docs" / "how-to" / "agent.md", "python")[0][1]
    agent = re.search(r"class DualClipOPO.*?(?=\n\n\n)", example, re.DOTALL)
    assert agent is not None
    assert len([line for line in agent.group().splitlines() if line.strip()]) <= 10


def test_every_agent_is_in_the_table() -> None:
    from agents import AGENTS

    assert list(ROWS) == list(AGENTS)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_says_what_the_code_does(name: str) -> None:
    pytest.importorskip("torch")
    from agents import advantages, agent_classes, losses

    advantage, loss, aggregation, knobs = ROWS[name]
    cls, config = agent_classes(name)
    fields = inspect.signature(config).parameters
    assert fields["aggregation"].default == aggregation
    settings = re.findall(r"`(\w+)`", knobs.replace("`weighted_sum`", "").replace("`npg`", ""))
    assert set(settings) <= set(fields)
    modules = [sys.modules[base.__module__] for base in cls.__mro__ if base.__module__.startswith("agents.")]
    for text, home in ((advantage, advantages), (loss, losses)):
        for function in re.findall(r"`(\w+)`", text):
            assert any(_uses(module, getattr(home, function)) for module in modules)


def _uses(module: ModuleType, function: Callable[..., object]) -> bool:
    """Whether a module imports a function, or imports from a module of ours that does."""
    objects = list(vars(module).values())
    sources = {sys.modules.get(getattr(value, "__module__", "")) for value in objects if callable(value)}
    ours = [source for source in sources if source is not None and source.__name__.startswith("agents.")]
    return function in objects or any(
        function in vars(source).values() for source in ours if source.__name__ != function.__module__
    )


def test_every_difference_from_trl_is_documented_and_tested() -> None:
    """Without TRL: its tests are read, not imported."""
    module = ast.parse((ROOT / "tests" / "trl" / "test_differences.py").read_text(encoding="utf-8"))
    tests = [node.name for node in module.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    table = DOCS.partition("`tests/trl/test_differences.py`:")[2]
    rows = re.findall(r"^\| ([^|]+?) \| .* \|$", table, re.MULTILINE)[1:]  # below the head
    names = [re.sub(r"\W+", "_", re.sub(r"[.']", "", row.lower())) for row in rows]
    assert [f"test_{name}" for name in names] == tests


def test_every_switch_of_the_page_on_speed_is_one() -> None:
    pytest.importorskip("torch")
    from agents import LearnerConfig, PolicyConfig
    from agents.commands.train_options import TrainOptions
    from rlvr_envs import Rules

    page = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    switches = {*re.findall(r"^\| .* \| .* \| .*`(\w+)` \|$", page, re.MULTILINE)}
    assert {"shared_prefix", "checkpointing", "skip_zero_advantages", "max_cached_tokens"} <= switches
    policy, learner, rules, command = (
        {field.name for field in fields(config)} for config in (PolicyConfig, LearnerConfig, Rules, TrainOptions)
    )
    assert switches <= policy | learner | rules
    assert switches & policy <= command


def test_the_steps_of_ppo_name_what_does_them() -> None:
    pytest.importorskip("torch")
    from agents.algorithms import ppo

    assert ppo.__doc__ is not None
    steps = ppo.__doc__.partition("One training step")[2].partition("Departures")[0]
    names = re.findall(r"\b(?:[a-z]\w+\.)\w+(?:\.\w+)*", steps)
    assert len(names) == 15
    assert all(callable(pkgutil.resolve_name(f"agents.{name}")) for name in names)
