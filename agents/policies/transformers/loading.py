"""Models: any `transformers` causal LM by name or folder, and a tiny one made here."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen2ForCausalLM

from agents.files.integrity import check_checksums
from agents.files.json_files import write_json
from agents.policies.transformers.config import PolicyConfig
from agents.policies.transformers.policy import CausalLMPolicy
from agents.training.run import latest_checkpoint
from rlvr_envs import ByteTokenizer, CharTokenizer, HuggingFaceTokenizer, Tokenizer, get_tokenizer
from verifiers import CheckpointError, InvalidArgumentError
from verifiers.hub import ask_once, without_loading_bars

_TOKENIZER_FILE = "rlvr_tokenizer.json"
_WEIGHTS = "weights.pt"
"""Of a torch module that is no `transformers` model."""
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json", "vocab.txt")
"""By which a folder is known to hold a tokenizer of `transformers`."""


_SYSTEM_ERROR = re.compile(r"os error (\d+)")
"""How safetensors gives the number of what the system refused."""
_TORCH_WRITER = ("PytorchStreamWriter", "inline_container.cc")
"""Names in the errors of torch's writer."""


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
        seed: Decides the weights, and leaves torch's own generator as it was.
        layers: Number of layers.
        hidden_size: Width of the residual stream.
        heads: Attention heads.
        kv_heads: Heads of keys and values, which several attention heads then share; None: as many as those.
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


def load_model(name: str | Path, *, dtype: str = "auto") -> Any:
    """Load a causal LM from a folder or by its name on the hub, in evaluation mode.

    Args:
        name: A folder with `config.json` and weights, or a hub name.
        dtype: As for `from_pretrained`: `"auto"` keeps the saved one.

    Raises:
        InvalidArgumentError: If nothing can be loaded under that name.
    """
    try:
        ask_once(name, "model")
        with without_loading_bars():
            loaded: Any = AutoModelForCausalLM.from_pretrained(name, dtype=dtype, output_loading_info=True)
    except Exception as error:
        # What a damaged file makes of it may be anything: an error of JSON, of safetensors, of pickle, or a missing key.
        raise InvalidArgumentError(
            f"no causal language model could be loaded from {str(name)!r}: expected a folder with config.json and weights, "
            f"or a name on the Hugging Face hub ({_cause(error)})"
        ) from error
    model, report = loaded
    if report["missing_keys"]:
        raise InvalidArgumentError(
            f"the weights at {str(name)!r} are not those of its config.json: {len(report['missing_keys'])} are missing, such "
            f"as {min(report['missing_keys'])!r}, and would be random"
        )
    return model.eval()


def _cause(error: Exception) -> str:
    """The first line of an error of somebody else's."""
    lines = str(error).strip().splitlines()
    first = lines[0] if lines else ""
    shown = first if len(first) <= 200 else f"{first[:200]}…"
    return f"{type(error).__name__}: {shown}" if shown else type(error).__name__


def save_model(folder: Path, model: Any, tokenizer: Tokenizer | None) -> None:
    """Save a model, and its tokenizer where it is a built-in or a Hugging Face one, so that `load_policy` finds both.

    Of a torch module that is no `transformers` model the weights alone are saved.
    """
    if is_pretrained(model):
        with without_loading_bars(), writing_to(folder):
            model.save_pretrained(folder)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        with writing_to(folder):
            torch.save(model.state_dict(), folder / _WEIGHTS)
    path = Path(folder) / _TOKENIZER_FILE
    if isinstance(tokenizer, CharTokenizer):
        write_json(path, {"type": "char", "alphabet": tokenizer.alphabet})
    elif isinstance(tokenizer, ByteTokenizer):
        write_json(path, {"type": "byte"})
    elif isinstance(tokenizer, HuggingFaceTokenizer):
        tokenizer.inner.save_pretrained(folder)


@contextlib.contextmanager
def writing_to(path: Path) -> Iterator[None]:
    """Raise as an `OSError` of this path what torch and safetensors make of a file that can't be written.

    torch does not say what the system refused: that is taken for a full disk.
    """
    try:
        yield
    except (SafetensorError, RuntimeError) as error:
        refused = _SYSTEM_ERROR.search(str(error))
        if refused is None and not any(name in str(error) for name in _TORCH_WRITER):
            raise
        number = errno.ENOSPC if refused is None else int(refused[1])
        raise OSError(number, os.strerror(number), str(path)) from error


def weights_fingerprint(model: torch.nn.Module) -> str:
    """Hexadecimal sha256 over the names, dtypes, shapes and bytes of a model's weights."""
    digest = hashlib.sha256()
    for name, weight in model.state_dict().items():
        data = weight.detach().cpu().contiguous()
        digest.update(f"{name} {data.dtype} {tuple(data.shape)}\n".encode())
        digest.update(data.reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def is_pretrained(model: Any) -> bool:
    """Whether a model is saved and loaded by `transformers`, or a plain torch module."""
    return hasattr(model, "save_pretrained")


def saved_weights(folder: Path, model: Any) -> dict[str, Any]:
    """The weights that `save_model` wrote of a model of the same kind."""
    weights: dict[str, Any]
    if is_pretrained(model):
        with without_loading_bars():
            weights = type(model).from_pretrained(folder, dtype=model.dtype).state_dict()
    elif (folder / _WEIGHTS).is_file():
        weights = torch.load(folder / _WEIGHTS, map_location="cpu", weights_only=True)
    else:
        raise CheckpointError(f"the checkpoint at {folder.parent} is of another model: expected {folder / _WEIGHTS}")
    return weights


def model_folder(name: str | Path) -> str | Path:
    """Find the model that a name stands for: in a run's last checkpoint, in a checkpoint, or under the name itself."""
    path = latest_checkpoint(Path(name)) or Path(name)
    return path / "model" if (path / "model" / "config.json").is_file() else name


def load_tokenizer(name: str | Path) -> Tokenizer:
    """Load the tokenizer that belongs to a model: saved by `save_model`, or as `transformers` finds it.

    Raises:
        InvalidArgumentError: If there is none, or its file is damaged.
    """
    path = Path(name) / _TOKENIZER_FILE
    if path.is_file():
        return _saved_tokenizer(path)
    if not _has_tokenizer(name):  # transformers would make an empty one up
        raise InvalidArgumentError(
            f"the model {str(name)!r} has no tokenizer of its own: name the one it was trained with, as in "
            "load_policy(model, tokenizer=...) or --env-args tokenizer=FOLDER"
        )
    return get_tokenizer(str(name))


def _saved_tokenizer(path: Path) -> Tokenizer:
    try:
        match json.loads(path.read_bytes()):
            case {"type": "char", "alphabet": str(alphabet)}:
                return CharTokenizer(alphabet)
            case {"type": "byte"}:
                return ByteTokenizer()
    except ValueError as error:
        raise InvalidArgumentError(f"{path} is damaged: {error}; save the model again") from error
    raise InvalidArgumentError(f'{path} is damaged: expected {{"type": "byte"}} or {{"type": "char", "alphabet": ...}}')


def _has_tokenizer(name: str | Path) -> bool:
    """Whether a tokenizer lies beside a model, as far as that can be told without the hub."""
    folder = Path(name)
    return not folder.is_dir() or any((folder / file).is_file() for file in (_TOKENIZER_FILE, *_TOKENIZER_FILES))


def _tokenizer_of(folder: str | Path, wanted: object) -> Tokenizer:
    """A model's tokenizer; the one that is wanted for a model that has none, and for any other only if it is the same.

    Raises:
        InvalidArgumentError: If there is none, or it is another than the one that is wanted.
    """
    if wanted is None:
        return load_tokenizer(folder)
    own = load_tokenizer(folder) if _has_tokenizer(folder) else None
    if own is None:
        return get_tokenizer(wanted)
    # "char" is short for the alphabet that is at hand, here the model's, where it has one.
    same = isinstance(own, CharTokenizer) if wanted == "char" else get_tokenizer(wanted).fingerprint == own.fingerprint
    if not same:
        raise InvalidArgumentError(
            f"the tokenizer {wanted!r} is not that of the model {str(folder)!r} ({own.fingerprint}), to which its tokens would "
            "mean something else: leave it out"
        )
    return own


def load_policy(
    name: str | Path, config: PolicyConfig | None = None, *, tokenizer: object = None, dtype: str = "auto"
) -> tuple[CausalLMPolicy, Tokenizer]:
    """Load a model and its tokenizer as a policy, on the GPU where there is one.

    Args:
        name: A folder with a model, a run's folder, a checkpoint's, or a hub name.
        config: Of the policy; its `vocab_size` is the tokenizer's.
        tokenizer: The tokenizer of a model that has none beside it, as for `get_tokenizer`.
        dtype: As for `load_model`; for training `"float32"`, since small updates vanish in half precision.

    Raises:
        InvalidArgumentError: If the model or its tokenizer can't be loaded, or the two don't fit.
        CheckpointError: If the model is that of a damaged checkpoint; name an earlier one.
    """
    if not _is_name(name):
        raise InvalidArgumentError(f"a model is the path of a folder or a name on the Hugging Face hub, got {name!r}")
    folder = model_folder(name)
    if Path(folder).is_file():
        raise InvalidArgumentError(
            f"{folder} is a file: expected the folder of a model, or a name on the Hugging Face hub"
        )
    try:
        model = load_model(folder, dtype=dtype)
    except InvalidArgumentError:
        if Path(folder).parent.name.startswith("step-"):
            check_checksums(Path(folder).parent)
        raise
    chosen = _tokenizer_of(folder, tokenizer)
    _check_sizes(str(name), model, chosen)
    if torch.cuda.is_available():
        model = model.to("cuda")
    config = dataclasses.replace(config or PolicyConfig(), vocab_size=chosen.vocab_size)
    return CausalLMPolicy(model, config), chosen


def _is_name(name: object) -> bool:
    return isinstance(name, str | Path) and name not in ("", Path())


def _check_sizes(name: str, model: Any, tokenizer: Tokenizer) -> None:
    """Refuse a tokenizer that is not the model's, as far as their sizes tell.

    A model may have more rows than its tokenizer has tokens, for sizes that processors like: up to 905 of 51 200 (Phi-2) among
    the models that are usual.

    Raises:
        InvalidArgumentError: If the model knows fewer tokens, or so many more that they are no padding.
    """
    if not hasattr(model, "get_input_embeddings"):
        return  # a torch module of the user's own says itself how many tokens it has
    rows = int(model.get_input_embeddings().weight.shape[0])
    padding = max(128, rows // 16)
    if not rows - padding <= tokenizer.vocab_size <= rows:
        raise InvalidArgumentError(
            f"the model {name!r} has {rows} tokens and the tokenizer {tokenizer.fingerprint} has {tokenizer.vocab_size}: the "
            "two do not belong together; name the tokenizer that the model was trained with"
        )
