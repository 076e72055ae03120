"""Every page is in the tree, links lead somewhere, and every environment, algorithm and option named is one. Without Sphinx."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from agents import AGENTS
from rlvr_envs import ENVIRONMENTS
from rlvr_envs.tasks import BENCHMARKS
from tests.docs import DOCS, PAGES, ROOT, extension, name_of

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
