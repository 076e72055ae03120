"""The lab's exact quantities against independent enumeration, and what the textbooks say of estimators, measured."""

from __future__ import annotations

import functools
import itertools
import math
import sys
from typing import Any

import numpy as np
import pytest
import torch

from agents import CausalLMPolicy
from agents.commands.common import make_vec
from agents.commands.gradient_lab import (
    ESTIMATORS,
    binary,
    build,
    lab_of,
    small_env,
    small_lab,
    stand_in_values,
    target,
)
from agents.experiments.gradient_lab import BiasReport, GradientLab, all_completions, examine
from agents.learn.learner import Loss
from agents.losses import Aggregation
from tests.commands import Command
from verifiers import InvalidArgumentError

LAB = small_lab()
RIGHT_OR_WRONG = small_lab(binary)
BY_NAME = {estimator.name: estimator for estimator in ESTIMATORS}


def probability(policy: CausalLMPolicy, tokens: list[int], start: int) -> float:
    """By one plain forward pass, token after token."""
    with torch.no_grad():
        logits = policy.model(input_ids=torch.tensor([tokens])).logits[0].double()
    return float(np.prod([logits[t - 1].softmax(0)[tokens[t]] for t in range(start, len(tokens))]))


def expected_return(policy: CausalLMPolicy) -> float:
    """J by recursion over the tree of tokens: 1 and 2 are the letters, 0 ends."""

    def value(tokens: list[int], budget: int) -> float:
        if tokens[-1] == 0 or budget == 0:
            text = "".join("_ab"[token] for token in tokens[1:] if token)
            return 0.2 + 0.3 * text.count("a") + 0.7 * text.count("ab") - 0.1 * text.count("bb")
        with torch.no_grad():
            chances = policy.model(input_ids=torch.tensor([tokens])).logits[0, -1].double().softmax(0)
        return sum(float(chances[token]) * value([*tokens, token], budget - 1) for token in range(3))

    return value([1], 3)


def test_every_completion_is_there_once_with_its_probability() -> None:
    tokens = [completion.tokens.tolist() for completion in LAB.completions]
    expected = {(1, *rest) for n in range(4) for rest in itertools.product((1, 2), repeat=n) if n == 3}
    expected |= {(1, *rest, 0) for n in range(3) for rest in itertools.product((1, 2), repeat=n)}
    assert sorted(map(tuple, tokens)) == sorted(expected)
    for row, sequence in enumerate(tokens):
        assert float(LAB.probabilities[row]) == pytest.approx(probability(LAB.policy, sequence, 1), rel=1e-5)
    assert LAB.expected_return == pytest.approx(expected_return(LAB.policy), rel=1e-6)
    assert all(completion.truncated == (completion.tokens[-1] != 0) for completion in LAB.completions)


def test_the_gradient_is_the_slope_of_the_expected_return() -> None:
    """Central differences along the gradient and along random directions."""
    policy = small_lab().policy
    before = torch.nn.utils.parameters_to_vector(policy.parameters()).detach()
    generator = torch.Generator().manual_seed(0)
    for direction in (LAB.gradient, *torch.randn(3, len(LAB.gradient), generator=generator, dtype=torch.float64)):
        unit = direction / direction.norm()
        values = []
        for sign in (1, -1):
            torch.nn.utils.vector_to_parameters(before + (sign * 3e-3 * unit).float(), policy.parameters())
            values.append(expected_return(policy))
        slope = (values[0] - values[1]) / 6e-3
        assert slope == pytest.approx(float(unit @ LAB.gradient), rel=2e-2, abs=2e-3)


def test_values_are_expected_returns_of_prefixes_and_the_greedy_completion_is_the_likeliest_step_by_step() -> None:
    for row, completion in enumerate(LAB.completions):
        for position in range(1, len(completion.tokens)):
            prefix = completion.tokens[:position].tolist()
            same = [i for i, other in enumerate(LAB.completions) if other.tokens[:position].tolist() == prefix]
            p = LAB.probabilities[same]
            assert float(LAB.values[row, position]) == pytest.approx(float(p @ LAB.returns[same] / p.sum()), rel=1e-9)
    tokens = [1]
    while tokens[-1] != 0 and len(tokens) < 4:
        with torch.no_grad():
            tokens.append(int(LAB.policy.model(input_ids=torch.tensor([tokens])).logits[0, -1].argmax()))
    assert LAB.completions[LAB.greedy].tokens.tolist() == tokens


SUMS = Aggregation.SEQUENCE_MEAN_TOKEN_SUM


@functools.cache  # several tests look at the same figures
def report_of(name: str, batches: int = 400, aggregation: Aggregation | None = SUMS, **changes: Any) -> BiasReport:
    """On the gradient's own scale, unless the aggregation is None for the agent's."""
    estimator = BY_NAME[name]
    lab = RIGHT_OR_WRONG if estimator.scores == "binary" else LAB
    agent = build(lab.policy, estimator, 4, 4, aggregation=aggregation)
    settings = {"values": stand_in_values(lab, estimator.values), "target": target(lab, estimator.objective, 4)}
    return examine(lab, name, agent, batches=batches, **{**settings, **changes})


def test_an_estimate_is_the_gradient_that_the_learner_computes() -> None:
    """For every estimator that needs no critic: the lab's shortcut against backward through the model."""
    generator = np.random.default_rng(3)
    for estimator in ESTIMATORS:
        agent = build(LAB.policy, estimator, 4, 4)
        if agent.models.critic is not None:
            continue
        drawn = LAB.draw(4, 4, generator)
        batch = agent.prepare(LAB.batch_of(agent, drawn))
        loss = Loss(agent.updating.terms, aggregation=agent.config.aggregation, max_tokens=agent.config.max_tokens)
        agent.learner.backward(batch, agent.advantages(batch), loss)
        learned = torch.cat([p.grad.reshape(-1) for p in LAB.policy.parameters() if p.grad is not None]).double()
        torch.testing.assert_close(LAB.estimate(agent, drawn), -learned, rtol=1e-3, atol=1e-5)


UNBIASED = (
    "REINFORCE, no baseline",
    "REINFORCE, constant",
    "REINFORCE, moving average",
    "REINFORCE, exact value",
    "REINFORCE, wrong value",
    "RLOO",
    "ReMax",
    "A2C, GAE 1, wrong value",
    "A2C, GAE 1, half value",
    "Actor-critic, exact value",
    "MaxRL, log p of a success",
    "pass@2",
)


@pytest.mark.parametrize("name", UNBIASED)
def test_unbiased_estimators_have_the_gradient_as_their_mean(name: str) -> None:
    report = report_of(name)
    assert report.unbiased, str(report)
    assert report.scale == pytest.approx(1, abs=6 * (report.variance / report.batches) ** 0.5)
    assert report.cosine > 0.99


def test_the_log_likelihood_is_that_of_a_success_and_its_series_gets_there() -> None:
    """And the estimator that climbs it does not have the mean return's gradient."""
    p = float(RIGHT_OR_WRONG.probabilities @ RIGHT_OR_WRONG.returns)
    assert 0.05 < p < 0.95
    whole = RIGHT_OR_WRONG.log_likelihood(2000)
    assert float(whole(RIGHT_OR_WRONG.probabilities)) == pytest.approx(math.log(p), rel=1e-6)
    torch.testing.assert_close(RIGHT_OR_WRONG.gradient_of(whole), RIGHT_OR_WRONG.gradient / p, rtol=1e-6, atol=1e-9)
    three = float(RIGHT_OR_WRONG.log_likelihood(3)(RIGHT_OR_WRONG.probabilities))
    assert three == pytest.approx(-(1 - p) - (1 - p) ** 2 / 2 - (1 - p) ** 3 / 3)
    assert not report_of("MaxRL, log p of a success", target=RIGHT_OR_WRONG.gradient).unbiased
    with pytest.raises(InvalidArgumentError, match="needs returns of 1 and 0, got"):
        LAB.log_likelihood(3)


def test_too_many_sequences_and_missing_actions_are_named() -> None:
    for budget, tokens, message in ((6, 10, "a budget of 6 make 1000000 seq"), (400, 100, r"make about 10\^800 seq")):
        with pytest.raises(InvalidArgumentError, match=message):
            all_completions(small_env(), 0, budget, range(tokens))
    with pytest.raises(InvalidArgumentError, match=r"sum to 0\.\d+, not 1: pass the legal tokens as actions"):
        GradientLab(LAB.policy, small_env(), horizon=3, actions=(0, 1))


def test_the_command_takes_an_agent_of_the_users(rlvr: Command, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_agent.py").write_text(
        "from agents import Agent\n"
        "class Doubled(Agent):\n"
        "    name = 'doubled'\n"
        "    def advantages(self, batch):\n"
        "        return 2 * batch.scores[:, None].expand(batch.tokens.shape)\n"
        "    def loss(self, batch, logprobs, advantages):\n"
        "        return -advantages * logprobs\n"
    )
    # As from the console script: the current folder is not where Python looks.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    code, output, _ = rlvr("gradient-lab", "--batches", "300", "--estimator", "own_agent:Doubled")
    assert (code, "Doubled" in output, "bias" in output) == (0, True, True)
    code, _, errors = rlvr("gradient-lab", "--estimator", "own_agent")
    assert (code, "unknown agent 'own_agent'" in errors) == (2, True)


def test_an_agent_is_judged_by_its_own_aggregation() -> None:
    """What is unbiased as a sum has another scale if divided by the batch's tokens, and another direction if by each length."""
    name = "A2C, GAE 1, wrong value"
    own = build(LAB.policy, BY_NAME[name], 4, 4)
    assert own.config.aggregation is type(own.config)().aggregation is Aggregation.TOKEN_MEAN
    report = report_of(name, aggregation=None, batches=200)
    assert not report.unbiased
    lengths = torch.tensor([float(len(one.tokens) - one.prompt_length) for one in LAB.completions]).double()
    # The batch's mean length is hardly ever far from the expected one.
    assert report.scale == pytest.approx(1 / float(LAB.probabilities @ lengths), rel=0.1)
    by_length = report_of(name, aggregation=Aggregation.SEQUENCE_MEAN_TOKEN_MEAN, batches=200)
    assert not by_length.proportional, str(by_length)
    assert not by_length.direction_text.startswith("below")
    assert report_of("RLOO", aggregation=None, batches=200).unbiased
    scaled = report_of("Dr. GRPO", aggregation=None, batches=200)
    assert (scaled.unbiased, scaled.proportional) == (False, True)
    assert scaled.direction_text.startswith("below ")
    # A quarter less by the group's mean, of which each completion is a part, and divided by the budget of 3 tokens.
    assert scaled.scale == pytest.approx(3 / 4 / 3, abs=4 * 0.25 * (scaled.variance / scaled.batches) ** 0.5)


def test_the_completions_of_a_world_and_their_gradient() -> None:
    """GridWorld of 2 x 2: 4 moves, up to 4 of them; the probability of each walk by the policy's own masks."""
    env = make_vec("GridWorld", 64, {"n": 2})
    lab = lab_of(env, 1)
    world = env.streams.dataset[1].reference
    walks = itertools.product(range(4), repeat=4)
    ended = {"".join("LDRU"[move] for move in moves[: len(world.walk(list(moves))) - 1]) for moves in walks}
    assert {completion.completion for completion in lab.completions} == ended
    assert float(lab.probabilities.sum()) == pytest.approx(1, abs=1e-9)
    for completion, paid in zip(lab.completions, lab.returns.tolist(), strict=True):
        length = len(completion.tokens) - completion.prompt_length
        assert paid == pytest.approx((0.0 if completion.truncated else 1.0) - 0.01 * length)
    report = examine(lab, "", build(lab.policy, BY_NAME["RLOO"], 4, 4, 4), batches=400)
    assert report.unbiased, str(report)


def test_the_command_takes_an_environment_and_a_built_in_agent(rlvr: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # so that no word of the table is broken
    command = ("gradient-lab", "--batches", "4", "--env")
    for arguments, said, unsaid in (
        ("Maze --env-args max_new_tokens=3 --estimator dr-grpo", "sequence-mean-token-sum-norm", "MaxRL"),
        ("Addition --env-args digits=1 tokenizer=char max_new_tokens=2", "MaxRL, log p", "left out"),
        ("GridWorld --env-args n=2 max_new_tokens=3", "MaxRL is left out: MaxRL needs scores of at least 0", "DrGRPO"),
        ("GridWorld --env-args n=2 max_new_tokens=3", "a success is left out: it needs returns of 1 and 0", "DrGRPO"),
    ):
        code, output, _ = rlvr(*command, *arguments.split())
        assert (code, said in output, unsaid in output) == (0, True, False), output
    for arguments, message in {
        "GridWorld": "make about 10^",
        "GridWorld --env-args max_new_tokens=8": "make 65536 sequences",
        "Maze --env-args max_new_tokens=1": "the gradient to compare with is 0",
        "Maze --env-args max_new_tokens=2 --problem 5": "problems 0 to 0, got 5",
    }.items():
        code, _, error = rlvr(*command, *arguments.split())
        assert (code, message in error) == (2, True), error
    assert "problem need an environment" in rlvr(*command[:-1], "--problem", "1")[2]
