"""How far apart two right results may be: float64 for tests of equality, and the tolerance that follows from it.

Processors, thread counts and shapes choose other kernels, whose sums run in another order. What is equal on paper then differs
by rounding, and in float32 by about as much as some mistakes would. So tests of equality run in float64 (`FLOAT64`),
where rounding is a billion times below anything that a mistake could do, and compare by `assert_equal`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

FLOAT64 = pytest.mark.usefixtures("float64")
"""Marks a test of equality."""
OPERATIONS = 2**13
"""Roundings in a row that a number of these tests goes through, and more: forward and backward through a model of 3 layers is a
chain of some 200 operations, of which sums over 257 entries (the vocabulary) round most, about 16 = √257 times each, as their
errors are of both signs. That is 3200 for one pass; the rest is for weights that are larger than those models start with."""
STORED = 16
"""Roundings to float32, as trajectories hold log-probabilities in float32 whatever the policy computes in: one for each of two
numbers that are compared, and what a gradient makes of them, where ratios exp(log π - stored) multiply advantages."""


def tolerance(size: float, precision: type[np.floating[Any]] = np.float64, operations: int = OPERATIONS) -> float:
    """How far apart two ways to one number may end.

    Each operation changes its result by at most half of `eps` of the size it works with, so that each of two results is within
    `operations` times that of the exact one (Higham 2002, Accuracy and Stability of Numerical Algorithms, section 3.1).

    Args:
        size: Of the largest number on the way, which is more than the result where numbers cancel.
        precision: In which they are computed.
        operations: That follow one another.
    """
    return float(np.finfo(precision).eps) * operations * size


ROUNDING = tolerance(1.0)
"""Of float64 formulas on a few numbers of about 1, whose own chains are far shorter; 2e-12."""


def assert_equal(
    actual: Any,
    expected: Any,
    *,
    size: float = 1.0,
    precision: type[np.floating[Any]] = np.float64,
    operations: int = OPERATIONS,
) -> None:
    """Check that numbers are equal but for rounding relative to the largest of them, or to `size` where that is larger."""
    one, other = (np.asarray(_on_host(value), dtype=np.float64) for value in (actual, expected))
    largest = float(np.abs(other[np.isfinite(other)]).max(initial=0.0))
    np.testing.assert_allclose(one, other, rtol=0, atol=tolerance(max(size, largest), precision, operations))


def assert_equal_stored(actual: Any, expected: Any, *, size: float = 1.0) -> None:
    """The same for what was stored in float32, or comes from it; `size` as there, of log-probabilities at most 10."""
    assert_equal(actual, expected, size=size, precision=np.float32, operations=STORED)


def _on_host(value: Any) -> Any:
    return value.detach().cpu() if isinstance(value, Tensor) else value


@contextlib.contextmanager
def in_float64() -> Iterator[None]:
    """Inside, models are made and computed in float64 throughout; what trajectories store stays float32.

    `transformers` computes norms and positions in `torch.float32` by name, and `agents` log-probabilities and values: here that
    name says float64.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "float32", torch.float64)
        patch.setattr(Tensor, "float", Tensor.double)
        try:
            yield
        finally:
            torch.set_default_dtype(before)
