"""DPO: its gradient against the loss of pairs written out, its limits, and pairs from a file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from torch import Tensor

from agents import DPO, DPOConfig, LearnerConfig, PreferencePair, Trajectory, make_batch
from agents.algorithms.dpo import pair_episodes
from agents.experiments.supervised import demonstration
from agents.losses import PreferenceLoss, preference_loss
from tests.agents.agent_cases import all_weights, flat, gradient, make_agent, playing_policy, sort_env
from tests.agents.rounding import FLOAT64, ROUNDING, assert_equal_stored
from tests.agents.trajectories import VOCAB, scored, tiny_policy, trajectory
from verifiers import DataError, InvalidArgumentError


def moved(agent: Any) -> Any:
    """The same agent with other weights than its reference, so that margins are not 0."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in agent.policy.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator).to(parameter.dtype))
    agent.policy.weights_changed()
    return agent


def every_completion() -> list[Trajectory]:
    """Each completion of one token behind one prompt, with scores of which some are equal."""
    return [
        trajectory([0, 0, 0, 1], tokens=[1, 2, 3, token], rewards=[0, 0, 0, float(token % 5)], group=0)
        for token in range(VOCAB)
    ]


def completion_logprobs(model: Any) -> Tensor:
    """Log-probabilities f[v] of all completions of one token, by a plain forward pass."""
    logprobs: Tensor = model(input_ids=torch.tensor([[1, 2, 3]])).logits[0, -1].log_softmax(-1)
    return logprobs


def written_out(agent: Any, **settings: Any) -> Tensor:
    """The gradient f[p] of the mean loss of all pairs of these completions, by enumeration."""
    assert agent.models.reference is not None
    gains = completion_logprobs(agent.policy.model) - completion_logprobs(agent.models.reference.policy.model).detach()
    scores = [token % 5 for token in range(VOCAB)]
    pairs = [(a, b) for a in range(VOCAB) for b in range(VOCAB) if scores[a] > scores[b]]
    terms = [preference_loss((gains[a] - gains[b])[None], **settings)[0] for a, b in pairs]
    parameters = list(agent.policy.parameters())
    return flat(torch.autograd.grad(torch.stack(terms).mean(), parameters, materialize_grads=True))


@FLOAT64
@pytest.mark.parametrize(
    ("beta", "kind", "smoothing"), [(0.1, "sigmoid", 0.0), (3.0, "sigmoid", 0.2), (0.5, "ipo", 0.0), (0.5, "ipo", 0.1)]
)
def test_the_gradient_is_that_of_the_loss_of_all_pairs(beta: float, kind: str, smoothing: float) -> None:
    settings: dict[str, Any] = {"beta": beta, "label_smoothing": smoothing}
    agent = moved(make_agent("dpo", pairing="all", preference_loss=kind, **settings))
    expected = written_out(agent, kind=PreferenceLoss(kind), **settings)
    assert float(expected.abs().max()) > 1e-4
    assert_equal_stored(gradient(agent, make_batch(every_completion())), expected)


def test_later_epochs_use_the_margins_of_their_own_weights() -> None:
    rows = every_completion()
    once, twice = (make_agent("dpo", pairing="all", epochs=epochs) for epochs in (1, 2))
    for _ in range(2):
        once.update(rows)
    twice.update(rows)
    torch.testing.assert_close(all_weights(twice), all_weights(once), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("margin", [-2.0, 0.0, 1.5])
def test_losses_by_numpy(margin: float) -> None:
    beta, smoothing = 0.7, 0.15
    tensor = torch.tensor([margin], dtype=torch.float64)
    logistic = [np.log1p(np.exp(-sign * beta * margin)) for sign in (1, -1)]
    ipo = [(sign * margin - 1 / (2 * beta)) ** 2 for sign in (1, -1)]
    for kind, (right, wrong) in ((PreferenceLoss.SIGMOID, logistic), (PreferenceLoss.IPO, ipo)):
        expected = (1 - smoothing) * right + smoothing * wrong
        assert float(preference_loss(tensor, beta, kind, smoothing)) == pytest.approx(expected, abs=ROUNDING)


def rows_of_scores(*groups: tuple[float, ...]) -> list[Trajectory]:
    return [scored(score, length=4, group=group) for group, scores in enumerate(groups) for score in scores]


def test_pairs_of_groups_and_groups_without_a_pair_change_nothing() -> None:
    batch = make_batch(rows_of_scores((0.0, 1.0, 0.5), (1.0, 1.0), (0.0, 1.0, math.nan)))
    for pairing, expected in {"best-worst": [(1, 0), (6, 5)], "all": [(1, 0), (1, 2), (2, 0), (6, 5)]}.items():
        agent: Any = make_agent("dpo", pairing=pairing)
        chosen, rejected = agent.chosen_and_rejected(batch)
        assert sorted(zip(chosen.tolist(), rejected.tolist(), strict=True)) == expected
    before = all_weights(agent)
    assert agent.update(rows_of_scores((1.0, 1.0), (0.0, 0.0)))["pairs"] == 0
    assert torch.equal(all_weights(agent), before)


def test_metrics_are_those_of_the_pairs() -> None:
    agent = moved(make_agent("dpo", beta=0.3, pairing="all"))
    batch, _ = agent.compute_advantages(every_completion())
    gains = 0.3 * (batch.old - batch.reference_logprobs)[:, 3].double()
    chosen, rejected = agent.chosen_and_rejected(batch)
    margins = gains[chosen] - gains[rejected]
    metrics = agent.update(every_completion())
    assert metrics["rewards/margins"] == pytest.approx(float(margins.mean()), abs=1e-9)
    assert metrics["rewards/accuracies"] == pytest.approx(float((margins > 0).double().mean()))
    assert metrics["loss"] == pytest.approx(float(torch.nn.functional.softplus(-margins).mean()), abs=1e-9)
    assert metrics["pairs"] == len(chosen)


def pairs_file(folder: Path, count: int = 6) -> Path:
    """Sorted digits are preferred to unsorted ones."""
    env = sort_env("dpo")
    path = folder / "pairs.jsonl"
    with path.open("w") as file:
        for problem in map(env.streams.dataset.__getitem__, range(count)):
            gold = problem.metadata["gold_completion"][:3]
            print(json.dumps({"prompt": problem.prompt, "chosen": gold, "rejected": gold[::-1]}), file=file)
    return path


def test_offline_it_prefers_what_the_pairs_prefer(tmp_path: Path) -> None:
    env = sort_env("dpo")
    learner = LearnerConfig(learning_rate=3e-3)
    config = DPOConfig(pairs=str(pairs_file(tmp_path)), problems_per_step=6, beta=0.5, learner=learner)
    agent = DPO(playing_policy(env), config)
    seen: list[dict[str, float]] = []
    agent.learn(env, steps=12, callbacks=[lambda _, metrics: seen.append(dict(metrics))])
    assert seen[0]["rewards/margins"] == pytest.approx(0.0, abs=1e-6)
    assert seen[0]["loss"] == pytest.approx(math.log(2), abs=1e-6)
    assert seen[-1]["rewards/accuracies"] == 1
    assert seen[-1]["loss"] < 0.5
    assert math.isnan(seen[-1]["reward"])  # nothing was sampled, so nothing was scored
    assert "kl" not in seen[-1]
    assert agent.tokens == 0


def test_the_tokens_of_a_pair_are_those_of_the_environment() -> None:
    streams = sort_env("dpo").streams
    problem = streams.dataset[2]
    gold = str(problem.metadata["gold_completion"])[:3]
    one, other = pair_episodes(streams, PreferencePair(problem.prompt, gold, gold[:1], rejected_ended=False), group=7)
    given = demonstration(streams, 2)
    assert one.tokens.tolist() == [*given.tokens[: given.prompt_length + 3].tolist(), streams.rules.tokenizer.eos_token]
    assert one.tokens[: one.prompt_length].tolist() == streams.prompt_tokens(2).tolist()
    assert (one.score, other.score, one.group, other.group) == (1.0, 0.0, 7, 7)
    assert (one.terminated, other.terminated, other.truncated) == (True, False, True)
    assert other.tokens[-1] != streams.rules.tokenizer.eos_token


def test_pairs_that_an_environment_has_no_place_for_are_refused(tmp_path: Path) -> None:
    streams = sort_env("dpo").streams
    with pytest.raises(DataError, match=r"up to 6 of completion.*max_new_tokens=4"):
        pair_episodes(streams, PreferencePair(streams.dataset[0].prompt, "12345", "1"), group=0)
    agent = DPO(tiny_policy(), DPOConfig(pairs=str(pairs_file(tmp_path))))
    env: Any = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make("rlvr/Sort-v0")])
    with pytest.raises(InvalidArgumentError, match="a TokenVectorEnv; got SyncVectorEnv"):
        agent.collect(env, 0)
    with pytest.raises(InvalidArgumentError, match=r"nowhere\.jsonl does not exist"):
        DPO(tiny_policy(), DPOConfig(pairs="nowhere.jsonl"))
    for settings, message in (
        ({"minibatches": 2}, "a pair must not be divided"),
        ({"kl_coefficient": 0.1}, "kl_coefficient=0.1 would have no effect here"),
        ({"aggregation": "token-mean"}, "would have no effect here"),
        ({"pairs": "x.jsonl", "lag": 1}, "nothing is sampled if pairs are given"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            DPOConfig(**settings)
