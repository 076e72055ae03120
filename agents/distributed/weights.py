"""Weights and their gradients on several ranks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agents.deferred import torch
from agents.distributed.ranks import Ranks

if TYPE_CHECKING:
    from torch import Tensor


_BUCKET_BYTES = 2**26
"""Maximum total size of the gradients that are summed at once, in bytes. A single larger gradient is summed alone."""


def sum_gradients(ranks: Ranks, parameters: Sequence[torch.nn.Parameter]) -> None:
    """Sum the gradients of all ranks. Afterwards a parameter has no gradient only if no rank had a gradient for it.

    Gradients of divided weights are left out, since FSDP has already summed them.
    """
    if ranks.size == 1:
        return
    parameters = [parameter for parameter in parameters if not is_sharded(parameter)]
    present = ranks.gather([parameter.grad is not None for parameter in parameters])
    wanted = [parameter for parameter, *has in zip(parameters, *present, strict=True) if any(has)]
    for parameter in wanted:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    gradients = [parameter.grad for parameter in wanted if parameter.grad is not None]
    for bucket in _buckets(gradients):
        flat = torch.cat([gradient.reshape(-1) for gradient in bucket])
        ranks.sum_tensors([flat])
        for gradient, summed in zip(bucket, flat.split([g.numel() for g in bucket]), strict=True):
            gradient.copy_(summed.view_as(gradient))


def require_same_weights(ranks: Ranks, model: torch.nn.Module) -> None:
    """Check that a model has bit-equal weights on all ranks. Divided weights are checked before they are divided.

    Raises:
        RankError: If a weight differs; the message names the weight and the rank.
    """
    if ranks.size > 1:
        whole = {name: weight for name, weight in model.named_parameters() if not is_sharded(weight)}
        hashes = {name: _hash(weight) for name, weight in whole.items()}
        ranks.require_same("the weights' hash", hashes)


def is_sharded(tensor: Tensor) -> bool:
    """Whether each rank holds a part of a tensor."""
    return hasattr(tensor, "full_tensor")


def _hash(weight: Tensor) -> str:
    """The exclusive or of a weight's bits, which takes no longer to compute than a copy."""
    return f"{int(torch.hash_tensor(weight.detach()).view(torch.int64)):x}"


def _buckets(gradients: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Consecutive gradients of one dtype and device, up to `_BUCKET_BYTES` together."""
    for _, same in itertools.groupby(gradients, key=lambda gradient: (gradient.dtype, gradient.device)):
        bucket: list[Tensor] = []
        size = 0
        for gradient in same:
            if bucket and size + gradient.nbytes > _BUCKET_BYTES:
                yield bucket
                bucket, size = [], 0
            bucket.append(gradient)
            size += gradient.nbytes
        yield bucket
