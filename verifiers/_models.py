"""Shared code of the verifiers that run a `transformers` model: loading, limits, and batches of tokens."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from verifiers.devices import choose_device
from verifiers.errors import InvalidArgumentError, missing_dependency
from verifiers.hub import ask_once, without_loading_bars
from verifiers.types import Outcome, Verdict

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

_NO_LIMIT = 10**9
"""A limit of at least this many tokens, as some tokenizers state it, counts as no limit."""


def require_packages(*packages: str, purpose: str) -> None:
    """Check that packages are installed.

    Raises:
        MissingDependencyError: If a package is missing; the message names the extra that installs it.
    """
    for package in packages:
        try:
            __import__(package)
        except ImportError as error:
            raise missing_dependency(package, "train", purpose) from error


def load_pretrained(
    cls: Any, name: str | PathLike[str], kind: str, **options: Any
) -> tuple[PreTrainedModel, list[str]]:
    """Load a model with `cls.from_pretrained`, in the data type of its weights.

    Returns:
        The model, and the names of the weights missing from the checkpoint, which are random.

    Raises:
        InvalidArgumentError: If no model can be loaded; the message names the `kind` that was expected.
    """
    model: PreTrainedModel
    try:
        ask_once(name, "model")
        with without_loading_bars():
            model, info = cls.from_pretrained(name, dtype="auto", output_loading_info=True, **options)
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidArgumentError(f"no {kind} could be loaded from {str(name)!r}: {error}") from error
    return model, sorted(info["missing_keys"])


def move_to_device(model: PreTrainedModel, device: str | torch.device | None) -> None:
    """Move a model to a device and set it to evaluation mode; on the CPU its weights become 32-bit floats.

    Raises:
        UnknownNameError: If there is no such device.
        InvalidArgumentError: If the device is not available here.
    """
    module: torch.nn.Module = model
    module.to(choose_device(device))
    if model.device.type == "cpu":
        module.float()
    module.eval()


def special_texts(tokenizer: PreTrainedTokenizerBase) -> tuple[str, ...]:
    """List the texts that a tokenizer reads as special tokens wherever they occur."""
    return tuple(token.content for token in tokenizer.added_tokens_decoder.values() if token.special)


def as_plain_text(text: str, special: Sequence[str]) -> str:
    """Break up the texts of special tokens in a completion, so that the completion can't end its own turn.

    A zero-width space is inserted after the first character of each of these texts.
    """
    for token in special:
        text = text.replace(token, f"{token[0]}\u200b{token[1:]}")
    return text


def load_tokenizer(name: str | PathLike[str]) -> PreTrainedTokenizerBase:
    """Load a tokenizer.

    Raises:
        InvalidArgumentError: If there is no tokenizer of that name.
    """
    from transformers import AutoTokenizer

    try:
        ask_once(name, "model")
        return AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(f"no tokenizer could be loaded from {str(name)!r}: {error}") from error


def load_config(name: str | PathLike[str]) -> PreTrainedConfig:
    """Load a model's configuration without running code that comes with it.

    Raises:
        InvalidArgumentError: If there is no model of that name.
    """
    from transformers import AutoConfig

    try:
        ask_once(name, "model")
        config: PreTrainedConfig = AutoConfig.from_pretrained(name, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(f"no model's configuration could be loaded from {str(name)!r}: {error}") from error
    return config


def token_limit(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase) -> float:
    """Maximum number of tokens of a text: the smaller of the model's and the tokenizer's limits, or infinity without limits."""
    positions = getattr(config.get_text_config(), "max_position_embeddings", None)
    stated = tokenizer.model_max_length
    return min(positions or math.inf, stated if stated < _NO_LIMIT else math.inf)


def is_causal(config: PreTrainedConfig) -> bool:
    """Whether no token of this kind of model sees a later token, so that padding on the right changes nothing."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_MASKED_LM_MAPPING

    cls = type(config)
    return cls in MODEL_FOR_CAUSAL_LM_MAPPING and cls not in MODEL_FOR_MASKED_LM_MAPPING


def length_batches(lengths: Sequence[int], size: int, *, equal: bool = False) -> Iterator[list[int]]:
    """Split rows into batches of at most `size`, the longest first; with `equal`, only rows of equal length share a batch."""
    rows = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    together = [list(same) for _, same in itertools.groupby(rows, lambda row: lengths[row])] if equal else [rows]
    for group in together:
        yield from (group[start : start + size] for start in range(0, len(group), size))


def padded(texts: Sequence[Sequence[int]], model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """Token ids i64[b, l], padded on the right, and their attention mask i64[b, l], on the model's device."""
    import torch

    lengths = torch.tensor([len(tokens) for tokens in texts])
    mask = (torch.arange(int(lengths.max())) < lengths[:, None]).long()
    ids = torch.full_like(mask, model.config.get_text_config().pad_token_id or 0)
    ids[mask.bool()] = torch.tensor([token for tokens in texts for token in tokens])
    return {"input_ids": ids.to(model.device), "attention_mask": mask.to(model.device)}


def wrong_length(length: int, limit: float, model: str) -> Verdict:
    """The verdict on a text that is empty or has more tokens than the model accepts."""
    reason = f"prompt and completion have {length} tokens, and the {model} takes 1 to {limit:.0f}"
    return Verdict.of(Outcome.VERIFIER_ERROR, detail={"error": reason, "tokens": length})


def failed(reason: str) -> Verdict:
    """A verdict of `VERIFIER_ERROR` with its cause."""
    return Verdict.of(Outcome.VERIFIER_ERROR, detail={"error": reason})
