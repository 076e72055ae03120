"""Finds a model by name, and checks that it exists, from its files alone, since loading a model needs torch."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rlvr_envs
from agents.runs.files.integrity import CHECKSUMS
from agents.runs.files.json_files import read_json
from agents.runs.run import latest_checkpoint
from rlvr_envs.gguf_files import check_gguf, gguf_file, gguf_header
from verifiers import InvalidArgumentError
from verifiers.hub import HubError, ask_once

MODEL = "model"
"""Name of the folder of the model, in a checkpoint."""
TOKENIZER_FILE = "rlvr_tokenizer.json"
"""File that names a model's built-in tokenizer."""
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json", "vocab.txt")
"""Files that identify a `transformers` tokenizer in a folder."""
ADAPTER_CONFIG = "adapter_config.json"
"""File with the settings of a saved adapter and the name of its base."""
_CONFIG = "config.json"
_CONFIGS = (_CONFIG, ADAPTER_CONFIG)
"""The files of which a folder must have one for `transformers` to load it."""
_MOST_NAMED = 3


def model_folder(name: str | Path) -> str | Path:
    """Return the model's folder in a checkpoint or in the last checkpoint of a run; other names are returned unchanged."""
    checkpoint = latest_checkpoint(Path(name))
    if checkpoint is None and (Path(name) / CHECKSUMS).is_file():
        checkpoint = Path(name)
    found = checkpoint is not None and any((checkpoint / MODEL / file).is_file() for file in _CONFIGS)
    return checkpoint / MODEL if checkpoint is not None and found else name


def check_model(folder: str | Path, kind: str = "causal language model") -> None:
    """Check that a folder, a GGUF file or a name on the hub has a model; the hub is asked once, and nothing is loaded.

    Raises:
        InvalidArgumentError: If there is no model; the message says what is there instead.
        MissingDependencyError: If the model is in a GGUF file, and a package that reads such files is not installed.
    """
    path = Path(folder)
    file = gguf_file(path)
    if file is not None:
        check_gguf(file)
        return
    if path.is_file():
        raise InvalidArgumentError(
            f"{folder} is a file: expected the folder of a model, a .gguf file, or a name on the Hugging Face hub"
        )
    cause = _missing_config(path) if path.is_dir() else _not_on_the_hub(str(folder))
    if cause is not None:
        raise InvalidArgumentError(
            f"no {kind} could be loaded from {str(folder)!r}: expected a folder with {_CONFIG} and weights, or a name on the "
            f"Hugging Face hub ({cause})"
        )
    if is_adapter(folder):
        base = adapter_base(path)
        with base_reported(path, base):
            check_model(base)


def is_adapter(folder: str | Path) -> bool:
    """Whether a folder holds an adapter, which belongs to a model elsewhere."""
    return (Path(folder) / ADAPTER_CONFIG).is_file()


def adapter_base(folder: Path) -> str:
    """The folder or hub name of the model to which an adapter belongs; empty if the adapter's settings do not name it."""
    return str(read_json(folder / ADAPTER_CONFIG).get("base_model_name_or_path") or "")


@contextlib.contextmanager
def base_reported(folder: Path, base: str | Path) -> Iterator[None]:
    """Within the block, make errors about the base of an adapter also name the adapter and say what to do."""
    try:
        yield
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"the model {str(base)!r}, to which the adapter at {folder} belongs, could not be loaded: put it there again, name "
            f"where it is now as base_model_name_or_path in {folder / ADAPTER_CONFIG}, or merge the two into one model "
            f"with rlvr export --merge {folder} --base-model FOLDER --folder OUT ({error})"
        ) from error


def check_context(width: int, context: int | None) -> None:
    """Check that episodes fit into a model's context; None means an unknown context."""
    if context is not None and width > context:
        raise InvalidArgumentError(
            f"episodes have up to {width} tokens, including the prompt, but the model's context holds "
            f"{context}: lower max_new_tokens or max_prompt_tokens, by at least {width - context} together, or use another "
            "model (a gold completion longer than max_new_tokens counts in full)"
        )


def model_context(folder: str | Path) -> int | None:
    """The number of tokens that a model can read at once, from its config.json or GGUF file; None if unknown."""
    file = gguf_file(folder)
    if file is not None:
        return gguf_header(file).context
    if is_adapter(folder):
        return model_context(adapter_base(Path(folder)))
    config = _read_config(Path(folder))
    text = config.get("text_config")
    most = (text if isinstance(text, dict) else config).get("max_position_embeddings")
    return most if isinstance(most, int) else None


def saved_tokenizer(folder: str | Path) -> rlvr_envs.Tokenizer | None:
    """The built-in tokenizer of a model that `save_model` wrote; None for a model with another tokenizer."""
    path = Path(folder) / TOKENIZER_FILE
    if not path.is_file():
        return None
    try:
        match json.loads(path.read_bytes()):
            case {"type": "char", "alphabet": str(alphabet)}:
                return rlvr_envs.CharTokenizer(alphabet)
            case {"type": "byte"}:
                return rlvr_envs.ByteTokenizer()
    except ValueError as error:
        raise InvalidArgumentError(f"{path} is damaged: {error}; save the model again") from error
    raise InvalidArgumentError(f'{path} is damaged: expected {{"type": "byte"}} or {{"type": "char", "alphabet": ...}}')


def has_tokenizer(folder: str | Path) -> bool:
    """Whether there is a tokenizer beside a model, as far as this is known without the hub."""
    file = gguf_file(folder)
    if file is not None:
        return gguf_header(file).has_tokenizer
    path = Path(folder)
    return not path.is_dir() or any((path / file).is_file() for file in (TOKENIZER_FILE, *_TOKENIZER_FILES))


def check_tokenizer(folder: str | Path) -> None:
    """Check that there is a tokenizer beside a model; without one, `transformers` would make an empty one."""
    if not has_tokenizer(folder):
        raise InvalidArgumentError(
            f"the model {str(folder)!r} has no tokenizer of its own: specify the one it was trained with, as in "
            "load_policy(model, tokenizer=...) or --env-args tokenizer=FOLDER"
        )


def _not_on_the_hub(name: str) -> str | None:
    try:
        ask_once(name, "model")
    except HubError as error:
        return str(error)
    return None


def _missing_config(folder: Path) -> str | None:
    """The reason why a folder holds no model; None if it may hold one."""
    if any((folder / file).is_file() for file in _CONFIGS):
        run = "run_id" in _read_config(folder)
        return "its config.json is that of a run, which has saved no checkpoint of a language model" if run else None
    inside = sorted(path.parent for path in folder.glob(f"*/{_CONFIG}"))
    if inside:
        named = " or ".join(map(str, inside[:_MOST_NAMED]))
        return f"it holds no {_CONFIG}; did you mean {named}?"
    return f"it holds no {_CONFIG}"


def _read_config(folder: Path) -> dict[str, Any]:
    """The content of config.json; empty if it is missing or damaged, which loading reports."""
    try:
        config = json.loads((folder / _CONFIG).read_bytes())
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}
