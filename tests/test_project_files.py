"""What contributors and robots are told holds: paths exist, versions and commands are those of the project."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def read(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


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
