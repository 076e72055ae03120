"""Sizes on disk, in words."""

from __future__ import annotations

from pathlib import Path

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def size_on_disk(path: Path) -> int:
    """The bytes of a file, or of all files below a folder."""
    return (
        path.stat().st_size
        if path.is_file()
        else sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
    )


def in_words(size: float) -> str:
    """A number of bytes with three digits, such as `1.61 GB`; units are powers of 1000."""
    unit = 0
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"


def describe_model(folder: Path) -> str | None:
    """Text that says where `from_pretrained` finds a saved model, and how large the model is; None if it finds none."""
    size = in_words(size_on_disk(folder))
    if (folder / "adapter_config.json").is_file():
        return f"from_pretrained reads {folder}, {size}, an adapter that needs its base model"
    return f"from_pretrained reads {folder}, {size}" if (folder / "config.json").is_file() else None
