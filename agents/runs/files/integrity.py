"""Checks the integrity of a folder's files, by sizes and checksums that are written with the files."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from verifiers import CheckpointError

CHECKSUMS = "checksums.json"
"""Name of the file that every checkpoint of this project has."""


def write_checksums(folder: Path) -> None:
    """Write the size in bytes and the SHA-256 of every file below a folder to `checksums.json`."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    record = {path.relative_to(folder).as_posix(): fingerprint(path) for path in files}
    (folder / CHECKSUMS).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def check_checksums(folder: Path) -> None:
    """Check a folder against its `checksums.json`; files that it does not list are ignored."""
    try:
        record: dict[str, Any] = json.loads((folder / CHECKSUMS).read_text(encoding="utf-8"))
        damage = next(filter(None, (_damage(folder / name, written) for name, written in record.items())), None)
    except (OSError, ValueError, AttributeError) as error:
        damage = f"{CHECKSUMS} can't be read ({error})"
    if damage is not None:
        raise CheckpointError(f"the checkpoint at {folder} is damaged: {damage}")


def _damage(path: Path, written: dict[str, Any]) -> str | None:
    try:
        size = path.stat().st_size
        if size != written["bytes"]:
            return f"{path.name} has {size} bytes, but {written['bytes']} were written"
        return None if fingerprint(path) == written else f"{path.name} has changed: its checksum differs"
    except OSError as error:
        return f"{path.name} can't be read ({error.strerror})"


def fingerprint(path: Path) -> dict[str, Any]:
    """The size of a file in bytes, and its SHA-256."""
    with path.open("rb") as file:
        return {"bytes": os.fstat(file.fileno()).st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
