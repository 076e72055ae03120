"""Loading and saving models: any `transformers` causal LM by name or folder, and a built-in tiny model."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import io
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForCausalLM, GgufConfig, Qwen2Config, Qwen2ForCausalLM

import rlvr_envs
from agents.policies.devices import policy_device
from agents.policies.transformers.config import PolicyConfig
from agents.policies.transformers.lora import base_of, merged, save_adapter, with_saved_adapter
from agents.policies.transformers.model_files import (
    TOKENIZER_FILE,
    adapter_base,
    base_reported,
    check_model,
    check_tokenizer,
    has_tokenizer,
    is_adapter,
    model_folder,
    saved_tokenizer,
)
from agents.policies.transformers.policy import CausalLMPolicy
from agents.policies.transformers.rounding import rounded
from agents.policies.transformers.source import Source, checksum, set_source, source_of
from agents.runs.files.integrity import check_checksums
from agents.runs.files.json_files import write_json
from agents.runs.files.outputs import follow_umask
from rlvr_envs.gguf_files import gguf_file, gguf_header
from verifiers import CheckpointError, InvalidArgumentError
from verifiers.hub import without_loading_bars

_WEIGHTS = "weights.pt"
"""Weights file of a torch module that is not a `transformers` model."""
ARCHITECTURE = "architecture.json"
"""File with the attribute `architecture` of a torch module, if the module has one; loading builds the module from it."""


_SYSTEM_ERROR = re.compile(r"os error (\d+)")
"""Matches the system's error number in a message of safetensors."""
_TORCH_WRITER = ("PytorchStreamWriter", "inline_container.cc")
"""Names by which errors of torch's file writer are recognised."""


def tiny_model(
    vocab_size: int,
    *,
    seed: int = 0,
    layers: int = 4,
    hidden_size: int = 128,
    heads: int = 4,
    kv_heads: int | None = None,
    intermediate_size: int = 512,
    max_tokens: int = 2048,
) -> Any:
    """Build a small Qwen2-shaped transformer with random weights; by default about 1.05 million of them.

    Args:
        vocab_size: Number of tokens.
        seed: Seed of the weights; torch's global generator is not changed.
        layers: Number of layers.
        hidden_size: Width of the residual stream.
        heads: Number of attention heads.
        kv_heads: Number of key-value heads, for grouped-query attention; None uses the number of attention heads.
        intermediate_size: Width of the feed-forward layers.
        max_tokens: Longest context.
    """
    config = Qwen2Config(
        vocab_size=int(vocab_size),
        hidden_size=hidden_size,
        intermediate_size=intermediate_size,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads or heads,
        max_position_embeddings=max_tokens,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen2ForCausalLM(config).eval()


def load_model(name: str | Path, *, dtype: str = "auto", base_model: str | Path | None = None) -> Any:
    """Load a causal LM from a folder, from a GGUF file or by its name on the hub, in evaluation mode.

    Args:
        name: A folder with `config.json` and weights, or with an adapter, which is merged into its base; a GGUF file, which
            becomes an ordinary model, or a folder with such a file; or a hub name.
        dtype: As for `from_pretrained`; `"auto"` keeps the saved type, which for an adapter is its base's type, and for a GGUF
            file with quantised weights is bfloat16.
        base_model: Folder or hub name of an adapter's base, if the base is not in the place that the adapter names.

    Raises:
        InvalidArgumentError: If no model can be loaded under that name.
        MissingDependencyError: If the model is in a GGUF file, and a package that reads such files is not installed.
    """
    if is_adapter(name):
        return _with_adapter(Path(name), dtype, base_model)
    check_model(name)
    file = gguf_file(name)
    expected, settings = "a folder with config.json and weights, or a name on the Hugging Face hub", "config.json"
    if file is not None:
        expected, settings = "a whole GGUF file of an architecture and quantisation that transformers reads", "header"
    try:
        with without_loading_bars():
            model, report, saved_dtype = _of_files(name, dtype) if file is None else _of_gguf(file, dtype)
    except Exception as error:
        # A damaged file may cause any error: of JSON, of safetensors, of pickle, or a missing key.
        raise InvalidArgumentError(
            f"no causal language model could be loaded from {str(name)!r}: expected {expected} ({_cause(error)})"
        ) from error
    if report["missing_keys"]:
        raise InvalidArgumentError(
            f"the weights at {str(name)!r} do not match its {settings}: {len(report['missing_keys'])} are missing, such as "
            f"{min(report['missing_keys'])!r}, and would be random"
        )
    place = str(Path(name).resolve()) if Path(name).is_dir() else str(name)
    set_source(model, Source(place if file is None else None, saved_dtype, checksum(model.named_parameters())))
    return model.eval()


def _of_files(name: str | Path, dtype: str) -> tuple[Any, Any, torch.dtype]:
    """A model from the files of `from_pretrained`, the report of its loading, and the type of the weights in the files."""
    saved_dtype = AutoConfig.from_pretrained(name).get_text_config().dtype
    loaded: Any = AutoModelForCausalLM.from_pretrained(name, dtype=dtype, output_loading_info=True)
    model, report = loaded
    return model, report, saved_dtype or model.dtype


def _of_gguf(file: Path, dtype: str) -> tuple[Any, Any, torch.dtype]:
    """A model with ordinary weights from a GGUF file, the report of its loading, and the type for saving these weights."""
    saved_dtype: torch.dtype = getattr(torch, gguf_header(file).dtype)
    with contextlib.redirect_stderr(io.StringIO()):  # a bar that no setting of transformers hides
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            str(file.parent),
            gguf_file=file.name,
            dtype=saved_dtype if dtype == "auto" else dtype,
            quantization_config=GgufConfig(
                gguf_file=file.name, dequantize=True
            ),  # quantised weights can't be trained or saved
            output_loading_info=True,
        )
    model, report = loaded
    return model, report, saved_dtype


def _with_adapter(folder: Path, dtype: str, base_model: str | Path | None) -> Any:
    """The base of a saved adapter, with the adapter merged into it in float32 before anything is rounded."""
    base = base_model or adapter_base(folder)
    with base_reported(folder, base):
        model = load_model(base, dtype="float32")
    model = with_saved_adapter(model, folder)
    source = source_of(model)
    if dtype == "auto" and source is not None:
        weights = rounded(dict(model.named_parameters()), source.dtype).weights
        for weight_name, weight in model.named_parameters():
            weight.data = weights[weight_name]
        model.config.dtype = source.dtype
    return model.eval()


def _cause(error: Exception) -> str:
    """The type and first line of a third-party error."""
    lines = str(error).strip().splitlines()
    first = lines[0] if lines else ""
    shown = first if len(first) <= 200 else f"{first[:200]}…"
    return f"{type(error).__name__}: {shown}" if shown else type(error).__name__


def save_model(
    folder: Path, model: Any, tokenizer: rlvr_envs.Tokenizer | None, *, dtype: torch.dtype | None = None
) -> Mapping[str, torch.Tensor]:
    """Save a model, and its tokenizer if that is a built-in or a Hugging Face tokenizer, so that `load_policy` finds both.

    If the base of a model with an adapter can be loaded again, only the adapter is saved, with the name of the base. If the
    base was made in memory or read from a GGUF file, the model is saved with the adapter merged. A torch module that is not a
    `transformers` model is saved as its weights, and its `architecture` if it has one.

    Args:
        folder: Folder to write to.
        model: The model.
        tokenizer: The tokenizer; None saves none.
        dtype: Type of the saved weights of a `transformers` model; None for the model's own type. An adapter keeps its own
            type.

    Returns:
        The bits that rounding to `dtype` dropped, for `rounding.restored`, by the names of the model's weights.
    """
    folder.mkdir(parents=True, exist_ok=True)
    dropped: Mapping[str, torch.Tensor] = {}
    with writing_to(folder):
        if (base := base_of(model)) is not None:
            save_adapter(folder, model, base)
        elif is_pretrained(model):
            dropped = _save_pretrained(folder, merged(model, device="cpu"), dtype)
        else:
            torch.save(model.state_dict(), folder / _WEIGHTS)
    if hasattr(model, "architecture"):
        write_json(folder / ARCHITECTURE, model.architecture)
    path = folder / TOKENIZER_FILE
    if isinstance(tokenizer, rlvr_envs.CharTokenizer):
        write_json(path, {"type": "char", "alphabet": tokenizer.alphabet})
    elif isinstance(tokenizer, rlvr_envs.ByteTokenizer):
        write_json(path, {"type": "byte"})
    elif isinstance(tokenizer, rlvr_envs.HuggingFaceTokenizer):
        tokenizer.inner.save_pretrained(folder)
    follow_umask(folder)
    return dropped


def _save_pretrained(folder: Path, model: Any, dtype: torch.dtype | None) -> Mapping[str, torch.Tensor]:
    with without_loading_bars(), _written_here(model):
        if dtype is None:
            model.save_pretrained(folder)
            return {}
        saved = rounded(model.state_dict(keep_vars=True), dtype)
        model.save_pretrained(folder, state_dict=dict(saved.weights))
        own = model.config.dtype
        model.config.dtype = dtype
        model.config.save_pretrained(folder)
        model.config.dtype = own
    return saved.dropped


@contextlib.contextmanager
def _written_here(model: Any) -> Iterator[None]:
    """Within the block, write the model on every rank, for example for the rank's own engine.

    Otherwise transformers 5.19 and later write the model only on rank 0, without an error on other ranks.
    """
    model.should_save_on_this_rank = lambda is_main_process: True
    try:
        yield
    finally:
        del model.should_save_on_this_rank


@contextlib.contextmanager
def writing_to(path: Path) -> Iterator[None]:
    """Convert errors of torch and safetensors about a file that can't be written to an `OSError` with this path.

    torch does not report the system's error, so a full disk is assumed.
    """
    try:
        yield
    except (SafetensorError, RuntimeError) as error:
        refused = _SYSTEM_ERROR.search(str(error))
        if refused is None and not any(name in str(error) for name in _TORCH_WRITER):
            raise
        number = errno.ENOSPC if refused is None else int(refused[1])
        raise OSError(number, os.strerror(number), str(path)) from error


def is_pretrained(model: Any) -> bool:
    """Whether a model is saved and loaded by `transformers`, rather than a plain torch module."""
    return hasattr(model, "save_pretrained")


def saved_weights(folder: Path, model: Any) -> dict[str, Any]:
    """The weights that `save_model` wrote for a model of the same kind."""
    weights: dict[str, Any]
    if is_pretrained(model):
        with without_loading_bars():
            weights = type(model).from_pretrained(folder, dtype=model.dtype).state_dict()
    elif (folder / _WEIGHTS).is_file():
        weights = torch.load(folder / _WEIGHTS, map_location="cpu", weights_only=True)
    else:
        raise CheckpointError(f"the checkpoint at {folder.parent} is of another model: expected {folder / _WEIGHTS}")
    return weights


@contextlib.contextmanager
def whole_model_folder(name: str | Path) -> Iterator[str | Path]:
    """The folder of a model, as in `model_folder`; for an adapter or GGUF file, a temporary folder with the whole model."""
    folder = model_folder(name)
    if not is_adapter(folder) and gguf_file(folder) is None:
        yield folder
        return
    with tempfile.TemporaryDirectory() as temporary:
        save_model(Path(temporary), load_model(folder), load_tokenizer(folder))
        yield temporary


def load_tokenizer(name: str | Path) -> rlvr_envs.Tokenizer:
    """Load a model's tokenizer: saved by `save_model`, or found by `transformers`.

    Raises:
        InvalidArgumentError: If the model has no tokenizer, or its file is damaged.
    """
    saved = saved_tokenizer(name)
    if saved is not None:
        return saved
    check_tokenizer(name)
    return rlvr_envs.get_tokenizer(str(name))


def _tokenizer_of(folder: str | Path, wanted: object) -> rlvr_envs.Tokenizer:
    """A model's tokenizer, or the requested one for a model without a tokenizer; the two must not differ."""
    if wanted is None:
        return load_tokenizer(folder)
    own = load_tokenizer(folder) if has_tokenizer(folder) else None
    if own is None:
        return rlvr_envs.get_tokenizer(wanted)
    # "char" means a character tokenizer with the model's alphabet, if the model has one.
    same = (
        isinstance(own, rlvr_envs.CharTokenizer)
        if wanted == "char"
        else rlvr_envs.get_tokenizer(wanted).fingerprint == own.fingerprint
    )
    if not same:
        raise InvalidArgumentError(
            f"the tokenizer {wanted!r} is not that of the model {str(folder)!r} ({own.fingerprint}), for which its tokens have "
            "another meaning: leave it out"
        )
    return own


def load_policy(
    name: str | Path,
    config: PolicyConfig | None = None,
    *,
    tokenizer: object = None,
    dtype: str = "auto",
    device: str = "auto",
    base_model: str | Path | None = None,
) -> tuple[CausalLMPolicy, rlvr_envs.Tokenizer]:
    """Load a model and its tokenizer as a policy.

    Args:
        name: The folder of a model, a run or a checkpoint, a GGUF file, or a hub name.
        config: Settings of the policy; `vocab_size` is set to that of the tokenizer.
        tokenizer: The tokenizer for a model that has none, as for `get_tokenizer`.
        dtype: As for `load_model`; use `"float32"` for training, since small updates vanish in half precision.
        device: Device of the model, as for `verifiers.devices.choose_device`: by default the GPU if there is one.
        base_model: As for `load_model`.

    Raises:
        InvalidArgumentError: If the model or its tokenizer can't be loaded, the two don't fit, or the device is not available.
        MissingDependencyError: If the model is in a GGUF file, and a package that reads such files is not installed.
        UnknownNameError: If there is no such device.
        CheckpointError: If the model belongs to a damaged checkpoint; use an earlier one.
    """
    if not _is_name(name):
        raise InvalidArgumentError(
            f"a model must be the path of a folder or a name on the Hugging Face hub, got {name!r}"
        )
    place = policy_device(device)
    folder = model_folder(name)
    try:
        model = load_model(folder, dtype=dtype, base_model=base_model)
    except InvalidArgumentError:
        if Path(folder).parent.name.startswith("step-"):
            check_checksums(Path(folder).parent)
        raise
    chosen = _tokenizer_of(folder, tokenizer)
    _check_sizes(str(name), model, chosen)
    model = model.to(place)
    config = dataclasses.replace(config or PolicyConfig(), vocab_size=chosen.vocab_size)
    return CausalLMPolicy(model, config), chosen


def _is_name(name: object) -> bool:
    return isinstance(name, str | Path) and name not in ("", Path())


def _check_sizes(name: str, model: Any, tokenizer: rlvr_envs.Tokenizer) -> None:
    """Reject a tokenizer that can't be the model's, judging by their sizes.

    A model may have more rows than its tokenizer has tokens, since rows are padded to an efficient number. Among common models,
    up to 905 of 51 200 rows are padding (Phi-2).
    """
    if not hasattr(model, "get_input_embeddings"):
        return  # the size of a custom torch module is not known here
    rows = int(model.get_input_embeddings().weight.shape[0])
    padding = max(128, rows // 16)
    if not rows - padding <= tokenizer.vocab_size <= rows:
        raise InvalidArgumentError(
            f"the model {name!r} has {rows} tokens but the tokenizer {tokenizer.fingerprint} has {tokenizer.vocab_size}: the "
            "two do not belong together; specify the tokenizer that the model was trained with"
        )
