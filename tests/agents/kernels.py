"""Kernels of no machine: every floating-point result that a processor may round in its own way is off by a little.

With `RLVR_ROUNDING=SEED` the tests of this folder run so (see `conftest.py`). Sums, products of matrices and normalisations
get an error of up to `UNITS` units in the last place of the largest entry, as if summed in another order; sums of whole
numbers get none, which no order changes. Functions of single numbers get that of their entry; a result of 1 gets none, which
every library has exactly. In half precision every kernel sums in float32 and rounds once at the end, so that there the error
is one unit of the entry. It depends on the seed, the shape and the place alone: the same operation on the same numbers gives
the same result, as on any machine, while another shape is rounded in another way, as by blocked and vectorised kernels. This
reaches what the settings of torch and its libraries cannot: instructions that the processor at hand does not have.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

UNITS = 2.0
"""More than the kernels of one library differ by, for sums as short as those of the tests' models."""
ELEMENTWISE = {"exp", "log", "rsqrt", "tanh", "silu", "gelu"}
SUMS = {"mm", "addmm", "bmm", "baddbmm", "linalg_vecdot", "sum", "mean"}
ROUNDED = {
    *ELEMENTWISE,
    *SUMS,
    "logsumexp",
    *("_softmax", "_softmax_backward_data", "_log_softmax", "_log_softmax_backward_data"),
    *("native_layer_norm", "native_layer_norm_backward"),
    *("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward"),
}
"""The operations of torch that are rounded otherwise."""


class OtherKernels(TorchDispatchMode):
    """Inside, operations round as those of an unknown machine."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        if name not in ROUNDED or (name in SUMS and all(map(is_whole, args))):
            return result
        elementwise = name in ELEMENTWISE
        return (
            tuple(self._rounded(output, elementwise) for output in result)
            if isinstance(result, tuple)
            else self._rounded(result, elementwise)
        )

    def _rounded(self, result: Any, elementwise: bool) -> Any:
        if not isinstance(result, Tensor) or not result.is_floating_point() or not result.numel():
            return result
        summed_in = torch.promote_types(result.dtype, torch.float32)
        size = result.detach().abs().nan_to_num(0.0, 0.0, 0.0).to(summed_in)
        if summed_in is result.dtype:
            size = UNITS * (size if elementwise or not result.dim() else size.amax(-1, keepdim=True))
        error = errors(self.seed, result.shape, summed_in) * torch.finfo(result.dtype).eps * size
        exact = (result == 0) | (result == 1) if elementwise else result == 0  # what is left out of a sum stays so
        return torch.where(exact, result, (result + error).to(result.dtype))


def is_whole(argument: Any) -> bool:
    """Whether an argument of a sum has no fractions, so that it rounds nothing; a sum's other arguments are axes."""
    return (
        not isinstance(argument, Tensor)
        or not argument.is_floating_point()
        or bool((argument == argument.round()).all())
    )


@functools.cache
def errors(seed: int, shape: torch.Size, dtype: torch.dtype) -> Tensor:
    """Errors f[*shape] of a kernel in units, from -1 to 1."""
    generator = torch.Generator().manual_seed(hash((seed, *shape)) % 2**31)
    return (torch.rand(shape, generator=generator, dtype=torch.float64) * 2 - 1).to(dtype)
