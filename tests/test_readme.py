"""The README's example runs, its links lead somewhere, and what the lists of the documentation name exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import rlvr_envs
from agents import AGENTS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
DOCS = ROOT / "docs"


def test_the_examples_run(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in example.splitlines() if line.strip()]) <= 22
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", example],
        capture_output=True,
        text=True,
        timeout=600,  # ends a hang
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "correct"
    assert re.fullmatch(r"0\.\d{3} \[.*\] \(16 problems x 1\)", lines[-1])


def test_it_is_short() -> None:
    assert len(README.split()) <= 900


def test_every_environment_is_listed() -> None:
    page = (DOCS / "environments" / "index.md").read_text(encoding="utf-8")
    first_cells = re.findall(r"^\| (.*?) \|", page, re.MULTILINE)
    listed = set(re.findall(r"`(rlvr/\w+-v\d)`", " ".join(first_cells)))
    assert listed == set(rlvr_envs.ENVIRONMENTS)


def test_every_agent_is_listed() -> None:
    page = (DOCS / "algorithms" / "index.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"# Algorithms\n\n(.*?)\n\n", page, re.DOTALL)
    first_cells = [line.split("|")[1] for line in table.splitlines()]
    assert set(re.findall(r"`([^`]+)`", " ".join(first_cells))) == set(AGENTS)


def test_the_table_of_checks_lists_the_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lines = re.findall(
        r"^\.PHONY: (.*?)(?: \$\(.*\))?$", makefile, re.MULTILINE
    )  # targets that are computed are not listed
    declared = " ".join(lines).split()
    (table,) = re.findall(r"## The checks\n\n(.*?)\n\n", GUIDE, re.DOTALL)
    listed = re.findall(r"^\| `make ([\w-]+)` ", table, re.MULTILINE)
    assert sorted(listed) == sorted(target for target in declared if re.fullmatch(r"test(-[\w-]+)?", target))
    for text in (README, GUIDE):
        assert set(re.findall(r"make ([a-z][\w-]+)(?=`|  )", text)) <= set(declared)


def test_every_file_of_the_tree_exists() -> None:
    (tree,) = re.findall(r"## The map\n\n```\n(.*?)```", GUIDE, re.DOTALL)
    folders: list[Path] = []
    for line in tree.splitlines():
        depth = min((len(line) - len(line.lstrip())) // 2, len(folders))
        names = re.findall(r"(?<![\w.])([\w]+(?:\.py|/))(?=\s|;|,|$)", line)
        inside = folders[depth - 1] if depth else ROOT
        for name in names:
            assert (ROOT / name).exists() or (inside / name).exists(), name
        if names and names[0].endswith("/") and line.lstrip().startswith(names[0]):
            folders = [*folders[:depth], inside / names[0]]
