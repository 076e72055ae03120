"""Compares the expected gradient of an estimator on a case, found by enumerating all batches, with the exact gradient.

The expected gradient is a sum over all batches: the probability of a batch times the gradient of its loss. If the order of a
group's episodes does not matter, batches are multisets of episodes, with multinomial weights.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents.deferred import torch
from agents.experiments.court.cases import Case
from agents.experiments.court.record import Estimator, Record
from agents.experiments.court.tables import Tables
from verifiers import InvalidArgumentError

if TYPE_CHECKING:
    from torch import Tensor


TOLERANCE = 1e-5
"""A difference from the exact gradient of up to this number, relative to the exact gradient's norm, counts as rounding, even
for an estimator that computes in float32."""
MOST_ORDERED = 4
"""Maximum group size for enumerating batches in every order, which is needed if the order matters."""
_STEP = 5e-5


@dataclass(frozen=True)
class Comparison:
    """The expected gradient of an estimator on a case, and the exact gradient."""

    case: Case
    expected: Tensor
    """f64[s v], the expected gradient; NaN if a batch has a gradient that is not finite."""
    exact: Tensor
    """f64[s v], the exact gradient."""
    variance: float
    """Total variance of the gradient of one batch."""
    best_variance: float
    """Total variance of the mean of (R - b) grad log pi over a batch with the best constant b."""
    batches: int
    """Number of enumerated batches."""
    division: float = 0.0
    """Maximum difference between the gradients of a divided batch and the undivided batch, relative to the largest gradient."""

    @property
    def size(self) -> float:
        """Norm of the exact gradient."""
        return float(self.exact.norm())

    @property
    def scale(self) -> float:
        """Component of the expected gradient along the exact gradient, relative to the exact gradient's norm.

        Without bias, this number is 1.
        """
        return float((self.expected * self.exact).sum()) / self.size**2

    @property
    def bias(self) -> float:
        """Norm of the difference between the two gradients, relative to the exact gradient's norm."""
        return float((self.expected - self.exact).norm()) / self.size

    @property
    def cosine(self) -> float:
        """Cosine of the angle between the two gradients; NaN if the expected gradient is 0."""
        norm = float(self.expected.norm())
        return self.scale * self.size / norm if norm else math.nan

    @property
    def direction(self) -> float:
        """Norm of the expected gradient's part orthogonal to the exact gradient, relative to the norm of the part along it."""
        along = self.scale * self.exact
        size = float(along.norm())
        return float((self.expected - along).norm()) / size if size else math.inf

    @property
    def unbiased(self) -> bool:
        """Whether the two gradients are equal up to rounding."""
        return self.bias < TOLERANCE

    @property
    def proportional(self) -> bool:
        """Whether the expected gradient is a positive multiple of the exact gradient, up to rounding."""
        return self.scale > 0 and self.direction < TOLERANCE

    @property
    def relative_variance(self) -> float:
        """Variance of a batch's gradient, scaled to the exact gradient, relative to the `best_variance`."""
        return self.variance / self.scale**2 / self.best_variance if self.scale else math.inf

    @property
    def verdict(self) -> str:
        """The bias in words and a number."""
        if not math.isfinite(self.bias):
            return "not finite"
        if self.unbiased:
            return "unbiased"
        if self.proportional:
            return f"factor {self.scale:.4g}"
        return f"bias {self.bias:.1%}, cosine {self.cosine:.4f}" if self.expected.any() else "no gradient"

    def show(self) -> str:
        """The verdict, with the episodes, and both gradients at states where a gradient is not 0."""
        where = ((self.expected != 0) | (self.exact != 0)).any(dim=1)
        episodes = "\n".join(f"  {one}" for world in self.case.worlds for one in world)
        gradients = f"expected {self.expected[where].tolist()}\nexact    {self.exact[where].tolist()}"
        return f"{self}\n{episodes}\n{gradients}"

    def __str__(self) -> str:
        return f"{self.case.title}: {self.verdict} ({self.batches} batches)"


def compare(estimator: Estimator, case: Case, *, ordered: bool = False) -> Comparison:
    """Compare the expected gradient of an estimator on a case with the exact gradient.

    Args:
        estimator: The estimator.
        case: The case.
        ordered: Whether the order of a group's episodes matters, so that batches are enumerated in every order.

    Raises:
        InvalidArgumentError: If the estimator returns a wrong type or shape, or a group is too large to be enumerated in every
            order.
    """
    if ordered and case.group_size > MOST_ORDERED:
        raise InvalidArgumentError(
            f"groups of at most {MOST_ORDERED} are enumerated in every order, got {case.group_size}: the gradient of "
            f"{estimator.name} depends on the order of a group's episodes"
        )
    tables = Tables(case, successes=estimator.binary)
    exact = tables.gradient(estimator.objective)
    mean, square, count, largest, difference = torch.zeros_like(exact), 0.0, 0, 0.0, 0.0
    for rows, weight in batches(tables, ordered=ordered):
        gradient = -gradient_of(estimator, tables, rows, divided=bool(case.parts))
        mean += weight * gradient
        square += weight * float(gradient.square().sum())
        count += 1
        if case.parts:
            whole = -gradient_of(estimator, tables, rows)
            largest = max(largest, float(whole.norm()))
            difference = max(difference, float((gradient - whole).norm()))
    return Comparison(
        case,
        mean,
        exact,
        max(0.0, square - float(mean.square().sum())),
        tables.best_variance(),
        count,
        difference / largest if largest else 0.0,
    )


def batches(tables: Tables, *, ordered: bool) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every batch of a case, as indices of episodes group by group, with the batch's probability under the sampler."""
    groups = [list(_groups(tables, *span, ordered=ordered)) for span in itertools.pairwise(tables.first)]
    for chosen in itertools.product(*groups):
        yield (
            tuple(itertools.chain.from_iterable(rows for rows, _ in chosen)),
            math.prod(chance for _, chance in chosen),
        )


def _groups(tables: Tables, start: int, stop: int, *, ordered: bool) -> Iterator[tuple[tuple[int, ...], float]]:
    case = tables.case
    kept = _selections(range(start, stop), case.group_size - case.errored, ordered)
    broken = _selections(range(start, stop), case.errored, ordered)
    for (first, count), (last, times) in itertools.product(kept, broken):
        rows = first + last
        yield rows, count * times * math.prod(tables.sampled[row] for row in rows)


def _selections(items: Sequence[int], size: int, ordered: bool) -> list[tuple[tuple[int, ...], int]]:
    """Selections with repetition, each with the number of its possible orders."""
    if ordered:
        return [(chosen, 1) for chosen in itertools.product(items, repeat=size)]
    return [
        (chosen, math.factorial(size) // math.prod(map(math.factorial, Counter(chosen).values())))
        for chosen in itertools.combinations_with_replacement(items, size)
    ]


def order_matters(estimator: Estimator, case: Case) -> bool:
    """Whether the gradient of any batch depends on the order of a group's valid episodes."""
    tables = Tables(case, successes=estimator.binary)
    for rows, _ in batches(tables, ordered=False):
        size, kept = case.group_size, case.group_size - case.errored
        groups = [rows[start : start + size] for start in range(0, len(rows), size)]
        first = gradient_of(estimator, tables, rows)
        for turned in (False, True):
            moved = [(group[:kept][::-1] if turned else group[1:kept] + group[:1]) + group[kept:] for group in groups]
            other = list(itertools.chain.from_iterable(moved))
            if float((gradient_of(estimator, tables, other) - first).norm()) > TOLERANCE * (1 + float(first.norm())):
                return True
    return False


def gradient_of(estimator: Estimator, tables: Tables, rows: Sequence[int], *, divided: bool = False) -> Tensor:
    """The gradient f64[s v] of one batch's loss; `divided` computes it by the case's parts."""
    loss = loss_of(estimator, tables, rows, tables.theta, divided=divided)
    if not loss.requires_grad:
        return torch.zeros_like(tables.theta)
    (gradient,) = torch.autograd.grad(loss, tables.theta, allow_unused=True, materialize_grads=True)
    return gradient


def loss_of(
    estimator: Estimator, tables: Tables, rows: Sequence[int], theta: Tensor, *, divided: bool = False
) -> Tensor:
    """The loss of one batch; with `divided`, the reduction of the losses of its parts."""
    record = tables.record(rows, theta)
    if estimator.advantages is not None:
        record = dataclasses.replace(record, advantages=_per_token(estimator, record))
    loss = _policy_gradient if estimator.loss is None else estimator.loss
    records = [record.rows(part) for part in _parts(estimator, tables.case)] if divided else [record]
    parts: list[Any] = [loss(one) for one in records]
    for one in parts:
        if not (isinstance(one, torch.Tensor) and one.numel() == 1):
            came = f"a tensor of shape {tuple(one.shape)}" if isinstance(one, torch.Tensor) else repr(one)
            raise InvalidArgumentError(f"the loss of {estimator.name} must be a tensor of one number, got {came}")
    total = torch.stack([one.double().reshape(()) for one in parts]).sum()
    return total / len(parts) if estimator.reduction == "mean" else total


def _parts(estimator: Estimator, case: Case) -> list[slice]:
    """The rows of each part; parts hold whole groups, unless the estimator has advantages and the case splits groups."""
    into = 1 if case.splits_groups and estimator.advantages is not None else 0
    ends = list(itertools.accumulate(part * case.group_size for part in case.parts))
    inner = [end + into for end in ends[:-1]]
    return [slice(start, stop) for start, stop in itertools.pairwise([0, *inner, ends[-1]])]


def _policy_gradient(record: Record) -> Tensor:
    assert record.advantages is not None
    return -(torch.where(record.mask, record.advantages, 0.0) * record.logprobs).sum() / record.step_completions


def _per_token(estimator: Estimator, record: Record) -> Tensor:
    """An estimator's advantages f64[b l], without gradient."""
    assert estimator.advantages is not None
    given = as_numbers(estimator.name, estimator.advantages(record)).detach().double()
    if given.shape == record.groups.shape:
        return given[:, None].expand(record.tokens.shape)
    if given.shape != record.tokens.shape:
        raise InvalidArgumentError(
            f"the advantages of {estimator.name} must be one number for each episode, {tuple(record.groups.shape)}, or for "
            f"each token, {tuple(record.tokens.shape)}; got shape {tuple(given.shape)}"
        )
    return given


def as_numbers(name: str, result: object) -> Tensor:
    """The result of an estimator's function as a tensor."""
    try:
        return torch.as_tensor(result)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidArgumentError(
            f"{name} must return a loss, a tensor of one number, or advantages, a tensor or NumPy array of one number for each "
            f"episode or token; got {type(result).__name__}"
        ) from error


def has_kink(estimator: Estimator, case: Case) -> bool:
    """Whether a batch's loss has a kink at the learner's table: its slopes on the two sides differ."""
    tables = Tables(case, successes=estimator.binary)
    at = tables.theta.detach()
    directions = torch.randn(3, *at.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for (rows, _), direction in itertools.product(batches(tables, ordered=False), directions):
        step = _STEP * direction / direction.abs().max()
        below, middle, above = (
            float(loss_of(estimator, tables, rows, (at + sign * step).requires_grad_()).detach()) for sign in (-1, 0, 1)
        )
        left, right = (middle - below) / _STEP, (above - middle) / _STEP
        if abs(right - left) > 0.05 * (0.1 + max(abs(left), abs(right))):
            return True
    return False
