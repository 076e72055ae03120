"""The pipeline of RLHF from end to end, with preferences of the verifier and of a judge, and runs on a proxy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents import read_pairs, tiny_model
from agents.experiments.rlhf import RLHFConfig, Task, fit_reward_model, reward_of, sample_pairs
from agents.policies.transformers.loading import save_model
from rlvr_envs import CharTokenizer
from rlvr_envs.tasks import Addition
from tests.agents.endpoint_server import Body, chat, running
from tests.commands import Command
from verifiers import Problem, make

SIZES = {"warm-start-steps": 1, "problems": 12, "samples": 6, "reward-model-epochs": 1, "steps": 2, "completions": 8}
TINY = [f"--{name}={size}" for name, size in SIZES.items()] + ["--test-problems=4"]
ADDITION = ["--env", "Addition", "--env-args", "tokenizer=char", "max_new_tokens=3", "digits=1"]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A small model that writes any digits, some of which are right."""
    monkeypatch.chdir(tmp_path)
    tokenizer = CharTokenizer(Addition(digits=1).alphabet)
    model = tiny_model(tokenizer.vocab_size, layers=1, hidden_size=16, heads=2, intermediate_size=16, max_tokens=16)
    save_model(tmp_path / "small", model, tokenizer)
    return "small"


def even(completion: str, problem: Problem) -> bool:
    """Stands for the people: who prefers answers of an even number of characters."""
    return len(completion) % 2 == 0


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_the_pipeline_leaves_models_pairs_runs_and_a_table(start: str, rlvr: Command) -> None:
    words = ["rlhf", *ADDITION, "--model", start, "--out", "out", *TINY, "--members", "2"]
    code, output, errors = rlvr(*words, "--verifier", "tests.agents.test_rlhf:even")
    assert code == 0, errors
    out = Path("out")
    for pair in read_pairs(out / "pairs.jsonl"):
        assert (even(pair.chosen, pair.problem), even(pair.rejected, pair.problem)) == (True, False)
    assert output.count("reward model: accuracy") == 2
    models = [make("reward_model", model=out / f"reward-model-{n}") for n in (1, 2)]
    assert len({model("3", Problem("", "1+2=", None)).score for model in models}) == 2
    learned = rows_of(out / "rlhf")
    assert len(learned) == 2
    assert all(0 <= row["gold_reward"] <= 1 and row["kl_coefficient"] == RLHFConfig().kl_coefficient for row in learned)
    assert learned[0]["kl"] == pytest.approx(0.0, abs=0.01)
    assert all("gold_reward" not in row and "kl" in row for row in rows_of(out / "rlvr"))
    results = json.loads((out / "results.json").read_text())
    assert set(results["result"]["accuracy"]) == {"start", "rlhf", "rlvr"}
    assert "RLHF: PPO on the reward model" in " ".join(output.split())
    code, _, errors = rlvr(*words)
    assert code == 2
    assert "out is not empty" in errors


def answers(body: Body, path: str) -> bytes:
    """As a model that finds every answer right that contains a 1."""
    said = body["messages"][-1]["content"].rpartition("answer:")[2]
    return chat("Yes" if "1" in said else "No")


def test_a_judge_can_be_the_one_who_prefers(start: str) -> None:
    pytest.importorskip("openai")
    arguments: dict[str, Any] = {"model": "m", "prompt": "{prompt}|{reference}|answer:{completion}"}
    arguments["labels"] = {"Yes": "correct", "No": "incorrect"}
    with running(answers) as server:
        judge = ("judge", {**arguments, "base_url": server.url})
        task = Task("rlvr/Addition-v0", {"digits": 1, "max_new_tokens": 3}, preferences=judge)
        count = sample_pairs(task, RLHFConfig(problems=6, samples=6), Path(start), Path("pairs.jsonl"))
    pairs = read_pairs("pairs.jsonl")
    assert len(pairs) == count > 1
    assert all("1" in pair.chosen and "1" not in pair.rejected for pair in pairs)


def test_completions_that_are_all_alike_to_the_judge_are_no_pairs(start: str, rlvr: Command) -> None:
    words = ["rlhf", *ADDITION, "--model", start, "--out", "out", *TINY, "--verifier", "length_penalty"]
    code, _, errors = rlvr(*words, "--verifier-args", "free=98", "limit=99")
    assert code == 1
    assert "72 completions of 12 problems give 0 pairs of different scores" in errors


def test_the_members_of_an_ensemble_are_tested_with_the_same_pairs(start: str, tmp_path: Path) -> None:
    lines = [{"prompt": f"{n}+1=", "chosen": str(n + 1), "rejected": "0"} for n in range(8)]
    Path("pairs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = RLHFConfig(members=2, reward_model_epochs=1)
    reports = [fit_reward_model(Path("pairs.jsonl"), Path(start), Path(f"rm-{n}"), config, n) for n in (0, 1)]
    assert [report.pairs for report in reports] == [1, 1]
    assert reports[0].mean_score != reports[1].mean_score
    scores = []
    for folders in (["rm-0"], ["rm-1"], ["rm-0", "rm-1"]):
        name, arguments = reward_of([Path(folder) for folder in folders])
        scores.append(make(name, **arguments)("2", Problem("", "1+1=", None)).score)
    assert scores[2] == pytest.approx(min(scores[:2]))


# Training on a proxy


def longer(completion: str, problem: Problem) -> float:
    """A score that favours length."""
    return float(len(completion))


def test_a_run_on_a_proxy_logs_the_verifier_of_the_environment(start: str, rlvr: Command) -> None:
    words = ["train", "rloo", *ADDITION, "--model", start, "--steps", "2", "--problems-per-step", "8"]
    proxy = ["--verifier", "tests.agents.test_rlhf:longer"]
    options = ["--run-folder", "run", "--gold-verifier", "environment", "--measure-kl", "--group-size", "4"]
    code, _, errors = rlvr(*words, *proxy, *options)
    assert code == 0, errors
    for row in rows_of(Path("run")):
        assert row["reward"] == pytest.approx(row["completions/mean_length"], abs=1.0)
        assert 0 <= row["gold_reward"] <= 1
        assert {"kl", "gold_errors"} <= row.keys()
        assert "kl_coefficient" not in row
    (line, *_) = (json.loads(line) for line in Path("run/rollouts.jsonl").read_text().splitlines())
    assert line["detail"]["gold"]["outcome"] in ("correct", "incorrect", "no_answer")
    config = json.loads(Path("run/config.json").read_text())
    assert config["environment"]["verifier"][1]["gold"] == ["numeric", {"whole": True}]
    code, _, errors = rlvr(*words, "--gold-verifier", "exact")
    assert code == 2
    assert "give that one by --verifier or --reward-model" in errors
