"""The natural gradient: Fisher-vector products of a policy, and conjugate gradients.

Kakade 2001; Schulman et al. 2015, arXiv:1502.05477, appendix C.

Parameters and gradients are flat vectors f32[p] of the policy's trainable weights.

Both the product and the divergence need the whole distribution at each token, b t v numbers and a few copies of them. They are
computed for so few completions at once that there are at most `LOGITS_AT_ONCE` logits. A single completion is never divided, so
memory is bounded by the larger of this limit and t v of the longest completion. The gradient itself needs no such tensor.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

from agents.batch import Batch
from agents.distributed.ranks import active_ranks
from agents.learn import contexts
from agents.learn.batch_passes import own_micro_batches
from agents.policies.trainable import TrainablePolicy

if TYPE_CHECKING:
    from jaxtyping import Float

LOGITS_AT_ONCE = 2**24
"""Largest number of logits in one pass with several completions; 64 MiB in float32."""


def flat_parameters(policy: TrainablePolicy) -> Float[Tensor, " p"]:
    """The trainable weights, copied into one vector."""
    return torch.cat([parameter.detach().reshape(-1) for parameter in policy.parameters()])


def flat_gradient(policy: TrainablePolicy) -> Float[Tensor, " p"]:
    """The gradient of the last backward pass; 0 for weights that the pass did not reach."""
    gradients = [
        torch.zeros_like(parameter) if parameter.grad is None else parameter.grad for parameter in policy.parameters()
    ]
    return torch.cat([gradient.reshape(-1) for gradient in gradients])


def set_flat_parameters(policy: TrainablePolicy, vector: Float[Tensor, " p"]) -> None:
    """Copy a vector into the trainable weights."""
    start = 0
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.copy_(vector[start : start + parameter.numel()].view_as(parameter))
            start += parameter.numel()


def fisher_vector_product(
    policy: TrainablePolicy, batch: Batch, vector: Float[Tensor, " p"], micro_batch_size: int
) -> Float[Tensor, " p"]:
    """F v, with F the mean Fisher matrix of the distributions at the tokens of the loss mask.

    F is the Hessian of the mean KL(pi_old || pi) at pi = pi_old. It is computed as a Gauss-Newton product, J^T (diag(p) - p
    p^T) J v with J the Jacobian of the logits. This takes one forward-mode and one reverse-mode derivative, but no second
    derivative, which fused attention does not have.
    """
    num_tokens = int(batch.loss_mask.sum())
    names = [name for name, parameter in policy.model.named_parameters() if parameter.requires_grad]
    total = torch.zeros_like(vector)
    # Fused attention has no forward-mode derivative either; the plain kernel has both.
    with sdpa_kernel(SDPBackend.MATH):
        for micro_batch in _fitting_batches(policy, batch, micro_batch_size):
            tangents = dict(zip(names, _unflatten(policy, vector), strict=True))
            total += _micro_batch_product(policy, micro_batch, tangents) / num_tokens
    active_ranks().sum_tensors([total])
    return total


def _fitting_batches(policy: TrainablePolicy, batch: Batch, micro_batch_size: int) -> Iterator[Batch]:
    """This rank's micro-batches on the policy's device, each with at most `LOGITS_AT_ONCE` logits or one row.

    An episode that continued in new contexts has a row for each context, so micro-batches are divided again once the contexts
    are known.
    """
    for rows in own_micro_batches(batch, min(micro_batch_size, _fitting_rows(policy, batch))):
        micro_batch = batch.rows(rows)
        parts = contexts.split(micro_batch)
        if parts is None:
            yield micro_batch.to(policy.device)
            continue
        for own in torch.arange(len(parts.batch)).split(_fitting_rows(policy, parts.batch)):
            one = parts.batch.rows(own)
            if one.loss_mask.any():
                yield one.to(policy.device)


def _fitting_rows(policy: TrainablePolicy, batch: Batch) -> int:
    width = batch.tokens.shape[1] - batch.first + 1
    return max(1, LOGITS_AT_ONCE // (width * policy.vocab_size))


def _micro_batch_product(policy: TrainablePolicy, micro_batch: Batch, tangents: dict[str, Tensor]) -> Tensor:
    first = micro_batch.first
    legal = micro_batch.legal_tokens(first, policy.vocab_size)
    weights = {name: parameter.detach().requires_grad_(True) for name, parameter in _trainable(policy).items()}
    with forward_ad.dual_level():
        duals = {name: _dual(weights[name], tangents[name]) for name in weights}
        distributions = _distributions_at(policy, micro_batch, first, legal, duals)
        logprobs, slopes = forward_ad.unpack_dual(distributions)
        mask = micro_batch.loss_mask[:, first:, None]
        # Slopes of log-probabilities have mean 0 under p already: (diag(p) - p p^T) J v is p times these slopes.
        pulled = torch.where(mask, logprobs.detach().exp() * slopes.detach(), 0.0)
    grads = torch.autograd.grad(logprobs, list(weights.values()), pulled)
    return torch.cat([grad.reshape(-1) for grad in grads])


def _dual(weight: Tensor, tangent: Tensor) -> Tensor:
    with warnings.catch_warnings():
        # The first call makes torch load derivatives that are still TorchScript, which is deprecated.
        warnings.filterwarnings("ignore", message="`torch.jit.script", category=DeprecationWarning)
        dual: Tensor = forward_ad.make_dual(weight, tangent)
    return dual


def _distributions_at(
    policy: TrainablePolicy, micro_batch: Batch, first: int, legal: Tensor | None, weights: dict[str, Tensor]
) -> Tensor:
    """The policy's distributions, computed with other weights in its model."""
    named = {f"model.{name}": weight for name, weight in weights.items()}
    distributions: Tensor = functional_call(
        _Module(policy), named, (_inputs(micro_batch), first, legal), tie_weights=True
    )
    return distributions


class _Module(torch.nn.Module):
    """The policy as a module, for `functional_call`."""

    def __init__(self, policy: TrainablePolicy) -> None:
        super().__init__()
        self.model = policy.model
        self._policy = policy

    def forward(self, inputs: Tensor, first: int, legal: Tensor | None) -> Tensor:
        return self._policy.distributions(inputs, first, legal)


def _inputs(micro_batch: Batch) -> Tensor:
    """The policy's inputs: tokens, or the vectors that the environment showed."""
    return micro_batch.tokens if micro_batch.observations is None else micro_batch.observations


def _trainable(policy: TrainablePolicy) -> dict[str, Tensor]:
    return {name: parameter for name, parameter in policy.model.named_parameters() if parameter.requires_grad}


def _unflatten(policy: TrainablePolicy, vector: Tensor) -> list[Tensor]:
    parameters = policy.parameters()
    pieces = vector.split([parameter.numel() for parameter in parameters])
    return [piece.view_as(parameter) for piece, parameter in zip(pieces, parameters, strict=True)]


def conjugate_gradient(
    product: Callable[[Tensor], Tensor], target: Float[Tensor, " p"], iterations: int, tolerance: float = 1e-10
) -> Float[Tensor, " p"]:
    """Solve A x = target for a positive definite A, given as its product with a vector (Hestenes and Stiefel 1952).

    Args:
        product: x -> A x.
        target: The right-hand side.
        iterations: Largest number of products; p products solve the equation exactly, up to rounding.
        tolerance: Squared residual at which to stop, relative to the squared residual of x = 0.
    """
    solution = torch.zeros_like(target)
    residual = target.clone()
    direction = target.clone()
    square = residual.dot(residual)
    enough = tolerance * float(square)
    for _ in range(iterations):
        if float(square) <= enough:
            break
        image = product(direction)
        length = square / direction.dot(image)
        solution += length * direction
        residual -= length * image
        new_square = residual.dot(residual)
        direction = residual + new_square / square * direction
        square = new_square
    return solution


@torch.no_grad()
def mean_kl(policy: TrainablePolicy, batch: Batch, old: Float[Tensor, " p"], micro_batch_size: int) -> float:
    """KL(pi_old || pi) over the whole vocabulary, in nats, averaged over the tokens of the loss mask.

    Args:
        policy: The policy pi, with its current weights.
        batch: The tokens.
        old: The weights of pi_old. Its distributions are recomputed, which is slower than storing them but needs no memory.
        micro_batch_size: Number of completions in one pass.
    """
    new = flat_parameters(policy)
    total = 0.0
    for micro_batch in _fitting_batches(policy, batch, micro_batch_size):
        legal = micro_batch.legal_tokens(micro_batch.first, policy.vocab_size)
        after = policy.distributions(_inputs(micro_batch), micro_batch.first, legal)
        set_flat_parameters(policy, old)
        before = policy.distributions(_inputs(micro_batch), micro_batch.first, legal)
        set_flat_parameters(policy, new)
        # An illegal token has log-probability -inf under both, so the difference is undefined; its probability is 0.
        gap = torch.where(before > -torch.inf, before - after, 0.0)
        divergence = (before.exp() * gap).sum(-1)
        total += float(divergence[micro_batch.loss_mask[:, micro_batch.first :]].cpu().double().sum())
    return sum(active_ranks().gather(total)) / int(batch.loss_mask.sum())
