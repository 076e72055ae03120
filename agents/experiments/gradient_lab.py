"""The gradient lab: bias and variance of an agent's gradient estimate, compared with the exact gradient.

If vocabulary and budget are so small that all completions of a problem can be enumerated, the expected return
J = sum_y pi(y) R(y) and its gradient are known exactly. An estimator's batches are drawn from the same completions. So the mean
of an estimator can be compared with the gradient, and its variance with the variance of other estimators.

An estimate is exactly the gradient that the agent's learner would compute: the loss of each batch is differentiated with
respect to log-probabilities and entropies. The derivatives of these with respect to the weights are computed once for all
batches.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

import rlvr_envs
from agents import policies
from agents.batch import Batch, make_batch
from agents.deferred import torch
from agents.learn.agent import Agent
from agents.losses import token_weights
from agents.policies.trainable import TokenOutputs
from agents.rollouts.loop import Episode, rollout
from agents.types import Action, Trajectory
from verifiers import InvalidArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


MAX_SEQUENCES = 4096
"""Maximum number of sequences to try when completions are enumerated."""
MAX_BYTES = 4 * 2**30
"""Maximum memory for the derivatives of all completions, in bytes."""
_ROWS_AT_ONCE = 16
MAX_BATCHES = 10_000_000
"""Maximum number of batches of an examination, which stores a few numbers for each batch."""
_DIRECTIONS = 16
_ROUNDING = 1e-7
"""Maximum error, relative to the gradient's norm, that counts as rounding."""


class _Scripted:
    """A policy that plays given sequences, selected by the episode's seed."""

    version = 0

    def __init__(self, sequences: Sequence[Sequence[int]]) -> None:
        self._sequences = sequences
        self._sequence_of: dict[int, int] = {}
        self._begun: dict[int, int] = {}

    def begin(self, rows: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        self._sequence_of.update(zip(rows.tolist(), seeds.tolist(), strict=True))
        for row in rows.tolist():
            self._begun.pop(row, None)

    def act(
        self,
        observation: rlvr_envs.Observation,
        *,
        action_mask: NDArray[np.int8] | None = None,
        rows: NDArray[np.bool_] | None = None,
    ) -> Action:
        lengths = observation["length"].reshape(-1)
        tokens = np.zeros((len(lengths), 1), dtype=np.int64)
        for row in range(len(lengths)) if rows is None else np.flatnonzero(rows).tolist():
            start = self._begun.setdefault(row, int(lengths[row]))
            tokens[row, 0] = self._sequences[self._sequence_of[row]][int(lengths[row]) - start]
        counts = np.ones(len(lengths), dtype=np.int64) if rows is None else rows.astype(np.int64)
        return Action(tokens, counts, np.zeros((len(lengths), 1), dtype=np.float32))


def all_completions(
    env: VectorEnv[Any, Any, Any], problem: int, horizon: int, actions: Sequence[int]
) -> list[Trajectory]:
    """Play every completion of a problem once.

    Args:
        env: The environment; see `rollout`.
        problem: Index of the problem; -1 for an environment with only one problem.
        horizon: Token budget of the problem.
        actions: The tokens to choose from.
    """
    count = len(actions) ** horizon
    if count > MAX_SEQUENCES:
        size = str(count) if count < 10**9 else f"about 10^{math.log10(len(actions)) * horizon:.0f}"
        raise InvalidArgumentError(
            f"{len(actions)} tokens and a budget of {horizon} make {size} sequences; the lab enumerates at most "
            f"{MAX_SEQUENCES}: choose a smaller vocabulary or budget"
        )
    sequences = list(itertools.product(actions, repeat=horizon))
    episodes = [Episode(problem, 0, seed=number) for number in range(len(sequences))]
    played = rollout(env, _Scripted(sequences), episodes)
    return list({trajectory.tokens.tobytes(): trajectory for trajectory in played}.values())


class GradientLab:
    """Every completion of one problem, with its probability, return and derivatives under a policy.

    Args:
        policy: The policy whose gradients are computed. The policy's weights do not change.
        env: The environment; see `rollout`.
        problem: Index of the problem.
        horizon: Token budget of the problem.
        actions: The tokens to choose from; None for the policy's whole vocabulary.
    """

    def __init__(
        self,
        policy: policies.CausalLMPolicy,
        env: VectorEnv[Any, Any, Any],
        *,
        problem: int = 0,
        horizon: int,
        actions: Sequence[int] | None = None,
    ) -> None:
        self.policy = policy
        self.horizon = horizon
        chosen = range(policy.vocab_size) if actions is None else actions
        played = all_completions(env, problem, horizon, chosen)
        self._batch = make_batch(played)
        self.logprob_jacobian, self.entropy_jacobian, logprobs = _jacobians(policy, self._batch)
        self.completions = [
            dataclasses.replace(trajectory, logprobs=row[: len(trajectory.tokens)].astype(np.float32))
            for trajectory, row in zip(played, logprobs.numpy(), strict=True)
        ]
        self.returns = self._batch.scores
        self.probabilities = torch.where(self._batch.loss_mask, logprobs, 0.0).sum(dim=1).exp()
        total = float(self.probabilities.sum())
        if abs(total - 1) > 1e-4:
            raise InvalidArgumentError(
                f"the probabilities of all completions sum to {total:.6f}, not 1: pass the legal tokens as actions"
            )
        self.probabilities /= total
        self.expected_return = float(self.probabilities @ self.returns)
        self.gradient: Float[Tensor, " p"] = self.gradient_of(lambda p: p @ self.returns)
        """The gradient of the expected return, f64[p]."""
        self.values = self._exact_values()
        """f64[c l], the expected sum of rewards from the state before each token onwards, excluding earlier rewards."""

    def _exact_values(self) -> Tensor:
        """The value of each prefix, which is the mean sum of later rewards over the completions that begin with the prefix."""
        togo = self._batch.rewards.flip(1).cumsum(1).flip(1)
        paid = self.probabilities[:, None] * togo
        prefixes = [
            (row, position, self.completions[row].tokens[:position].tobytes())
            for row, position in self._batch.loss_mask.nonzero().tolist()
        ]
        mass: defaultdict[bytes, float] = defaultdict(float)
        total: defaultdict[bytes, float] = defaultdict(float)
        for row, position, prefix in prefixes:
            mass[prefix] += float(self.probabilities[row])
            total[prefix] += float(paid[row, position])
        values = torch.zeros_like(togo)
        for row, position, prefix in prefixes:
            values[row, position] = total[prefix] / mass[prefix]
        return values

    def gradient_of(self, objective: Callable[[Tensor], Tensor]) -> Float[Tensor, " p"]:
        """The gradient f64[p] of any function of the probabilities f64[c] of the completions."""
        p = self.probabilities.clone().requires_grad_(True)
        (slopes,) = torch.autograd.grad(objective(p), p)
        weights = (self.probabilities * slopes)[:, None] * self._batch.loss_mask
        return torch.einsum("cl,clp->p", weights, self.logprob_jacobian)

    def best_of(self, k: int) -> Callable[[Tensor], Tensor]:
        """The expected best return of k completions, as a function of the probabilities: sum_r r (F(r)^k - F(r-)^k)."""
        ascending = self.returns.argsort()

        def objective(probabilities: Tensor) -> Tensor:
            reached = probabilities[ascending].cumsum(0) ** k
            return (self.returns[ascending] * torch.diff(reached, prepend=reached.new_zeros(1))).sum()

        return objective

    def log_likelihood(self, terms: int) -> Callable[[Tensor], Tensor]:
        """The first terms of log p = -sum_j (1 - p)^j / j, where p is the probability of a success, as a function."""
        if not ((self.returns == 0) | (self.returns == 1)).all():
            raise InvalidArgumentError(
                f"the likelihood of a success needs returns of 1 and 0, got {sorted(set(self.returns.tolist()))}"
            )

        def objective(probabilities: Tensor) -> Tensor:
            failure = 1 - probabilities @ self.returns
            return -torch.stack([failure**j / j for j in range(1, terms + 1)]).sum()

        return objective

    @property
    def greedy(self) -> int:
        """The index of the completion that always takes the likeliest token."""
        best, prefix = 0, self.completions[0].prompt_length
        alive = list(range(len(self.completions)))
        for position in range(prefix, self._batch.tokens.shape[1]):
            alive = [row for row in alive if len(self.completions[row].tokens) > position] or alive
            best = max(alive, key=lambda row: float(self.completions[row].logprobs[position : position + 1].sum()))
            if len(self.completions[best].tokens) <= position:
                break
            token = self.completions[best].tokens[position]
            alive = [row for row in alive if self.completions[row].tokens[position] == token]
        return best

    def draw(self, groups: int, group_size: int, generator: np.random.Generator) -> list[int]:
        """Sample the indices of one batch's completions."""
        p = self.probabilities.numpy()
        return [int(index) for index in generator.choice(len(p), size=groups * group_size, p=p / p.sum())]

    def batch_of(self, agent: Agent, drawn: Sequence[int]) -> Batch:
        """Make a batch of drawn completions, in groups of the agent's group size, with the greedy score as the baseline."""
        baseline = float(self.returns[self.greedy])
        size = agent.config.group_size
        return make_batch(
            [
                dataclasses.replace(self.completions[index], group=number // size, baseline=baseline)
                for number, index in enumerate(drawn)
            ]
        )

    def estimate(self, agent: Agent, drawn: Sequence[int], values: Tensor | None = None) -> Float[Tensor, " p"]:
        """The estimate f64[p] of the objective's gradient from one batch. The objective is maximised.

        The agent's state, such as a moving average, then changes as after an update.

        Args:
            agent: The estimator.
            drawn: Indices of completions, `group_size` for each group.
            values: The critic's values f64[c l]; by default the exact values.
        """
        batch = agent.prepare(self.batch_of(agent, drawn))
        rows = torch.tensor(drawn)
        if agent.models.critic is not None:
            table = self.values if values is None else values
            width = batch.tokens.shape[1]
            batch = dataclasses.replace(batch, values=table[rows, :width], bootstrap=torch.zeros(len(batch)).double())
        coefficients = _coefficients(agent, batch)
        agent.after_update(batch)
        total = torch.zeros_like(self.gradient)
        for jacobian, coefficient in zip((self.logprob_jacobian, self.entropy_jacobian), coefficients, strict=True):
            if coefficient is not None:
                total -= torch.einsum("bl,blp->p", coefficient, jacobian[rows, : coefficient.shape[1]])
        return total


def _jacobians(policy: policies.CausalLMPolicy, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Derivatives f64[c l p] of log-probabilities and entropies with respect to the weights; log-probabilities f64[c l]."""
    parameters = list(policy.parameters())
    shape = (*batch.tokens.shape, sum(parameter.numel() for parameter in parameters))
    if 2 * 8 * math.prod(shape) > MAX_BYTES:
        raise InvalidArgumentError(
            f"the derivatives of {shape[0]} completions of up to {shape[1]} tokens by {shape[2]} weights need "
            f"{2 * 8 * math.prod(shape) / 2**30:.1f} GiB; the lab takes at most {MAX_BYTES / 2**30:.0f}: choose a smaller "
            "vocabulary, budget or model"
        )
    jacobians = torch.zeros(shape, dtype=torch.float64), torch.zeros(shape, dtype=torch.float64)
    logprobs = torch.zeros(shape[:2], dtype=torch.float64)
    # A derivative costs a backward pass over the whole micro-batch. So micro-batches are small.
    for rows in torch.arange(shape[0]).split(_ROWS_AT_ONCE):
        micro_batch = batch.rows(rows).to(policy.model.device)
        first, width = micro_batch.first, micro_batch.tokens.shape[1]
        outputs = policy.forward(micro_batch.tokens, first, micro_batch.legal_tokens(first, policy.vocab_size))
        for row, position in micro_batch.loss_mask.nonzero().tolist():
            for jacobian, output in zip(jacobians, (outputs.logprobs, outputs.entropy), strict=True):
                grads = torch.autograd.grad(output[row, position - first], parameters, retain_graph=True)
                jacobian[rows[row], position] = torch.cat([grad.reshape(-1) for grad in grads]).cpu().double()
        logprobs[rows, first:width] = outputs.logprobs.detach().cpu().double()
    return *jacobians, torch.where(batch.loss_mask, logprobs, 0.0)


def _coefficients(agent: Agent, batch: Batch) -> tuple[Tensor | None, Tensor | None]:
    """Derivatives f64[b l] of the agent's loss with respect to its batch's log-probabilities and entropies."""
    shape = batch.loss_mask.shape
    leaves = batch.old.double().requires_grad_(True), torch.zeros(shape).double().requires_grad_(True)
    loss = batch_loss(agent, batch, agent.advantages(batch), TokenOutputs(*leaves))
    if not loss.requires_grad:
        return None, None
    first, second = torch.autograd.grad(loss, leaves, allow_unused=True)
    return first, second


def batch_loss(agent: Agent, batch: Batch, advantages: Tensor, outputs: TokenOutputs) -> Tensor:
    """The loss f64[] of an agent's optimiser step on a whole batch, without a critic's loss."""
    config, mask = agent.config, batch.loss_mask
    weights = token_weights(
        mask, config.aggregation, num_completions=int(batch.valid.sum()), max_tokens=config.max_tokens
    )
    terms = agent.updating.terms(batch, outputs, advantages)
    return torch.stack([(torch.where(mask, term, 0.0) * weights).sum() for term in terms.values()]).sum()


_FEWEST_BATCHES = 50
"""Minimum number of batches for a reliable standard error of their mean."""


@dataclass(frozen=True)
class BiasReport:
    """Results of the lab for one estimator."""

    name: str
    batches: int
    bias: float
    """Norm of the difference between the estimate's mean and the gradient, relative to the gradient's norm, with the expected
    sampling error subtracted."""
    bias_error: float
    """Root mean square of the sampling error in `bias`, relative to the gradient's norm."""
    direction: float
    """Norm of the mean's component orthogonal to the gradient, relative to the component along the gradient, with the expected
    sampling error subtracted. A multiple of the gradient has 0."""
    direction_error: float
    """Root mean square of the sampling error in the orthogonal component, relative to the component along the gradient."""
    z: float
    """Largest difference between mean and gradient, in standard errors, along the gradient and along some random directions
    orthogonal to the gradient."""
    z_across: float
    """Largest difference along the orthogonal directions only, in standard errors. The estimate's scale does not affect this
    number."""
    scale: float
    """Component of the mean along the gradient, relative to the gradient's norm. An unbiased estimate has 1."""
    cosine: float
    """Cosine of the angle between the estimate's mean and the gradient."""
    raw_variance: float
    """Total variance of one batch's estimate, relative to the squared norm of the gradient."""
    variance: float
    """Total variance of one batch's estimate, relative to the squared component of the mean along the gradient. In this form,
    estimates of different scale can be compared."""

    @property
    def unbiased(self) -> bool:
        """Whether the mean is consistent with the gradient, at a significance level of 0.1 % over all comparisons."""
        bound = _z_bound(_DIRECTIONS + 2)
        return self.z < bound and self.bias < bound * self.bias_error

    @property
    def proportional(self) -> bool:
        """Whether the mean is consistent with a positive multiple of the gradient."""
        bound = _z_bound(_DIRECTIONS + 1)
        return self.scale > 0 and self.z_across < bound and self.direction < bound * self.direction_error

    @property
    def bias_text(self) -> str:
        """The bias if the batches show a bias, otherwise its upper bound."""
        return _shown_or_excluded(self.bias, self.bias_error, shown=not self.unbiased, batches=self.batches)

    @property
    def direction_text(self) -> str:
        """The bias in direction if the batches show such a bias, otherwise its upper bound."""
        if self.scale <= 0:
            return "not along"
        return _shown_or_excluded(
            self.direction, self.direction_error, shown=not self.proportional, batches=self.batches
        )

    def __str__(self) -> str:
        return (
            f"{self.name}: bias {self.bias_text} (z {self.z:.1f}), of the direction {self.direction_text}, scale "
            f"{self.scale:.3f}, cosine {self.cosine:.4f}, variance {self.variance:.3g} ({self.batches} batches)"
        )


def _shown_or_excluded(bias: float, error: float, *, shown: bool, batches: int) -> str:
    """A bias that the sample shows, or else the largest bias that the sample does not exclude, at a level of 0.1 %."""
    if batches < _FEWEST_BATCHES:
        return "too few batches"
    return f"{bias:.1%}" if shown else f"below {bias + _z_bound(1) * error:.1%}"


def _z_bound(comparisons: int) -> float:
    """The two-sided normal quantile for a level of 0.1 % over several comparisons (Bonferroni)."""
    return float(torch.special.ndtri(torch.tensor(1 - 0.0005 / comparisons, dtype=torch.float64)))


def examine(
    lab: GradientLab,
    name: str,
    agent: Agent,
    *,
    batches: int = 2000,
    seed: int = 0,
    values: Tensor | None = None,
    target: Tensor | None = None,
    progress: Callable[[int], None] | None = None,
) -> BiasReport:
    """Compare an agent's gradient estimate with the exact gradient.

    Args:
        lab: The lab with the problem and the policy.
        name: Name of the estimator, for the report.
        agent: The estimator; its config has the number of groups and the group size. Only the aggregation
            `SEQUENCE_MEAN_TOKEN_SUM` has the gradient's scale. An aggregation that divides by each completion's length also has
            another direction.
        batches: Number of batches to draw.
        seed: Seed of the draws.
        values: See `GradientLab.estimate`.
        target: The gradient f64[p] to compare with; by default the gradient of the expected return.
        progress: Called with the number of batches so far.

    Raises:
        InvalidArgumentError: If there are fewer than two batches or more than `MAX_BATCHES`, the seed is negative, or the
            gradient is 0.
    """
    gradient = lab.gradient if target is None else target
    _check_examination(batches, seed, gradient)
    generator = np.random.default_rng(seed)
    config = agent.config
    mean, square = torch.zeros_like(gradient), 0.0
    size = float(gradient.norm())
    directions = _directions(gradient)
    along = torch.zeros(batches, len(directions), dtype=torch.float64)
    for number in range(batches):
        estimate = lab.estimate(agent, lab.draw(config.problems_per_step, config.group_size, generator), values)
        mean += estimate / batches
        square += float(estimate @ estimate) / batches
        along[number] = directions @ estimate
        if progress is not None:
            progress(number + 1)
    errors = along.mean(dim=0) - directions @ gradient
    deviations = along.std(dim=0) / math.sqrt(batches) + _ROUNDING * size
    variance = max(0.0, square - float(mean @ mean)) * batches / (batches - 1)
    component = float(mean @ gradient) / size
    across = max(0.0, variance - float(along[:, 0].var()))
    bias, bias_error = _without_noise(float((mean - gradient).square().sum()), variance / batches, size)
    squared = max(0.0, float(mean @ mean) - component**2)
    direction, direction_error = _without_noise(squared, across / batches, abs(component))
    return BiasReport(
        name=name,
        batches=batches,
        bias=bias,
        bias_error=bias_error,
        direction=direction,
        direction_error=direction_error,
        z=float((errors / deviations).abs().max()),
        z_across=float((errors / deviations)[1:].abs().max()),
        scale=component / size,
        cosine=component / (float(mean.norm()) + 1e-300),
        raw_variance=variance / size**2,
        variance=variance / component**2 if component else math.inf,
    )


def _without_noise(squared: float, noise: float, size: float) -> tuple[float, float]:
    """The root of a squared norm minus its expected noise, and the root of the noise, both relative to a size."""
    if not size:
        return math.inf, math.inf
    return math.sqrt(max(0.0, squared - noise)) / size, math.sqrt(noise) / size + _ROUNDING


def _check_examination(batches: int, seed: int, gradient: Tensor) -> None:
    if not 2 <= batches <= MAX_BATCHES:
        raise InvalidArgumentError(f"batches must be from 2 to {MAX_BATCHES}, got {batches}")
    if seed < 0:
        raise InvalidArgumentError(f"seed must be at least 0, got {seed}")
    if not gradient.any():
        raise InvalidArgumentError(
            "the gradient to compare with is 0, as when all completions have the same return: choose another problem, verifier "
            "or budget"
        )


def _directions(gradient: Tensor) -> Tensor:
    """Unit vectors f64[d p]: the gradient's direction, and some random directions orthogonal to the gradient."""
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(_DIRECTIONS, len(gradient), generator=generator, dtype=torch.float64)
    drawn -= torch.outer(drawn @ gradient, gradient) / gradient.square().sum()
    every = torch.cat([gradient[None], drawn])
    unit: Tensor = every / every.norm(dim=1, keepdim=True)
    return unit
