"""A verifier in a file, on the command line: it judges, its content is recorded, and what decided is reported."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.commands import Command

HYBRID = """
verifier = "weighted_sum"
weights = {right = 1.0, short = 0.1}

[parts.right]
verifier = "hybrid"
rule = "numeric"
judge = "own_judges:%s"

[parts.short]
verifier = "length_penalty"
free = 4
limit = 12
"""
JUDGES = """
def strict(completion, problem):
    return False

def lenient(completion, problem):
    return True

def echo(completion, problem):
    return completion == problem.prompt
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_judges", raising=False)
    (tmp_path / "own_judges.py").write_text(JUDGES)
    (tmp_path / "mine.toml").write_text(HYBRID % "lenient")
    return tmp_path


def test_verify(folder: Path, rlvr: Command) -> None:
    code, output, _ = rlvr("verify", "x", "7", "--verifier", "mine.toml")
    assert (code, output.splitlines()[0]) == (0, "scored (score 1)")
    assert '"applied": "judge"' in output
    assert rlvr("verify", "So?", "7", "--verifier", "own_judges:echo", "--prompt", "So?")[0] == 0
    code, _, error = rlvr("verify", "x", "7", "--verifier", "mine.toml", "--args", "weights=3")
    assert (code, error) == (2, "error: arguments ['weights'] were given for mine.toml: write them into the file")


def test_train_and_eval_record_the_file_and_the_shares(folder: Path, rlvr: Command) -> None:
    own = ["--env", "Addition", "--env-args", "max_new_tokens=4", "--verifier", "mine.toml"]
    train = ["train", "reinforce", *own, *["--steps", "1", "--run-folder", "run", "--problems-per-step", "8"]]
    assert rlvr(*train)[0] == 0
    config = json.loads(Path("run/config.json").read_text())
    name, content = config["environment"]["verifier"]
    assert (name, content["parts"]["right"]["judge"]) == ("mine.toml", "own_judges:lenient")
    (metrics,) = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    assert sum(share for name, share in metrics.items() if name.startswith("applied/")) == pytest.approx(1)
    code, output, error = rlvr("eval", *own, *["--model", "run", "--problems", "4", "--out", "out"])
    assert code == 0, error
    manifest = json.loads(Path("out/manifest.json").read_text())
    assert manifest["settings"]["environment"]["verifier"] == ["mine.toml", content]
    applied = manifest["summary"]["applied"]
    assert sum(applied.values()) == 4
    assert f"decided by {', '.join(f'{part} {count}' for part, count in applied.items())}" in output
    rows = [json.loads(line) for line in Path("out/samples.jsonl").read_text().splitlines()]
    assert {row["applied"] for row in rows} == applied.keys()
    Path("mine.toml").write_text(HYBRID % "strict")
    code, _, error = rlvr(*train, "--resume")
    assert (code, "own_judges:lenient" in error, "own_judges:strict" in error) == (2, True, True)


def test_audit(folder: Path, rlvr: Command) -> None:
    Path("exact.toml").write_text('verifier = "gate"\nparts = ["exact"]\n')
    arguments = ("audit-verifier", "exact.toml", "--dataset", "Addition", "--limit", "2")
    _, output, error = rlvr(*arguments)
    assert "verifier exact.toml(verifier='gate', parts=['exact'])" in output, error
