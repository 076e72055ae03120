"""The pipeline of RLHF from end to end, with preferences of the verifier and of a judge, and runs on a proxy."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents import RewardModelConfig, evaluate_reward_model, new_reward_model, tiny_model, train_reward_model
from agents.experiments.rlhf import RLHFConfig, Task, fit_reward_model, reward_of, sample_pairs
from agents.policies.transformers.loading import save_model
from agents.preferences.pairs import PreferencePair, read_pairs, write_pairs
from agents.preferences.reward_model import RewardModel, _token_pairs, backward
from rlvr_envs import ByteTokenizer, CharTokenizer
from rlvr_envs.tasks import Addition
from tests.agents.endpoint_server import Body, chat, running
from tests.commands import Command
from verifiers import DataError, Problem, make

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


# Reward models


SHAPE = {"layers": 1, "hidden_size": 16, "heads": 2, "intermediate_size": 32, "max_tokens": 32}
TEXTS = ["12", "", "7 = é\n", "<|pad|>7", "u\u0308"]


@pytest.fixture(scope="module")
def policy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy") / "bytes"
    save_model(folder, tiny_model(257, **SHAPE), ByteTokenizer())
    return folder


@pytest.fixture
def small(policy_folder: Path) -> RewardModel:
    return new_reward_model(policy_folder)


def some_pairs(count: int = 40) -> list[PreferencePair]:
    """A completion of ones is preferred to one of twos."""
    return [PreferencePair(f"{index}=", "1" * (1 + index % 3), "2" * (1 + index % 4)) for index in range(count)]


@pytest.mark.parametrize("micro_batch_size", [2, 64])
def test_the_gradient_of_the_head_is_that_of_numpy(policy_folder: Path, micro_batch_size: int) -> None:
    """By the chain rule from the states at each text's last token, one text at a time."""
    made = new_reward_model(policy_folder)
    model = made.model.double()
    config = RewardModelConfig(center_coefficient=0.05)
    config = dataclasses.replace(config, learner=dataclasses.replace(config.learner, micro_batch_size=micro_batch_size))
    pairs = _token_pairs(made, some_pairs(5))
    loss = backward(model, pairs, config)
    head = model.score.weight.detach().numpy()[0]

    def state(tokens: list[int]) -> Any:
        with torch.no_grad():
            return model.model(input_ids=torch.tensor([tokens])).last_hidden_state[0, -1].numpy()

    expected, total = np.zeros_like(head), 0.0
    for pair in pairs:
        better, worse = state(pair.chosen), state(pair.rejected)
        r_better, r_worse = head @ better, head @ worse
        probability = 1 / (1 + np.exp(r_worse - r_better))
        total += -np.log(probability) + 0.05 * (r_better + r_worse) ** 2
        expected += (probability - 1) * (better - worse) + 2 * 0.05 * (r_better + r_worse) * (better + worse)
    # Scores are rounded to 32 bits, as the verifier's are.
    assert loss == pytest.approx(total / len(pairs), rel=1e-6)
    np.testing.assert_allclose(model.score.weight.grad.numpy()[0], expected / len(pairs), rtol=1e-5, atol=1e-7)


def test_it_learns_a_preference_and_its_folder_gives_the_same_scores(small: RewardModel, tmp_path: Path) -> None:
    config = RewardModelConfig(epochs=8, batch_size=10, seed=1).for_model(small.model, trained=True)
    losses: list[float] = []
    steps = train_reward_model(small, some_pairs(), config, on_step=lambda _, loss: losses.append(loss))
    assert steps == len(losses) == 32
    assert losses[0] == pytest.approx(np.log(2), abs=0.3)
    others = [PreferencePair("99=", "11", "22"), PreferencePair("77=", "1", "2")]
    report = evaluate_reward_model(small.verifier(), others)
    assert report.accuracy == 1
    assert report.log_loss < losses[0]
    small.save(tmp_path / "saved")
    loaded = make("reward_model", model=tmp_path / "saved")
    problems = [Problem("", "3+4=", None)] * len(TEXTS)
    expected = [verdict.score for verdict in small.verifier().verify_batch(TEXTS, problems)]
    assert [verdict.score for verdict in loaded.verify_batch(TEXTS, problems)] == pytest.approx(expected, abs=1e-6)
    assert len({round(score, 5) for score in expected}) == len(TEXTS)
    again = new_reward_model(tmp_path / "saved", seed=9)  # a reward model goes on with the head that it has
    assert torch.equal(again.model.score.weight, small.model.score.weight)


def test_the_head_is_random_by_the_seed_and_the_body_is_that_of_the_policy(policy_folder: Path) -> None:
    one, same, other = (new_reward_model(policy_folder, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one.model.score.weight, same.model.score.weight)
    assert not torch.equal(one.model.score.weight, other.model.score.weight)
    policy = tiny_model(257, **SHAPE)
    embeddings = one.model.get_input_embeddings().weight
    assert torch.equal(embeddings[:257], policy.get_input_embeddings().weight)
    name = "layers.0.mlp.up_proj.weight"
    assert torch.equal(one.model.model.state_dict()[name], policy.model.state_dict()[name])


def test_a_policy_of_characters_becomes_a_model_of_bytes_that_reads_them_alike(tmp_path: Path) -> None:
    tokenizer = CharTokenizer("0123456789+=")
    policy = tiny_model(tokenizer.vocab_size, **SHAPE)
    save_model(tmp_path / "policy", policy, tokenizer)
    made = new_reward_model(tmp_path / "policy")
    tokens = made.verifier().tokens("95", Problem("", "37+58=", None))
    assert tokens == list(b"37+58=95")
    with torch.no_grad():
        expected = policy.model(input_ids=torch.from_numpy(tokenizer.encode("37+58=95")).long()[None]).last_hidden_state
        actual = made.model.model(input_ids=torch.tensor([tokens])).last_hidden_state
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-6)


def test_texts_that_do_not_fit_are_refused(small: RewardModel) -> None:
    config = RewardModelConfig().for_model(small.model, trained=True)
    long = PreferencePair("1=", "1" * 40, "2")
    with pytest.raises(DataError, match="has 42 tokens with its prompt, and the model takes 1 to 32"):
        train_reward_model(small, [long], config)
    with pytest.raises(DataError, match="can't score a held-out completion"):
        evaluate_reward_model(small.verifier(), [long])
    with pytest.raises(DataError, match="no pairs to learn from"):
        train_reward_model(small, [], config)


def test_the_command_trains_tests_and_saves(
    policy_folder: Path, tmp_path: Path, rlvr: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_pairs(Path("pairs.jsonl"), some_pairs(20))
    words = f"train-rm --pairs pairs.jsonl --out rm --model {policy_folder} --held-out 0.5 --epochs 2 --batch-size 5"
    code, said, _ = rlvr(*words.split())
    assert code == 0
    assert "10 pairs to learn from, 10 held out; 2 epochs, 4 steps" in said
    assert "expected calibration error" in said
    written = json.loads(Path("rm/preferences.json").read_text())
    assert written["report"]["pairs"] == 10
    assert 0 <= written["report"]["interval"]["low"] <= written["report"]["accuracy"]
    verdict = make("reward_model", model="rm")("11", Problem("", "1=", None))
    assert np.isfinite(verdict.score)
