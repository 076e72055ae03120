"""The findings of a trial: sentences with numbers, and the smallest cases that show them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents.deferred import torch
from agents.experiments.court.cases import BASE, GROUP_SIZES, LENGTHS, Case, every_case
from agents.experiments.court.record import Estimator, Record
from agents.experiments.court.tables import Tables
from agents.experiments.court.trial import MOST_ORDERED, TOLERANCE, Comparison, compare, has_kink, order_matters
from verifiers import InvalidArgumentError

if TYPE_CHECKING:
    from torch import Tensor

_FORMS: dict[str, Callable[[int, int], float]] = {
    "": lambda n, total: 1.0,
    "(n - 1) / n in groups of n": lambda n, total: (n - 1) / n,
    "n / (n - 1) in groups of n": lambda n, total: n / (n - 1),
    "(N - 1) / N in batches of N episodes": lambda n, total: (total - 1) / total,
    "n in groups of n": lambda n, total: n,
    "1 / n in groups of n": lambda n, total: 1 / n,
    "n - 1 in groups of n": lambda n, total: n - 1,
    "N in batches of N episodes": lambda n, total: total,
    "1 / N in batches of N episodes": lambda n, total: 1 / total,
}
"""Possible factors of the gradient, up to a constant, as functions of the numbers of valid episodes in a group and in the
batch."""
_ABOUT = {
    LENGTHS: "episodes differ in length",
    "several turns": "episodes have different numbers of turns, which are paid one by one",
    "two problems": "a batch has two problems of different difficulty",
    "tool tokens": "tokens of the environment are between the policy's own",
    "truncated": "episodes are truncated",
    "excluded": "the verifier breaks on an episode of each group",
    "temperature": "the temperature is 0.5",
    "stale samples": "older weights sampled, which ratios are relative to",
    "another engine": "another engine sampled",
    "accumulation": "micro-batches of unequal size",
    "ranks": "the shares of two ranks",
}


@dataclass(frozen=True)
class Finding:
    """One sentence about an estimator."""

    sentence: str
    shown_by: Case | None = None
    """The smallest case that shows the finding; None for a finding that is not a fault."""


@dataclass(frozen=True)
class Judgement:
    """All comparisons of an estimator, and the resulting findings."""

    estimator: Estimator
    comparisons: tuple[Comparison, ...]
    findings: tuple[Finding, ...] = ()

    def of(self, name: str) -> list[Comparison]:
        """The comparisons of a case, ordered by group size."""
        return [one for one in self.comparisons if one.case.name == name]

    def code(self) -> str:
        """A program that shows every fault on its smallest case.

        Empty without a fault, or if the estimator can't be imported.
        """
        shown = dict.fromkeys(finding.shown_by for finding in self.findings if finding.shown_by is not None)
        if not (shown and self.estimator.address):
            return ""
        lines = [
            "from agents.experiments.court import case, compare, load",
            "",
            f'tried = load("{self.estimator.address}")',
        ]
        for one in shown:
            small = ", small=True" if one.smallest and one == one.small() else ""
            lines.append(f'print(compare(tried, case("{one.name}", {one.group_size}{small})).show())')
        return "\n".join(lines)


def judge(estimator: Estimator, progress: Callable[[int, int], None] | None = None) -> Judgement:
    """Try an estimator on every case about which it makes a claim.

    Args:
        estimator: The estimator.
        progress: Called with the number of finished cases and the number of all cases.

    Raises:
        InvalidArgumentError: If the estimator makes no claim about the case of equally long episodes, with which other cases
            are compared.
    """
    tried = [
        one
        for one in every_case()
        if one.name not in estimator.skipped
        and {one.group_size, one.group_size - one.errored}.issubset(estimator.group_sizes)
        and not (one.parts and estimator.loss is None)
    ]
    ordered = any(order_matters(estimator, one) for one in _in_three(tried))
    tried = [one for one in tried if not (ordered and one.group_size > MOST_ORDERED)]
    if not any(one.name == BASE for one in tried):
        sizes = GROUP_SIZES[BASE]
        raise InvalidArgumentError(
            f"{estimator.name} can't be tried: it needs a claim about the case {BASE!r} in groups of {min(sizes)} to "
            f"{MOST_ORDERED if ordered else max(sizes)}{', since the order in a group matters to it' if ordered else ''}; got "
            f"group_sizes={list(estimator.group_sizes)} and skipped={list(estimator.skipped)}"
        )
    comparisons = []
    for number, one in enumerate(tried):
        if progress is not None:
            progress(number, len(tried))
        try:
            comparisons.append(compare(estimator, one, ordered=ordered))
        except Exception as error:
            error.add_note(f"in the case {one.title!r} of the court, on {estimator.name}")
            raise
    judgement = Judgement(estimator, tuple(comparisons))
    return dataclasses.replace(judgement, findings=tuple(_findings(judgement, ordered)))


def _in_three(tried: Sequence[Case]) -> Iterator[Case]:
    """The cases for finding out whether the order matters, with groups of three, or else the next larger or largest size."""
    for name in (BASE, "several turns"):
        sizes = [one for one in tried if one.name == name]
        yield from [one for one in sizes if one.group_size >= 3][:1] or sizes[-1:]


def _findings(judgement: Judgement, ordered: bool) -> Iterator[Finding]:
    estimator = judgement.estimator
    broken = [one.case for one in judgement.comparisons if not math.isfinite(one.bias)]
    if broken:
        yield Finding(f"The gradient is not finite in the case {broken[0].title!r}.", broken[0])
        return
    if not any(one.expected.any() for one in judgement.of(BASE)):
        shown = judgement.of(BASE)[0]
        yield Finding(
            "There is no gradient: it is 0 in groups of every size. A loss depends on the record's log-probabilities, and "
            "advantages on the scores.",
            _smallest(estimator, shown),
        )
        return
    yield _base(judgement)
    if ordered:
        yield Finding("The gradient depends on the order of the episodes in a group.", judgement.of(BASE)[0].case)
    for name in (LENGTHS, "several turns", "two problems"):
        yield from _departure(judgement, name)
    for name in ("tool tokens", "truncated", "excluded", "temperature"):
        yield from _difference(judgement, name, ordered=ordered)
    yield from _kl(judgement)
    for name in ("stale samples", "another engine"):
        yield from _off_policy(judgement, name)
    for name in ("accumulation", "ranks"):
        yield from _division(judgement, name)
    for one in judgement.of(LENGTHS)[:1]:
        if estimator.loss is not None and has_kink(estimator, one.case):
            yield Finding("The loss is not differentiable where the policy equals the one that sampled.", one.case)
    for one in judgement.of(LENGTHS):
        if one.case.group_size == MOST_ORDERED and one.scale > 0:
            times = f"{one.relative_variance:.3g} times that with the best constant baseline"
            yield Finding(f"In groups of {MOST_ORDERED} the variance is {times}, at equal size of the gradient.")


def _base(judgement: Judgement) -> Finding:
    """The finding for equally long episodes."""
    series = judgement.of(BASE)
    first, last = series[0], series[-1]
    groups = f"in groups of {first.case.group_size}" + (f" to {last.case.group_size}" if last is not first else "")
    if all(one.unbiased for one in series):
        return Finding(f"Unbiased {groups}, where episodes have one length.")
    shown = _smallest(judgement.estimator, first)
    if not all(one.proportional for one in series):
        worst = max(series, key=lambda one: one.direction)
        return Finding(
            f"Biased in direction {groups}, even where episodes have one length: what lies across the gradient is up to "
            f"{100 * worst.direction:.3g}% of what lies along it, which is {first.scale:.4g} to {last.scale:.4g} times the "
            "gradient.",
            shown,
        )
    form = _form(series + [one for one in judgement.of("two problems") if one.proportional]) or _form(series)
    if form is None:
        listed = ", ".join(f"{one.scale:.4g} for {one.case.group_size}" for one in series)
        return Finding(f"The direction is unbiased, the size depends on that of the group: {listed}.", shown)
    name, constant = form
    if not name:
        return Finding(
            f"The direction is unbiased, and the size {constant:.4g} times that of the gradient {groups}.", shown
        )
    times = "" if abs(constant - 1) < TOLERANCE else f"{constant:.4g} times "
    return Finding(f"The direction is unbiased, and the size biased by the factor {times}{name}.", shown)


def _form(series: Sequence[Comparison]) -> tuple[str, float] | None:
    """The closed form of the factors, and its constant factor. The form is empty if the factors are constant."""
    for name, form in _FORMS.items():
        ratios = []
        for one in series:
            valid = one.case.group_size - one.case.errored
            ratios.append(one.scale / form(valid, valid * len(one.case.worlds)))
        if max(ratios) - min(ratios) < TOLERANCE * max(ratios):
            return name, ratios[0]
    return None


def _departure(judgement: Judgement, name: str) -> Iterator[Finding]:
    """The bias that a case adds: to the case of unequal lengths if this case is already biased, otherwise to the base case."""
    usual = {one.case.group_size: one for one in judgement.of(BASE)}
    if name != LENGTHS and not all(one.proportional for one in judgement.of(LENGTHS)):
        usual = {one.case.group_size: one for one in judgement.of(LENGTHS)}
    for one in judgement.of(name):
        plain = usual[one.case.group_size]
        if _as_expected(one, plain, judgement):
            continue
        where = f"Where {_ABOUT[name]}, in groups of {one.case.group_size},"
        if one.proportional:
            text = f"{where} the factor is {one.scale:.4g} in place of {plain.scale:.4g}."
        elif plain.proportional:
            divided = _division_by_length(judgement.estimator, one.case) if name == LENGTHS else ""
            text = f"{where} it is biased in direction: bias {one.bias:.1%}, cosine {one.cosine:.4f}{divided}."
        elif one.cosine < plain.cosine - 0.01:
            text = f"{where} it is further from the gradient: cosine {one.cosine:.4f}, {plain.cosine:.4f} otherwise."
        else:
            continue
        yield Finding(text, _smallest(judgement.estimator, one))
        return


def _as_expected(one: Comparison, plain: Comparison, judgement: Judgement) -> bool:
    """Whether the gradient is proportional to the exact gradient, by the factor or closed form of the base case."""
    if not (one.proportional and plain.proportional):
        return False
    form = _form([*judgement.of(BASE), one])
    return abs(one.scale - plain.scale) < TOLERANCE * plain.scale or (form is not None and form[0] != "")


def _difference(judgement: Judgement, name: str, *, ordered: bool) -> Iterator[Finding]:
    """Find how a feature that should not change the expected gradient changes it."""
    for one in judgement.of(name)[:1]:
        same = compare(judgement.estimator, one.case.counterpart(), ordered=ordered).expected / one.case.temperature
        expected = torch.nn.functional.pad(same, (0, 0, 0, len(one.expected) - len(same)))
        change = float((one.expected - expected).norm() / expected.norm())
        if change > 10 * TOLERANCE:
            verdict = "" if one.unbiased else f" ({one.verdict})"
            text = f"Where {_ABOUT[name]}, which should change nothing, the gradient changes by {change:.1%}{verdict}."
            yield Finding(text, one.case)


def _smallest(estimator: Estimator, shown: Comparison) -> Case:
    """The case with the smallest problems that still show a bias."""
    small = shown.case.small()
    if small.group_size > MOST_ORDERED:
        return shown.case
    found = compare(estimator, small, ordered=True)
    return small if (found.unbiased, found.proportional) == (shown.unbiased, shown.proportional) else shown.case


def _division_by_length(estimator: Estimator, one: Case) -> str:
    """Describe a bias that is due to division by numbers of tokens; multiplying gradients by these numbers removes it."""
    loss = estimator.loss
    if loss is None:
        return ""
    for name in ("episode", "batch"):

        def multiplied(record: Record, name: str = name) -> Tensor:
            counts = record.mask.sum(1, keepdim=True) if name == "episode" else record.mask.sum()
            values = record.logprobs.detach()
            return loss(dataclasses.replace(record, logprobs=values + counts * (record.logprobs - values)))

        if compare(dataclasses.replace(estimator, loss=multiplied), one).proportional:
            return f"; each {name}'s gradient is divided by its number of tokens"
    return ""


def _kl(judgement: Judgement) -> Iterator[Finding]:
    """Find the divergence whose gradient equals the gradient of the KL term."""
    for one in judgement.of("KL term")[:1]:
        without = compare(judgement.estimator, dataclasses.replace(one.case, kl_coefficient=0.0))
        term = (without.expected - one.expected) / one.case.kl_coefficient
        if float(term.norm()) < TOLERANCE:
            yield Finding("The coefficient of the KL term is not used.")
            continue
        gradients = Tables(one.case, successes=judgement.estimator.binary).kl_gradients()
        cosines = {
            name: float((term * gradient).sum() / term.norm() / gradient.norm()) for name, gradient in gradients.items()
        }
        name = max(cosines, key=lambda name: cosines[name])
        if cosines[name] > 1 - TOLERANCE:
            scale = float(term.norm() / gradients[name].norm())
            factor = "" if abs(scale - 1) < TOLERANCE else f"{scale:.4g} times "
            yield Finding(f"The KL term has {factor}the gradient of {name}.")
        else:
            near = f"nearest is {name}, with cosine {cosines[name]:.4f}"
            yield Finding(f"The KL term has the gradient of no divergence; {near}.", one.case)


def _off_policy(judgement: Judgement, name: str) -> Iterator[Finding]:
    """Describe how well the estimator corrects for samples of another policy."""
    for one, usual in list(zip(judgement.of(name), judgement.of(BASE), strict=False))[:1]:
        if one.proportional:
            yield Finding(f"Where {_ABOUT[name]}, the correction is exact: {one.verdict}.")
        else:
            cosines = f"{one.cosine:.4f}, {usual.cosine:.4f} on-policy"
            yield Finding(f"Where {_ABOUT[name]}, the cosine with the gradient is {cosines}.")


def _division(judgement: Judgement, name: str) -> Iterator[Finding]:
    """Find whether a divided batch has the same gradient as the undivided batch."""
    reduced = {"mean": "averaged", "sum": "summed"}[judgement.estimator.reduction]
    for one in judgement.of(name):
        if one.division > TOLERANCE:
            yield Finding(
                f"Divided into {_ABOUT[name]} whose gradients are {reduced}, a batch has a different gradient from the whole: "
                f"the difference is up to {one.division:.1%} of the largest gradient.",
                one.case,
            )
