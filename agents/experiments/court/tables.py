"""The policy of a case, every episode with its probability, and the exact gradient of each objective.

The policy is a table of logits, with one row for each state. Gradients are with respect to the entries of this table.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agents.deferred import torch
from agents.experiments.court.cases import Case
from agents.experiments.court.record import Objective, Record
from agents.experiments.court.worlds import VOCABULARY, World, WorldEpisode, binary

if TYPE_CHECKING:
    from torch import Tensor

_PADDING = (-1, (), False)
_MOST_STATES = 64
"""Number of rows to draw for every table; it is the same for all cases, so that a state has the same row in all cases that
share it.
"""


class Tables:
    """Every episode of a case's worlds, and the tables of the learner, the sampler and the reference."""

    def __init__(self, case: Case, *, successes: bool = False) -> None:
        self.case = case
        self.worlds: list[World] = [binary(world) if successes else world for world in case.worlds]
        self.first = list(itertools.accumulate((len(world) for world in self.worlds), initial=0))
        """The index of the first episode of each group's world among all episodes."""
        every = [(number, one) for number, world in enumerate(self.worlds) for one in world]
        self._episodes = [one for _, one in every]
        self._width = 1 + max(len(one.tokens) for one in self._episodes)
        # A world that two groups share has the same states in both groups. The policy's own states come first, so that episodes
        # keep their rows of the table if the environment's tokens are left out.
        keys = [self._keys(self.worlds.index(self.worlds[number]), one) for number, one in every]
        in_order = sorted(dict.fromkeys(itertools.chain.from_iterable(keys)), key=lambda key: not key[2])
        states = {key: number for number, key in enumerate(in_order)}
        self._states = torch.tensor([[states[key] for key in row] for row in keys])
        generator = torch.Generator().manual_seed(0)

        def table(size: float) -> Tensor:
            drawn = torch.randn(_MOST_STATES, VOCABULARY, generator=generator, dtype=torch.float64)
            return size * drawn[: len(states)]

        self.theta: Tensor = (table(0.7) * case.logit_scale).requires_grad_()
        """f64[s v], the learner's logits."""
        learner = self.theta.detach()
        noise, other = table(1.0), table(0.5)
        self._old_logits = learner + case.stale * noise if case.old_is_sampler else learner
        self._sampler_logits = learner + case.stale * noise
        self._reference_logits = learner + other
        self._value_errors = table(0.3)[:, 0]
        self._columns = self._make_columns()

    def _keys(self, world: int, one: WorldEpisode) -> list[tuple[int, tuple[int, ...], bool]]:
        """The state before each token: the index of the world, the earlier tokens, and whether the policy chooses the token."""
        keys = [
            (world, one.tokens[:at] if not own else tuple(itertools.compress(one.tokens[:at], one.own)), own)
            for at, own in enumerate(one.own)
        ]
        return [_PADDING, *keys, *[_PADDING] * (self._width - 1 - len(keys))]

    def _padded(self, rows: Sequence[Sequence[Any]]) -> Tensor:
        return torch.tensor([[0, *row, *[0] * (self._width - 1 - len(row))] for row in rows])

    def _make_columns(self) -> dict[str, Tensor]:
        """The columns of a record of every episode that don't depend on the learner's table."""
        episodes = self._episodes
        self.own = self._padded([one.own for one in episodes]).bool()
        self._tokens = self._padded([one.tokens for one in episodes])
        self.rewards = self._padded([one.rewards for one in episodes]).double()
        self.scores = self.rewards.sum(1)
        begins = self.own & ~torch.nn.functional.pad(self.own, (1, 0))[:, :-1]
        half = (torch.arange(len(episodes)) % 2).double()
        return {
            "tokens": self._tokens,
            "lengths": torch.tensor([1 + len(one.tokens) for one in episodes]),
            "mask": self.own,
            "turns": begins.long().cumsum(1) - 1,
            "truncated": torch.tensor([one.truncated for one in episodes]),
            "rewards": self.rewards,
            "scores": self.scores,
            "components": torch.stack([half, self.scores - half], dim=1),
            "values": self._values(),
            "baselines": self._likeliest_scores(),
            "old_logprobs": self._logprobs(self._old_logits),
            "sampler_logprobs": self._logprobs(self._sampler_logits),
            "reference_logprobs": self._logprobs(self._reference_logits),
        }

    def _logprobs(self, logits: Tensor) -> Tensor:
        rows = (logits / self.case.temperature).log_softmax(-1)[self._states]
        return rows.gather(-1, self._tokens[..., None])[..., 0]

    def log_probabilities(self, logits: Tensor) -> Tensor:
        """The log-probability f64[c] of every episode in its world."""
        return torch.where(self.own, self._logprobs(logits), 0.0).sum(1)

    @cached_property
    def sampled(self) -> list[float]:
        """The probability of every episode under the sampler."""
        chances: list[float] = self.log_probabilities(self._sampler_logits).exp().tolist()
        return chances

    def _values(self) -> Tensor:
        """The expected sum of rewards from each state onwards, excluding earlier rewards."""
        chances = self.log_probabilities(self.theta.detach()).exp()
        togo = self.rewards.flip(1).cumsum(1).flip(1)
        mass, total = (torch.zeros(int(self._states.max()) + 1, dtype=torch.float64) for _ in range(2))
        mass.index_add_(0, self._states.flatten(), chances[:, None].expand_as(togo).flatten())
        total.index_add_(0, self._states.flatten(), (chances[:, None] * togo).flatten())
        values = total / mass
        return (values if self.case.exact_values else values + self._value_errors)[self._states]

    def _likeliest_scores(self) -> Tensor:
        """For each episode, the score of the likeliest episode in the same world."""
        likely = self.log_probabilities(self.theta.detach())
        best = [
            self.scores[start:stop][likely[start:stop].argmax()].expand(stop - start)
            for start, stop in itertools.pairwise(self.first)
        ]
        return torch.cat(best)

    def record(self, rows: Sequence[int], theta: Tensor) -> Record:
        """Make the record of some episodes, which are given group by group."""
        case, size = self.case, self.case.group_size
        index = torch.tensor(rows)
        valid = torch.arange(len(rows)) % size < size - case.errored
        fields = {name: column[index] for name, column in self._columns.items()}
        mask = fields.pop("mask") & valid[:, None]
        # A prompt has no states, so an estimator that reads its log-probabilities gets no gradient from them.
        states = self._states[index]
        logits = torch.where(torch.arange(states.shape[1])[:, None] > 0, theta[states], 0.0)
        logprobs = (logits / case.temperature).log_softmax(-1).gather(-1, fields["tokens"][..., None])[..., 0]
        broken = torch.where(valid, 0.0, torch.nan)
        return Record(
            **fields
            | {"rewards": torch.where(valid[:, None], fields["rewards"], 0.0), "scores": fields["scores"] + broken}
            | {"components": fields["components"] + broken[:, None]},
            mask=mask,
            groups=torch.arange(len(rows)) // size,
            valid=valid,
            logits=logits,
            logprobs=logprobs,
            temperature=case.temperature,
            kl_coefficient=case.kl_coefficient,
            max_tokens=int(self.own.sum(1).max()),
            step_completions=int(valid.sum()),
            step_tokens=int(mask.sum()),
        )

    # The exact gradient

    def gradient(self, objective: Objective) -> Tensor:
        """The gradient f64[s v] of an objective, averaged over the problems."""
        logs = self.log_probabilities(self.theta)
        reference = self.log_probabilities(self._reference_logits)
        values = []
        for start, stop in itertools.pairwise(self.first):
            chances, returns = logs[start:stop].exp(), self.scores[start:stop]
            value = _value(objective, chances, returns, self.case.group_size - self.case.errored)
            divergence = (chances * (logs - reference)[start:stop]).sum()
            values.append(value - self.case.kl_coefficient * divergence)
        (gradient,) = torch.autograd.grad(torch.stack(values).mean(), self.theta)
        return gradient

    def kl_gradients(self) -> dict[str, Tensor]:
        """Gradients f64[s v] that a KL term may have, by the name of the divergence."""
        logs = self.log_probabilities(self.theta)
        chances = logs.exp() / len(self.worlds)
        ours, theirs = (
            (table / self.case.temperature).log_softmax(-1) for table in (self.theta, self._reference_logits)
        )
        forward, backward = (
            (torch.where(self.own, (p.exp() * (p - q)).sum(-1)[self._states], 0.0).sum(1) * chances.detach()).sum()
            for p, q in ((ours, theirs), (theirs, ours))
        )
        whole = (chances * (logs - self.log_probabilities(self._reference_logits))).sum()
        named = {
            "KL(policy || reference) of whole episodes": whole,
            "KL(policy || reference) at the states visited, as if they did not depend on the policy": forward,
            "KL(reference || policy) at the states visited, the other direction": backward,
        }
        return {name: torch.autograd.grad(value, self.theta, retain_graph=True)[0] for name, value in named.items()}

    def best_variance(self) -> float:
        """The minimum variance of a batch's mean of (R - b) grad log pi, over all constants b for each problem."""
        logs = self.log_probabilities(self.theta)
        slopes = torch.stack([torch.autograd.grad(one, self.theta, retain_graph=True)[0].flatten() for one in logs])
        chances, norms = logs.detach().exp(), slopes.square().sum(1)
        total = 0.0
        for start, stop in itertools.pairwise(self.first):
            p, g, n = chances[start:stop], self.scores[start:stop], norms[start:stop]
            centred = g - (p * n * g).sum() / (p * n).sum()
            mean = (p * centred) @ slopes[start:stop]
            total += float((p * n * centred.square()).sum() - mean.square().sum())
        return total / self.case.group_size / len(self.worlds) ** 2


def _value(objective: Objective, chances: Tensor, returns: Tensor, group_size: int) -> Tensor:
    """An objective as a function of the probabilities f64[c] of episodes with returns f64[c]."""
    match objective:
        case "return":
            return chances @ returns
        case "best of 2":
            pairs = torch.maximum(returns[:, None], returns[None, :])
            return chances @ pairs @ chances
        case "log-likelihood":
            failure = 1 - chances @ returns
            return -torch.stack([failure**j / j for j in range(1, group_size)]).sum()
