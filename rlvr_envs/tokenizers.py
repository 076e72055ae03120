"""Two built-in tokenizers, and a wrapper that gives any Hugging Face tokenizer the same few methods.

Environments need tokens as bytes. Decoding joins the bytes of a completion's tokens, and stop strings are matched on bytes, so
that both are exact wherever tokens begin and end.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rlvr_envs.gguf_files import check_gguf, gguf_file
from rlvr_envs.turn_ends import closing_token, generation_config_file, generation_stops
from verifiers import DataError, InvalidArgumentError, Message, missing_dependency
from verifiers.hub import HubError, ask_once

ChatTemplate = Callable[[tuple[Message, ...]], str]


@runtime_checkable
class Tokenizer(Protocol):
    """The interface of a tokenizer that an environment needs.

    If turns may end with tokens other than `eos_token`, the tokenizer has two more attributes, `stop_tokens` and `turn_end`,
    like `HuggingFaceTokenizer`. The functions `stop_tokens` and `turn_end` return the values of these attributes for any
    tokenizer.
    """

    vocab_size: int
    """Number of tokens, which are the integers in `[0, vocab_size)`."""
    eos_token: int
    """The token that ends a completion."""
    fingerprint: str
    """A text for caches and run manifests. Tokenizers with the same fingerprint encode and decode alike."""
    chat_template: ChatTemplate | None
    """Renders a chat as the text of a prompt; None if the tokenizer has no template."""
    special_tokens: Mapping[str, int]
    """The special tokens, by their written form, such as `"<|im_end|>"`. Ordinary text is never encoded as one of them."""

    def encode(self, text: str, *, start: bool = False) -> NDArray[np.int32]:
        """Encode text as tokens i32[l]; `start` adds the tokens with which the tokenizer begins a sequence."""
        ...

    def token_bytes(self, token: int) -> bytes:
        """Return the bytes of a token; empty for special tokens."""
        ...


def stop_tokens(tokenizer: Tokenizer) -> Mapping[int, str]:
    """The tokens that end a turn, the end token first, each with its source, such as `"chat template"`."""
    tokens: Mapping[int, str] = getattr(tokenizer, "stop_tokens", {tokenizer.eos_token: "tokenizer"})
    return tokens


def turn_end(tokenizer: Tokenizer) -> int:
    """The token that ends a turn of the assistant in a chat: the chat template's token for this, or else the end token."""
    return int(getattr(tokenizer, "turn_end", tokenizer.eos_token))


def decode(tokenizer: Tokenizer, tokens: Iterable[int]) -> str:
    """Decode tokens to text; special tokens are left out, invalid UTF-8 becomes U+FFFD."""
    return b"".join(map(tokenizer.token_bytes, map(int, tokens))).decode("utf-8", errors="replace")


def utf8(text: str, name: str = "the text") -> bytes:
    r"""Encode a text as UTF-8; error messages call the text `name`.

    Raises:
        DataError: If the text contains half of a surrogate pair, such as JSON's `"\ud800"`.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        around = text[max(error.start - 20, 0) : error.end + 20]
        raise DataError(
            f"{name} has half of a surrogate pair at {error.start}, which is not a character and has no tokens: {around!r}; "
            "correct it in the data, or leave the problem out"
        ) from error


class ByteTokenizer:
    """One token for each byte of UTF-8 text (ids 0-255), and the end of a completion (256)."""

    vocab_size = 257
    eos_token = 256
    fingerprint = "byte-v1"
    chat_template: ChatTemplate | None = None
    special_tokens: Mapping[str, int] = MappingProxyType({})

    def encode(self, text: str, *, start: bool = False) -> NDArray[np.int32]:
        """Encode text as its UTF-8 bytes i32[l]; there is no start token.

        Raises:
            DataError: If the text contains half of a surrogate pair, which has no bytes.
        """
        return np.frombuffer(utf8(text), dtype=np.uint8).astype(np.int32)

    def token_bytes(self, token: int) -> bytes:
        """Return the byte, or nothing for the end token."""
        return b"" if token == self.eos_token else bytes((token,))


class CharTokenizer:
    """One token for each character of an alphabet (ids from 1), and the end of a completion (0).

    Args:
        alphabet: All characters that a text may contain; their order determines the ids, and repetitions are ignored.
    """

    eos_token = 0
    chat_template: ChatTemplate | None = None
    special_tokens: Mapping[str, int] = MappingProxyType({})

    def __init__(self, alphabet: str) -> None:
        characters = list(dict.fromkeys(alphabet))
        if not characters:
            raise InvalidArgumentError("a character tokenizer needs an alphabet of at least one character, got ''")
        self.alphabet = "".join(characters)
        self.vocab_size = len(characters) + 1
        self.fingerprint = "char-v1-" + hashlib.sha256(self.alphabet.encode()).hexdigest()[:16]
        self._ids = {character: index for index, character in enumerate(characters, start=1)}
        self._bytes = [b"", *(character.encode() for character in characters)]

    def encode(self, text: str, *, start: bool = False) -> NDArray[np.int32]:
        """Encode text as tokens i32[l]; there is no start token.

        Raises:
            DataError: If a character is not in the alphabet.
        """
        try:
            return np.array([self._ids[character] for character in text], dtype=np.int32)
        except KeyError as error:
            raise DataError(
                f"the character {error.args[0]!r} of {text[:80]!r} is not in the tokenizer's alphabet "
                f"{self.alphabet!r}; use tokenizer='byte', which takes any text"
            ) from None

    def token_bytes(self, token: int) -> bytes:
        """Return the character's UTF-8 bytes, or nothing for the end token."""
        return self._bytes[token]


class HuggingFaceTokenizer:
    """A `transformers` tokenizer.

    Args:
        tokenizer: A fast tokenizer whose tokens have definite bytes: byte-level BPE (GPT-2, Llama 3, Qwen, ...), or one with
            metaspace and byte fallback (Llama 2, Gemma, ...).

    Raises:
        InvalidArgumentError: If the tokenizer has no end-of-sequence token, or its tokens have no definite bytes.
    """

    def __init__(self, tokenizer: Any) -> None:
        if tokenizer.eos_token_id is None:
            raise InvalidArgumentError(
                f"{tokenizer.name_or_path!r} has no eos_token; set one before building the environment"
            )
        self.inner = tokenizer
        self.vocab_size = max(tokenizer.get_vocab().values()) + 1  # ids may have gaps
        self.eos_token = int(tokenizer.eos_token_id)
        self.chat_template: ChatTemplate | None = (
            self._render_chat if getattr(tokenizer, "chat_template", None) else None
        )
        serialised = tokenizer.backend_tokenizer.to_str()
        template = str(getattr(tokenizer, "chat_template", ""))
        self.fingerprint = "hf-" + hashlib.sha256((serialised + template).encode()).hexdigest()[:16]
        added = tokenizer.added_tokens_decoder.items()
        special = {token.content: index for index, token in added if token.special}
        special |= dict(zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True))
        self.special_tokens: Mapping[str, int] = special
        closing = closing_token(tokenizer, special)
        self.turn_end = self.eos_token if closing is None else closing
        """The token with which the chat template ends a turn of the assistant, or else the end token."""
        self.stop_tokens: Mapping[int, str] = self._stop_tokens(closing)
        """The tokens that end a turn, the end token first, each with its source, such as `"chat template"`."""
        self._silent = frozenset(special.values())
        core = json.loads(serialised)
        self._to_bytes = _piece_decoder(core.get("decoder"), str(tokenizer.name_or_path))
        self._added = self._added_bytes(core.get("normalizer"))
        self._prefix = self._start_tokens()
        # Tokenizers in the style of Llama 2 put a space before every text; text that continues another text must have none.
        self._adds_space = self._bytes_of(tokenizer.encode("a", add_special_tokens=False)).startswith(b" ")

    def encode(self, text: str, *, start: bool = False) -> NDArray[np.int32]:
        """Encode text as tokens i32[l]; `start` adds the tokenizer's opening tokens (BOS), unless the text begins with them.

        Raises:
            DataError: If the text contains half of a surrogate pair, which no tokenizer can encode.
        """
        utf8(text)
        tokens = self._encode(text) if start or not self._adds_space else self._encode_continuation(text)
        if start and tokens[: len(self._prefix)] != self._prefix:
            tokens = self._prefix + tokens
        return np.asarray(tokens, dtype=np.int32)

    def token_bytes(self, token: int) -> bytes:
        """Return the token's bytes, or nothing for special tokens."""
        if token in self._silent:
            return b""
        if token in self._added:
            return self._added[token]
        piece = self.inner.convert_ids_to_tokens(token)
        return b"" if piece is None else self._to_bytes(piece)

    def _stop_tokens(self, closing: int | None) -> dict[int, str]:
        generation = generation_stops(str(self.inner.name_or_path), self.vocab_size, self.special_tokens)
        named = [(self.eos_token, "tokenizer"), *((token, "generation config") for token in generation)]
        named += [] if closing is None else [(closing, "chat template")]
        sources: dict[int, list[str]] = {}
        for token, source in named:
            sources.setdefault(token, []).append(source)
        return {token: ", ".join(names) for token, names in sources.items()}

    def _added_bytes(self, normalizer: Any) -> dict[int, bytes]:
        """The bytes of each added token. Added tokens are stored as plain text, not as characters that encode bytes.

        A token that is also in the vocabulary is left out: it may come from ordinary text, too, and the vocabulary has its
        bytes.
        """
        learned = set(self.inner.backend_tokenizer.get_vocab(with_added_tokens=False).values())
        normalized: Callable[[str], bytes] = _spaced if self._to_bytes is _metaspace_piece else str.encode
        if "ByteLevel" in _kinds(normalizer, "normalizers"):
            normalized = self._to_bytes
        return {
            index: normalized(self.inner.convert_ids_to_tokens(index)) if token.normalized else token.content.encode()
            for index, token in self.inner.added_tokens_decoder.items()
            if index not in learned
        }

    def _encode(self, text: str) -> list[int]:
        return list(self.inner.encode(text, add_special_tokens=False))

    def _encode_continuation(self, text: str) -> list[int]:
        """Encode a text that continues another text: encode a line break and the text, and leave out the line break's tokens.

        The space that the tokenizer adds then comes before the line break, not before the text.
        """
        anchor, tokens = self._encode("\n"), self._encode("\n" + text)
        return tokens[len(anchor) :] if tokens[: len(anchor)] == anchor else self._encode(text)

    def _bytes_of(self, tokens: list[int]) -> bytes:
        return b"".join(map(self.token_bytes, tokens))

    def _start_tokens(self) -> list[int]:
        bare = self.inner.encode("a", add_special_tokens=False)
        full = self.inner.encode("a", add_special_tokens=True)
        return list(full[: full.index(bare[0])]) if bare else []

    def _render_chat(self, messages: tuple[Message, ...]) -> str:
        chat = [{"role": message.role, "content": message.content} for message in messages]
        return str(self.inner.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))


@functools.cache
def _byte_alphabet() -> dict[str, int]:
    # Byte-level BPE writes printable Latin-1 bytes as themselves, and moves all other bytes, in order, to U+0100 and above.
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [byte for byte in range(256) if byte not in set(plain)]
    return {chr(byte): byte for byte in plain} | {chr(0x100 + index): byte for index, byte in enumerate(moved)}


def _byte_level_piece(piece: str) -> bytes:
    alphabet = _byte_alphabet()
    if any(character not in alphabet for character in piece):
        return piece.encode()  # a character is outside the alphabet, so the piece is plain text
    return bytes(alphabet[character] for character in piece)


def _metaspace_piece(piece: str) -> bytes:
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        return bytes((int(piece[3:5], 16),))
    return _spaced(piece)


def _spaced(piece: str) -> bytes:
    return piece.replace("\u2581", " ").encode()


def _kinds(step: Any, steps: str) -> set[str]:
    """The type of a serialised tokenizer's step; for a sequence, the types of all steps in its entry `steps`."""
    return {str(part["type"]) for part in step.get(steps, [step])} if step else set()


def _piece_decoder(decoder: Any, name: str) -> Callable[[str], bytes]:
    kinds = _kinds(decoder, "decoders")
    if "ByteLevel" in kinds:
        return _byte_level_piece
    if kinds & {"Metaspace", "ByteFallback"}:
        return _metaspace_piece
    raise InvalidArgumentError(
        f"the tokenizer {name!r} decodes with {sorted(kinds) or 'nothing'}; expected byte-level BPE, or metaspace with "
        "byte fallback, whose tokens stand for definite bytes"
    )


def get_tokenizer(spec: object, *, alphabet: str | None = None) -> Tokenizer:
    """Find a tokenizer.

    Args:
        spec: None or `"byte"` for `ByteTokenizer`; `"char"` for a `CharTokenizer` over `alphabet`; a Hugging Face name or
            folder; a GGUF file; a `transformers` tokenizer; or an object with the methods of `Tokenizer`, which is returned
            unchanged.
        alphabet: The characters of the data set, if there are few.

    Raises:
        InvalidArgumentError: If the spec is anything else, or is `"char"` without an alphabet.
        MissingDependencyError: If a Hugging Face tokenizer is named and transformers is not installed.
    """
    if spec is None or spec == "byte":
        return ByteTokenizer()
    if spec == "char":
        if alphabet is None:
            raise InvalidArgumentError(
                "tokenizer='char' needs a data set with a small alphabet (the procedural environments); "
                "use 'byte' here, or pass CharTokenizer(alphabet)"
            )
        return CharTokenizer(alphabet)
    if isinstance(spec, str | os.PathLike):
        return _load_hugging_face(os.fspath(spec))
    if hasattr(spec, "backend_tokenizer"):
        return HuggingFaceTokenizer(spec)
    if isinstance(spec, Tokenizer):
        return spec
    raise InvalidArgumentError(
        "a tokenizer must be 'byte', 'char', a Hugging Face name or folder, a GGUF file, a fast transformers tokenizer or "
        f"an object with the methods of rlvr_envs.Tokenizer; got {type(spec).__name__}"
    )


def _load_hugging_face(name: str) -> HuggingFaceTokenizer:
    check_hugging_face(name)
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise missing_dependency("transformers", "train", f"the tokenizer {name!r}") from error
    file = gguf_file(name)
    place, options = (name, {}) if file is None else (str(file.parent), {"gguf_file": file.name})
    try:
        tokenizer = AutoTokenizer.from_pretrained(place, **options)
    except (OSError, ValueError, LookupError) as error:
        raise _not_loaded(name, str(error)) from error
    generation_config_file(
        place, local_files_only=False
    )  # download the file to the hub's cache, from which the tokenizer loads
    return HuggingFaceTokenizer(tokenizer)


def check_hugging_face(name: str) -> None:
    """Check that a folder, a GGUF file or a name on the hub has a tokenizer. The hub is asked about each name only once.

    Raises:
        InvalidArgumentError: If there is no tokenizer.
        MissingDependencyError: If the tokenizer is in a GGUF file, and a package that reads such files is not installed.
    """
    file = gguf_file(name)
    if file is not None:
        if not check_gguf(file).has_tokenizer:
            raise _not_loaded(name, "the file holds no tokenizer")
        return
    try:
        ask_once(name, "model")
    except HubError as error:
        raise _not_loaded(name, str(error)) from error
    folder = Path(name)
    if folder.is_dir() and not any(any(folder.glob(pattern)) for pattern in _FILES):
        raise _not_loaded(name, "the folder holds no file of a tokenizer")


_FILES = ("tokenizer*", "vocab*", "*.model", "*.tiktoken")
"""File patterns. Every tokenizer's folder that `transformers` can read has a file that matches one of these patterns."""


def _not_loaded(name: str, cause: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"no tokenizer could be loaded from {name!r}: expected 'byte', 'char', a folder with tokenizer.json, a GGUF "
        f"file, or a name on the Hugging Face hub ({cause.splitlines()[0][:200]})"
    )


def token_table(tokenizer: Tokenizer, tokens: Sequence[int]) -> NDArray[np.bool_]:
    """Return a table bool[vocab_size] that is True for the given tokens.

    Raises:
        InvalidArgumentError: If a token is outside the vocabulary.
    """
    table = np.zeros(tokenizer.vocab_size, dtype=bool)
    for token in tokens:
        if not 0 <= token < tokenizer.vocab_size:
            raise InvalidArgumentError(f"the stop token {token} is outside the vocabulary [0, {tokenizer.vocab_size})")
        table[token] = True
    return table
