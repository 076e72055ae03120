"""`PolicyConfig`: the settings of a `CausalLMPolicy`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from agents.policies.trainable import require_temperature
from agents.settings.choices import Checkpointing, Precision, SaveDtype
from verifiers import AtLeast, Between, check_types


@dataclass(frozen=True, kw_only=True)
class PolicyConfig:
    """Settings of a policy on a `transformers` model.

    Raises:
        InvalidArgumentError: If a setting has the wrong type, or is out of range.
        UnknownNameError: If there is no such precision or checkpointing; the message suggests the nearest.
    """

    temperature: float = 1.0
    """Temperature that divides the logits in sampling and training; 0 chooses the likeliest token, for evaluation only (its
    log-probabilities are NaN)."""
    top_k: Annotated[int | None, AtLeast(1)] = None
    """Number of likeliest tokens to sample from; None samples from all. Log-probabilities are stored and trained under the
    restricted distribution, whose tokens are stored with each sampled token; `top_p` and `min_p` do the same."""
    top_p: Annotated[float, Between(0, 1, open_low=True)] = 1.0
    """Total probability of the likeliest tokens to sample from (nucleus sampling)."""
    min_p: Annotated[float, Between(0, 1)] = 0.0
    """Smallest probability of the tokens to sample from, relative to the likeliest token's probability."""
    vocab_size: Annotated[int | None, AtLeast(1)] = None
    """Number of tokens to choose from, from the first of the model's vocabulary on; None uses the whole vocabulary."""
    seed: int = 0
    """Seed for sampling episodes that were not announced by `begin`."""
    precision: Precision = "auto"
    """Precision of matrix products; weights keep their own precision. `"auto"` is bfloat16 for float32 weights on a GPU that
    supports it, and on a CPU with instructions for it if the model has at least 50 million weights; otherwise the weights' own
    precision."""
    checkpointing: Checkpointing = "auto"
    """Whether the backward pass recomputes activations instead of keeping them; `"auto"` recomputes if activations would not
    fit into free memory."""
    shared_prefix: bool = True
    """Compute the common prefix of a group's rows once in training, and cache it once in sampling, if this is faster and the
    model supports it; results only differ by rounding."""
    max_cached_tokens: Annotated[int | None, AtLeast(1)] = None
    """Maximum number of tokens in the KV cache, including padding; None uses the free memory of a GPU, and sets no limit on a
    CPU. A rollout plays no more rows at once than fit; in other loops, further rows are computed from scratch at every
    token."""
    save_dtype: SaveDtype = "source"
    """Type of the saved weights; `"source"` is the type of the loaded model, and the weights' own type for a model made in
    memory. A checkpoint also has the bits that this type drops, so that training resumes exactly. Adapters keep the type in
    which they are trained."""
    fast: bool = True
    """Whether to use optimisations. False disables them all, for comparison: no cache, no sharing of prompts, gradients by
    autograd alone, all logits at once. Results only differ by rounding."""

    def __post_init__(self) -> None:
        require_temperature(self.temperature)
        check_types(self)

    @property
    def leaves_tokens_out(self) -> bool:
        """Whether sampling is restricted to fewer tokens than are legal."""
        return self.temperature > 0 and (self.top_k is not None or self.top_p < 1 or self.min_p > 0)
