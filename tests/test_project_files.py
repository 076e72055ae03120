"""What users, contributors and robots are told holds: the example runs, lists are complete, paths and commands exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import rlvr_envs
from agents import AGENTS

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def read(path: str) -> Any:
    return pytest.importorskip("yaml").safe_load((ROOT / path).read_text(encoding="utf-8"))


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make as a user does, also where make has started these tests."""
    own = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return subprocess.run(["make", *arguments], cwd=ROOT, env=own, capture_output=True, text=True, check=False)


def test_the_workflow_runs_the_two_commands_and_every_supported_version() -> None:
    jobs = read(".github/workflows/test.yml")["jobs"]
    commands = [step["run"] for step in jobs["everything"]["steps"] if "run" in step]
    assert {"make test", "make demo"} <= set(commands)
    (version,) = [step["with"]["python-version"] for step in jobs["everything"]["steps"] if "with" in step]
    assert version == "${{ matrix.python }}"
    matrix = jobs["everything"]["strategy"]["matrix"]
    supported = {re.fullmatch(r".* :: (3\.\d+)", line) for line in PROJECT["classifiers"]}
    assert set(matrix["python"]) == {match[1] for match in supported if match}
    assert matrix["os"] == ["ubuntu-24.04", "ubuntu-24.04-arm"]


def test_the_workflow_has_a_job_for_each_target_of_the_gate() -> None:
    gate = read(".github/workflows/test.yml")["jobs"]["gate"]
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert gate["strategy"]["matrix"]["target"] == re.findall(r"^make (\S+)$", script, re.MULTILINE)
    assert gate["steps"][-1] == {"run": "make ${{ matrix.target }}"}


@pytest.mark.parametrize(
    ("script", "is_what"), [("echo 3.9; exit 1", "is 3.9"), ("exit 127", "does not start")], ids=["older", "broken"]
)
def test_make_says_which_python_it_needs_and_how_to_name_one(script: str, is_what: str, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    target = ".cache/of-a-test/.installed"
    done = make(target, f"PYTHON={python}")
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"Python 3.11 or later is needed, and {python} {is_what}. Name another one: make {target} PYTHON=python3.12\n"
    )


def test_the_hooks_are_the_checks_of_make() -> None:
    (repository,) = read(".pre-commit-config.yaml")["repos"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for hook in repository["hooks"]:
        assert hook["entry"].removeprefix(".venv/bin/").removesuffix(" --fix") in makefile


def test_every_path_of_the_guide_is_there() -> None:
    named = re.findall(r"`([\w.]+/[\w./-]*)`", GUIDE)
    assert len(named) > 20
    for path in named:
        assert "NAME" in path or (ROOT / path).exists(), path


def test_every_environment_keeps_to_versions_that_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(" ".join(re.findall(r"^\S+\.pins := (.*)$", makefile, re.MULTILINE)).split())
    named |= set(re.findall(r"constraints/([\w-]+)\.txt", makefile))
    assert named == {path.stem for path in (ROOT / "constraints").iterdir()}


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
