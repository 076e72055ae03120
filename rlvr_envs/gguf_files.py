"""GGUF files: the weights, the settings and the tokenizer of a model in one file.

`transformers` reads such files with the package `gguf`, which takes seconds for a large vocabulary. This module reads facts
that are needed earlier from the file's first bytes.
"""

from __future__ import annotations

import importlib.util
import mmap
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verifiers import InvalidArgumentError, missing_dependency

SUFFIX = ".gguf"
_PACKAGES = ("gguf", "accelerate")
"""The packages that `transformers` needs to read such a file; the extra `gguf` installs both."""
_CONFIGS = ("config.json", "adapter_config.json")
"""A model's folder has one of these files, unless the model is a GGUF file."""
_VERSIONS = (2, 3)
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""The `struct` codes of numeric types, by the format's number for the type."""
_STRING, _ARRAY = 8, 9
_FLOATS = {30: "bfloat16", 1: "float16", 0: "float32"}
"""The types of tensors that are not quantised, by the format's number for the type. A file may have several of these types; the
first in this order is the type of most weights, and later ones are the types of norms."""


@dataclass(frozen=True)
class GGUFHeader:
    """The header of a GGUF file."""

    settings: Mapping[str, Any]
    """The settings of the model and of its tokenizer; an array is replaced by its length."""
    tensor_types: frozenset[int]
    """The format's numbers for the types of the tensors."""

    @property
    def context(self) -> int | None:
        """The length of the model's context in tokens; None if the file does not give it."""
        length = self.settings.get(f"{self.settings.get('general.architecture')}.context_length")
        return length if isinstance(length, int) else None

    @property
    def has_tokenizer(self) -> bool:
        """Whether the file holds a tokenizer."""
        return bool(self.settings.get("tokenizer.ggml.tokens"))

    @property
    def dtype(self) -> str:
        """The type in which the weights load: bfloat16 if some weights are quantised, otherwise their type in the file.

        The rounding error of bfloat16 is small compared with the error of a quantisation, and bfloat16 has the range of
        float32. Most models were trained in bfloat16 before they were quantised; such models may overflow in float16.
        """
        if not self.tensor_types <= _FLOATS.keys():
            return "bfloat16"
        return next((name for number, name in _FLOATS.items() if number in self.tensor_types), "float32")


def gguf_file(name: str | os.PathLike[str]) -> Path | None:
    """The GGUF file of this path, or the only one in a folder without config.json. The result is None if there is no such file.

    Raises:
        InvalidArgumentError: If the folder holds several GGUF files.
    """
    path = Path(name)
    if path.suffix == SUFFIX and path.is_file():
        return path
    if not path.is_dir() or any((path / config).is_file() for config in _CONFIGS):
        return None
    files = sorted(path.glob(f"*{SUFFIX}"))
    if len(files) > 1:
        raise InvalidArgumentError(
            f"{path} holds {len(files)} GGUF files, such as {files[0].name} and {files[1].name}: name the file itself, as in "
            f"{files[0]}"
        )
    return files[0] if files else None


def check_gguf(file: Path) -> GGUFHeader:
    """Read the header of a GGUF file, and check that the packages that read the rest are installed.

    Raises:
        InvalidArgumentError: If the file is damaged.
        MissingDependencyError: If a package that reads the file is not installed.
    """
    header = gguf_header(file)
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise missing_dependency(package, "gguf", f"the GGUF file {str(file)!r}")
    return header


def gguf_header(file: Path) -> GGUFHeader:
    """Read the header of a GGUF file.

    Raises:
        InvalidArgumentError: If the file is damaged.
    """
    try:
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _Reader(content).header()
    except (struct.error, ValueError) as error:
        raise InvalidArgumentError(
            f"{file} is not a complete GGUF file of version 2 or 3 ({error}): download or convert it again"
        ) from error


class _Reader:
    """Reads a header value by value."""

    def __init__(self, content: mmap.mmap) -> None:
        self._content = content
        self._position = 0

    def header(self) -> GGUFHeader:
        if self._content[:4] != b"GGUF":
            raise ValueError(f"it begins with {self._content[:4]!r}, expected b'GGUF'")
        self._position = 4
        version, tensors, settings = self._numbers("IQQ")
        if version not in _VERSIONS:
            raise ValueError(f"its version is {version}")
        known = {self._string(): self._value(*self._numbers("I")) for _ in range(settings)}
        return GGUFHeader(known, frozenset(self._tensor_type() for _ in range(tensors)))

    def _numbers(self, types: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{types}", self._content, self._position)
        self._position += struct.calcsize(f"<{types}")
        return values

    def _skip_string(self) -> None:
        (length,) = self._numbers("Q")
        self._position += length

    def _string(self) -> str:
        (length,) = self._numbers("Q")
        (text,) = self._numbers(f"{min(length, len(self._content))}s")
        return str(text, "utf-8")

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            return self._numbers(_number_type(kind))[0]
        element, length = self._numbers("IQ")
        if element == _STRING:
            for _ in range(length):
                self._skip_string()
        else:
            self._position += length * struct.calcsize(f"<{_number_type(element)}")
        return length

    def _tensor_type(self) -> int:
        self._skip_string()
        (dimensions,) = self._numbers("I")
        self._position += 8 * dimensions
        kind, _ = self._numbers("IQ")
        return int(kind)


def _number_type(kind: int) -> str:
    if kind not in _NUMBERS:
        raise ValueError(f"a setting is of the unknown type {kind}")
    return _NUMBERS[kind]
