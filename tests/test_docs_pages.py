"""Pages name what is there: links, environments, algorithms, options and agents, without Sphinx."""

from __future__ import annotations

import ast
import inspect
import os
import pkgutil
import re
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

from agents import AGENTS
from rlvr_envs import ENVIRONMENTS
from rlvr_envs.tasks import BENCHMARKS
from tests.docs import DOCS, PAGES, ROOT, blocks, extension, name_of

COMMANDS_PAGE = DOCS / "command-line.md"
LINK = re.compile(r"(?<!`)\]\((?!https?:)([^)\s#]*)(?:#([\w-]+))?\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:\$ )?rlvr (\S+)((?: .*)?)$", re.MULTILINE)


def entries(page: Path) -> list[Path]:
    """The pages that a page's toctrees name."""
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    names = [line for block in trees for line in block.splitlines() if line and not line.startswith(":")]
    paths = [Path(os.path.normpath(page.parent / name)) for name in names]
    return [path.with_suffix(".ipynb" if path.with_suffix(".ipynb").is_file() else ".md") for path in paths]


def anchors(path: Path) -> set[str]:
    """What GitHub and MyST call a page's headings."""
    text = CODE.sub(lambda code: "" if code[0].startswith("```") else code[0], path.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_every_page_is_in_the_tree_once() -> None:
    listed = [entry for page in PAGES for entry in entries(page)]
    assert len(listed) == len(set(listed))
    reached, waiting = set(), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        assert page.is_file(), page
        reached.add(page)
        waiting += entries(page)
    assert reached == {*PAGES, *DOCS.glob("course/*.ipynb")}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for path, anchor in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        target = Path(os.path.normpath(page.parent / path)) if path else page
        assert target.exists(), path
        assert target.is_relative_to(ROOT)
        assert not anchor or anchor in anchors(target), (path, anchor)


def _read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_generated_parts_have_an_end_and_are_up_to_date(page: Path) -> None:
    pytest.importorskip("torch")
    text, generated = _read(page), extension("generated")
    starts = len(re.findall(generated.START, text, re.MULTILINE))
    assert starts == len(generated.MARKER.findall(text)) == text.count("<!-- end -->")
    assert not starts or generated.fill(text) == text, "run: .venv/bin/python docs/_ext/generated.py"


GAMES_OF_OTHERS = ("rlvr/TextArena-v0", "rlvr/GEM-v0")
"""Environments whose prompts are texts of other packages, which their pages do not repeat."""


def test_every_environment_has_a_page_with_its_docstring_and_problems() -> None:
    for env_id in ENVIRONMENTS:
        name = env_id.removeprefix("rlvr/").removesuffix("-v0")
        text = _read(DOCS / "environments" / f"{name.lower()}.md")
        assert f"`{env_id}`" in text
        for part in ("## Description", "## Reward", "## Arguments"):
            assert part in text, (env_id, part)
        if env_id in GAMES_OF_OTHERS:
            continue
        assert "Prompt:\n\n````" in text, env_id
        assert "Gold completion:\n\n````" in text or "no gold completion" in text, env_id


def test_a_benchmark_without_a_page_gets_one_that_is_up_to_date() -> None:
    pytest.importorskip("torch")
    generated = extension("generated")
    for name in sorted(BENCHMARKS.keys() - {"MBPP"}):  # the row of MBPP is not of its default split
        page = generated.new_page(name)
        assert page.startswith(f"# {name}\n\n`rlvr/{name}-v0`\n")
        assert "## Description" in page
        assert "Prompt:\n\n````" in page
        assert ("Gold completion:\n\n````" in page) != ("There is no gold completion." in page), name
        assert generated.fill(page) == page


@pytest.mark.parametrize("name", AGENTS)
def test_every_algorithm_has_a_page(name: str) -> None:
    text = _read(DOCS / "algorithms" / f"{name.replace('++', '-plus-plus')}.md")
    assert "$$" in text
    assert "arXiv" in text or "Williams 1992" in text or "Kakade 2001" in text or "Sutton" in text
    assert "reward of sampled completions, after training | 0." in text
    settings = re.findall(r"^\| `(\w+)` \| `.+` \| (.*) \|$", text, re.MULTILINE)
    assert settings
    assert all(meaning for _, meaning in settings), settings


def test_every_command_has_its_options_on_the_page() -> None:
    from agents.commands.main import COMMANDS as ENTRIES

    text = _read(COMMANDS_PAGE)
    assert re.findall(r"^<!-- options: (\S+) -->$", text, re.MULTILINE) == list(ENTRIES)
    assert "| `--pass-at` |  | Numbers k for which to report pass@k" in text
    assert len(re.findall(r"^\| `--learning-rate` \|", text, re.MULTILINE)) == 2, "those of sft and train-rm"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_have_the_options_that_a_page_gives_them(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = page.read_text(encoding="utf-8")
    fences = "".join(re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    for command, rest in COMMAND.findall(fences):
        options = set(re.findall(r"(?<= )--([a-z-]+)", rest))
        own = command == "train" and ":" in rest.split()[0]
        subcommand = ["grpo"] if own else rest.split()[:1] if command in ("train", "data") else []
        known = help_of(capsys, command, *subcommand)
        assert options <= known, (command, options - known)


def help_of(capsys: pytest.CaptureFixture[str], *command: str) -> set[str]:
    pytest.importorskip("torch")
    from agents.commands.main import main

    with pytest.raises(SystemExit) as ended:
        main([*command, "--help"])
    assert ended.value.code == 0, command
    return set(re.findall(r"--([a-z-]+)", capsys.readouterr().out)) | {"help"}


AGENTS_PAGE = (DOCS / "agents.md").read_text(encoding="utf-8")
AGENT_ROW = re.compile(r"^\| `([\w+-]+)` \| (.*) \| (.*) \| `(sequence-mean[\w-]*|token-mean)` \|(.*)\|$", re.MULTILINE)
ROWS = {name: parts for name, *parts in AGENT_ROW.findall(AGENTS_PAGE)}


def test_ten_lines_make_an_agent() -> None:
    example = blocks(ROOT / "docs" / "how-to" / "agent.md", "python")[0][1]
    agent = re.search(r"class DualClipOPO.*?(?=\n\n\n)", example, re.DOTALL)
    assert len([line for line in agent.group().splitlines() if line.strip()]) <= 10


def test_every_agent_is_in_the_table() -> None:
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
    table = AGENTS_PAGE.partition("`tests/trl/test_differences.py`:")[2]
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

    steps = ppo.__doc__.partition("One training step")[2].partition("Departures")[0]
    names = re.findall(r"\b(?:[a-z]\w+\.)\w+(?:\.\w+)*", steps)
    assert len(names) == 15
    assert all(callable(pkgutil.resolve_name(f"agents.{name}")) for name in names)
