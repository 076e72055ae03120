"""Everything on docs/plugging-in.md runs: files are written, Python runs in one process, commands as a user types them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import rlvr_envs
import verifiers
from rlvr_envs import registration
from verifiers import registry

DOCS = (Path(__file__).parent.parent / "docs" / "plugging-in.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
FILES = {match[1]: block for block in PYTHON if (match := re.match(r"# (\w+\.py)\n", block))}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("torch")
    for name, source in FILES.items():
        (tmp_path / name).write_text(source, encoding="utf-8")
    return tmp_path


def run(folder: Path, *arguments: str) -> str:
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-P", "-W", "error::UserWarning", *arguments],
        capture_output=True,
        text=True,
        timeout=600,  # ends a hang
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_examples_run(folder: Path) -> None:
    assert list(FILES) == ["my_verifiers.py", "my_data.py", "my_envs.py"]
    examples = [block for block in PYTHON if not re.match(r"# \w+\.py\n", block)]
    assert len(examples) == 4
    run(folder, "-c", "\n".join(["import verifiers", *examples]))


def test_the_commands_run(folder: Path) -> None:
    commands = [line for block in re.findall(r"```sh\n(.*?)```", DOCS, re.DOTALL) for line in block.splitlines()]
    assert len(commands) == 3
    said = [
        run(folder, "-c", "from rlvr_envs.console import main; main()", *shlex.split(line.removeprefix("rlvr ")))
        for line in commands
    ]
    assert said[0].startswith("correct (score 1)")
    assert "train: 40 of 40 gold completions pass" in said[1]
    assert "1 step done" in said[2]
    assert (folder / "runs" / "doubles" / "metrics.jsonl").is_file()


def test_the_entry_points_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    for name in FILES:
        monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
    [text] = re.findall(r"```toml\n(.*?)```", DOCS, re.DOTALL)
    groups = tomllib.loads(text)["project"]["entry-points"]
    points = {group: [EntryPoint(*pair, group) for pair in named.items()] for group, named in groups.items()}
    for module in (registry, registration):
        monkeypatch.setattr(module, "entry_points", lambda group: points.get(group, []))
    assert verifiers.verify("ends-right", "It is 4.", 4).outcome == "correct"
    assert rlvr_envs.environment_class("doubles").__name__ == "Doubles"
    with pytest.raises(verifiers.UnknownNameError, match=r"unknown environment 'rlvr/dubles-v0'.*doubles"):
        rlvr_envs.environment_class("dubles")
