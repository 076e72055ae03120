"""Find the tokens that end turns, in a model's generation config and chat template.

The template's token is found by rendering a turn of the assistant and reading the text after the turn. So this code depends on
no model's special tokens.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verifiers import InvalidArgumentError

ASSISTANT = "Zq7assistant7qZ"
"""Placeholder for the text of the assistant."""
USER = {"role": "user", "content": "x"}

_GENERATION_CONFIG = "generation_config.json"


def special_tokens_in(text: str, special_tokens: Mapping[str, int]) -> list[str]:
    """The special tokens in a text, in order of first appearance; if two begin at the same place, the longer is first."""
    spelled = [mark for mark in special_tokens if mark and mark in text]
    return sorted(spelled, key=lambda mark: (text.index(mark), -len(mark)))


def closing_token(tokenizer: Any, special_tokens: Mapping[str, int]) -> int | None:
    """The token with which the chat template of a `transformers` tokenizer ends a turn of the assistant.

    The result is None if there is no template, or if the template ends turns with ordinary text or has no turns of an
    assistant.
    """
    if not getattr(tokenizer, "chat_template", None):
        return None
    chat = [USER, {"role": "assistant", "content": ASSISTANT}]
    try:
        text = str(tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=False))
    except Exception:  # noqa: BLE001 - a template may raise anything; an episode that uses it raises the error again
        return None
    _, found, after = text.rpartition(ASSISTANT)
    marks = special_tokens_in(after, special_tokens) if found else []
    return special_tokens[marks[0]] if marks else None


def generation_stops(name: str, vocab_size: int, special_tokens: Mapping[str, int]) -> list[int]:
    """The end tokens in a tokenizer's generation config, in its folder or in the hub's cache; empty if there is no config.

    A generation config that `transformers` derived from the model's config may hold the architecture's default, which was not
    chosen for this vocabulary. In such a config, only special tokens count.

    Raises:
        InvalidArgumentError: If the file is damaged, or a token is outside the vocabulary.
    """
    path = generation_config_file(name, local_files_only=True)
    if path is None:
        return []
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        named = config.get("eos_token_id")
        tokens = [int(token) for token in (named if isinstance(named, list) else [] if named is None else [named])]
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidArgumentError(
            f"{path} is damaged: expected a JSON object whose eos_token_id is a token, a list of tokens or null ({error}); "
            "correct it, or download the model again"
        ) from error
    if config.get("_from_model_config"):
        return [token for token in tokens if token in special_tokens.values()]
    for token in tokens:
        if not 0 <= token < vocab_size:
            raise InvalidArgumentError(
                f"{path} says that the token {token} ends a text, which is outside the tokenizer's vocabulary "
                f"[0, {vocab_size}): correct its eos_token_id, or use the tokenizer that the model was trained with"
            )
    return tokens


def generation_config_file(name: str, *, local_files_only: bool) -> Path | None:
    """The generation config in a folder, in the hub's cache or on the hub; None if it can't be found."""
    from transformers.utils import cached_file

    try:
        found = cached_file(name, _GENERATION_CONFIG, local_files_only=local_files_only)
    except OSError:  # raised by transformers if there is no such file or the hub can't be reached
        return None
    return None if found is None else Path(found)
