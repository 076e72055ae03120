"""The README's example runs, and what it lists exists."""

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


def test_the_examples_run(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    example, own_agent = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in example.splitlines() if line.strip()]) <= 22
    example += own_agent + "print('steps', agent.steps)\n"
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
    assert re.fullmatch(r"0\.\d{3} \[.*\] \(16 problems x 1\)", lines[-2])
    assert lines[-1] == "steps 1"


def test_every_environment_is_listed() -> None:
    listed = set(re.findall(r"`(rlvr/\w+-v\d)`", README))
    assert listed == set(rlvr_envs.ENVIRONMENTS)


def test_every_agent_is_listed() -> None:
    (table,) = re.findall(r"## Agents\n\n(.*?)\n\n", README, re.DOTALL)
    first_cells = [line.split("|")[1] for line in table.splitlines()]
    assert set(re.findall(r"`([^`]+)`", " ".join(first_cells))) == set(AGENTS)


def test_the_table_of_checks_lists_the_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lines = re.findall(
        r"^\.PHONY: (.*?)(?: \$\(.*\))?$", makefile, re.MULTILINE
    )  # targets that are computed are not listed
    declared = " ".join(lines).split()
    (table,) = re.findall(r"## Checks\n\n(.*?)\n\n", README, re.DOTALL)
    listed = re.findall(r"^\| `make ([\w-]+)` ", table, re.MULTILINE)
    assert sorted(listed) == sorted(target for target in declared if re.fullmatch(r"test(-\w+)?", target))
    assert set(re.findall(r"make ([a-z][\w-]+)(?=`|  )", README)) <= set(declared)


def test_every_file_of_the_tree_exists() -> None:
    (tree,) = re.findall(r"## The files\n\n```\n(.*?)```", README, re.DOTALL)
    folders: list[Path] = []
    for line in tree.splitlines():
        depth = min((len(line) - len(line.lstrip())) // 2, len(folders))
        names = re.findall(r"(?<![\w.])([\w]+(?:\.py|/))(?=\s|;|,|$)", line)
        inside = folders[depth - 1] if depth else ROOT
        for name in names:
            assert (ROOT / name).exists() or (inside / name).exists(), name
        if names and names[0].endswith("/") and line.lstrip().startswith(names[0]):
            folders = [*folders[:depth], inside / names[0]]
