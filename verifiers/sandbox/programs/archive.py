"""Packs JSON values and files into bytes for the way into the jail and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def pack(header: Mapping[str, object], files: Mapping[str, bytes]) -> bytes:
    """Pack a header and files into bytes."""
    sizes = {name: len(content) for name, content in files.items()}
    return json.dumps({**header, "files": sizes}).encode() + b"\n" + b"".join(files.values())


def unpack(packed: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Unpack the header, whose `files` holds the size of each file, and the files."""
    line, _, rest = packed.partition(b"\n")
    header, files, start = json.loads(line), {}, 0
    for name, size in header["files"].items():
        files[name] = rest[start : start + size]
        start += size
    return header, files
