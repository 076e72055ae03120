"""The natural gradient against a Fisher matrix that is written down, and TRPO's promises."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from agents import NPG, TRPO, Batch, CausalLMPolicy, CriticConfig, NPGConfig, PolicyConfig, TRPOConfig, make_batch
from agents.learn import natural_gradient
from agents.learn.natural_gradient import conjugate_gradient, fisher_vector_product, mean_kl
from tests.agents.agent_cases import all_weights, make_agent, on_policy, prepared, some_batch
from tests.agents.architectures import model_of
from tests.agents.rounding import assert_equal, assert_equal_stored
from tests.agents.trajectories import trajectory

pytestmark = pytest.mark.usefixtures("float64")

VOCAB = 8
SMALL: dict[str, Any] = {
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 16,
}


def some_policy(architecture: str = "qwen2", temperature: float = 1.0) -> CausalLMPolicy:
    """Some 600 weights, random enough for distributions that are far from uniform."""
    torch.manual_seed(0)
    model = model_of(architecture, VOCAB, 1.0, **SMALL)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return CausalLMPolicy(model, PolicyConfig(temperature=temperature))


def some_rows(policy: CausalLMPolicy, *, limited: bool = False, seed: int = 0) -> Batch:
    generator = np.random.default_rng(seed)
    rows = []
    for mask in ([0, 1, 1, 0, 1], [0, 0, 1, 1], [0, 1]):
        tokens = generator.integers(0, VOCAB, len(mask))
        legal = generator.random((len(mask), VOCAB)) < 0.5
        legal[np.arange(len(mask)), tokens] = True
        rewards = generator.normal(size=len(mask)).tolist()
        masks = np.packbits(legal, axis=1) if limited else None
        rows.append(trajectory(mask, tokens=tokens.tolist(), rewards=rewards, action_masks=masks))
    return make_batch(rows if limited else on_policy(policy, rows))


# The reference: float64, one row and one token at a time


class Reference:
    """The same model in float64, and what follows from the definitions."""

    def __init__(self, policy: CausalLMPolicy, batch: Batch) -> None:
        self.model = copy.deepcopy(policy.model).double()
        self.temperature = policy.temperature
        self.parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.batch = batch
        self.legal = batch.legal_tokens(0, policy.vocab_size)

    def distributions(self) -> list[tuple[int, int, Tensor]]:
        """Row, position and log-probabilities f64[v] of the legal tokens at each token of the mask."""
        results = []
        for row in range(len(self.batch)):
            ids = self.batch.tokens[row, : self.batch.lengths[row]][None]
            logits = self.model(input_ids=ids).logits[0] / self.temperature
            for t in self.batch.loss_mask[row].nonzero()[:, 0].tolist():
                scores = logits[t - 1]
                if self.legal is not None:
                    scores = scores[self.legal[row, t]]
                results.append((row, t, scores.log_softmax(-1)))
        return results

    def flat(self, value: Tensor) -> Tensor:
        grads = torch.autograd.grad(value, self.parameters, retain_graph=True)
        return torch.cat([grad.reshape(-1) for grad in grads])

    def fisher(self) -> Tensor:
        """E[score score^T], the mean over tokens: the definition."""
        results = self.distributions()
        logprobs = torch.cat([logprobs for _, _, logprobs in results])
        scores = torch.stack([self.flat(logprob) for logprob in logprobs])
        return torch.einsum("k,kp,kq->pq", logprobs.detach().exp(), scores, scores) / len(results)

    def divergence(self, old: list[Tensor]) -> Tensor:
        """Mean KL(old || now)."""
        now = [logprobs for _, _, logprobs in self.distributions()]
        terms = [(before.exp() * (before - after)).sum() for before, after in zip(old, now, strict=True)]
        return torch.stack(terms).mean()


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("architecture", ["qwen2", "gpt2", "llama"])
def test_the_product_is_that_of_the_fisher_matrix(architecture: str, limited: bool, temperature: float) -> None:
    policy = some_policy(architecture, temperature)
    batch = some_rows(policy, limited=limited)
    before = natural_gradient.flat_parameters(policy)
    vector = torch.randn(len(before), generator=torch.Generator().manual_seed(1))
    expected = Reference(policy, batch).fisher() @ vector.double()
    assert float(expected.abs().max()) > 1e-3
    for size in (64, 1):
        assert_equal(fisher_vector_product(policy, batch, vector, size), expected)
    assert torch.equal(natural_gradient.flat_parameters(policy), before)
    assert all(parameter.grad is None for parameter in policy.parameters())


@pytest.mark.parametrize("rows", [1, 2])
def test_passes_are_cut_to_the_logits_that_fit(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = some_policy()
    batch = some_rows(policy)
    vector = torch.randn(len(natural_gradient.flat_parameters(policy)), generator=torch.Generator().manual_seed(4))
    expected = fisher_vector_product(policy, batch, vector, 64), mean_kl(policy, batch, vector, 64)
    made: list[int] = []
    whole = policy.distributions
    monkeypatch.setattr(policy, "distributions", lambda tokens, *rest: made.append(len(tokens)) or whole(tokens, *rest))
    monkeypatch.setattr("agents.learn.natural_gradient.LOGITS_AT_ONCE", rows * batch.tokens.shape[1] * VOCAB)
    assert_equal(fisher_vector_product(policy, batch, vector, 64), expected[0])
    assert_equal(mean_kl(policy, batch, vector, 64), expected[1])
    assert max(made) == rows


@pytest.mark.parametrize("limited", [False, True])
def test_the_mean_divergence_by_its_definition(limited: bool) -> None:
    policy = some_policy()
    batch = some_rows(policy, limited=limited)
    old = natural_gradient.flat_parameters(policy)
    before = [logprobs.detach() for _, _, logprobs in Reference(policy, batch).distributions()]
    natural_gradient.set_flat_parameters(
        policy, old + 0.1 * torch.randn(len(old), generator=torch.Generator().manual_seed(3))
    )
    moved = natural_gradient.flat_parameters(policy)
    expected = float(Reference(policy, batch).divergence(before).detach())
    assert expected > 0.01
    for size in (1, 64):
        assert_equal(mean_kl(policy, batch, old, size), expected)
    assert torch.equal(natural_gradient.flat_parameters(policy), moved)
    assert mean_kl(policy, batch, moved, 64) == 0


# Conjugate gradients


@pytest.mark.parametrize("seed", range(5))
def test_as_many_iterations_as_dimensions_solve_the_system(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    factor, target = torch.randn(9, 9, generator=generator), torch.randn(9, generator=generator)
    matrix = factor @ factor.T + 0.1 * torch.eye(9)
    result = conjugate_gradient(lambda vector: matrix @ vector, target, 12, tolerance=0.0)
    torch.testing.assert_close(result, torch.linalg.solve(matrix, target), rtol=1e-6, atol=1e-8)
    assert not conjugate_gradient(lambda vector: matrix @ vector, 0 * target, 10).any()


# The agents


def natural(cls: type[NPG] = NPG, policy: CausalLMPolicy | None = None, **settings: Any) -> NPG:
    config = (NPGConfig if cls is NPG else TRPOConfig)(
        critic=CriticConfig("separate"), value_steps=1, **{"gae_lambda": 1.0, **settings}
    )
    return cls(policy or some_policy(), config)


def test_npg_steps_along_the_inverse_fisher_times_the_gradient() -> None:
    policy = some_policy()
    batch, advantages = prepared(natural(policy=policy), some_rows(policy))
    reference = Reference(policy, batch)
    tokens = batch.tokens
    weighed = [float(advantages[row, t]) * logprobs[tokens[row, t]] for row, t, logprobs in reference.distributions()]
    descent = reference.flat(-torch.stack(weighed).mean())
    damped = reference.fisher() + 0.1 * torch.eye(len(descent))
    direction = torch.linalg.solve(damped, descent)
    expected = -direction * math.sqrt(2 * 0.01 / float(direction @ damped @ direction))

    before = natural_gradient.flat_parameters(policy)
    agent = natural(policy=policy, cg_iterations=60, damping=0.1, max_kl=0.01)
    agent.optimize(batch, advantages)
    moved = (natural_gradient.flat_parameters(policy) - before).double()
    # Conjugate gradients stop at a residual of 1e-5 of the target, if not at rounding.
    assert float((moved - expected).norm() / expected.norm()) < 1e-4


@pytest.mark.parametrize("max_kl", [1e-3, 0.05, 0.5])
def test_trpo_improves_the_surrogate_within_its_bound(max_kl: float) -> None:
    policy = some_policy()
    agent = natural(TRPO, policy, max_kl=max_kl)
    batch = some_rows(policy)
    ready, advantages = prepared(agent, batch)
    old = natural_gradient.flat_parameters(policy)
    before = surrogate(policy, ready, advantages)
    metrics = agent.optimize(ready, advantages)
    assert metrics["skipped"] == 0
    assert 0 < mean_kl(policy, batch, old, 64) <= max_kl
    assert_equal(metrics["kl_step"], mean_kl(policy, batch, old, 64))
    after = surrogate(policy, ready, advantages)
    assert after < before
    assert_equal_stored(metrics["improvement"], before - after)
    assert_equal_stored(metrics["loss"], before)


def surrogate(policy: CausalLMPolicy, batch: Batch, advantages: Tensor) -> float:
    """-mean(ratio A) from the definition."""
    results = Reference(policy, batch).distributions()
    ratios = [float((lp[batch.tokens[row, t]].detach() - batch.old[row, t]).exp()) for row, t, lp in results]
    weighed = [-ratio * float(advantages[row, t]) for ratio, (row, t, _) in zip(ratios, results, strict=True)]
    return sum(weighed) / len(weighed)


class NeverBetter(TRPO):
    """Finds every step along the line worse."""

    def _surrogate(self, batch: Batch, advantages: Tensor) -> dict[str, float]:
        results = super()._surrogate(batch, advantages)
        return results if torch.is_grad_enabled() else {**results, "loss": math.inf}


def test_trpo_goes_back_exactly_where_no_length_will_do() -> None:
    agent = natural(NeverBetter, some_policy(), backtracks=4)
    assert agent.models.critic is not None
    before = natural_gradient.flat_parameters(agent.policy)
    critic = [parameter.detach().clone() for parameter in agent.models.critic.parameters()]
    metrics = agent.optimize(*prepared(agent, some_rows(agent.policy)))
    assert (metrics["skipped"], metrics["backtracks"], metrics["kl_step"]) == (1, 4, 0)
    assert torch.equal(natural_gradient.flat_parameters(agent.policy), before)
    assert any(not torch.equal(one, two) for one, two in zip(critic, agent.models.critic.parameters(), strict=True))


@pytest.mark.parametrize("cls", [TRPO, NPG])
@pytest.mark.parametrize("advantage", [0.0, math.nan, math.inf])
def test_without_a_signal_or_with_one_that_is_not_finite_the_policy_stays(cls: type[NPG], advantage: float) -> None:
    agent = natural(cls)
    before = natural_gradient.flat_parameters(agent.policy)
    ready, advantages = prepared(agent, some_rows(agent.policy))
    assert agent.optimize(ready, torch.full_like(advantages, advantage))["skipped"] == 1
    assert torch.equal(natural_gradient.flat_parameters(agent.policy), before)


@pytest.mark.parametrize("name", ["npg", "trpo"])
def test_an_error_within_a_natural_step_leaves_the_weights(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = make_agent(name)
    batch = some_batch(agent.policy)
    before = all_weights(agent)

    def failing(*_: Any) -> float:
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr("agents.learn.mean_kl", failing)
    with pytest.raises(torch.OutOfMemoryError, match="no room"):
        agent.update(batch)
    assert torch.equal(all_weights(agent), before)
    assert all(parameter.grad is None for parameter in agent.policy.parameters())
    assert (agent.steps, agent.learner.steps) == (0, 0)
