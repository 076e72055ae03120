"""Finding the program in a completion."""

from __future__ import annotations

import re

EXTRACTIONS = ("last_block", "first_block", "longest_block", "raw")
"""`*_block` takes that fenced block, or the whole text where there is none; `raw` always takes the whole text."""

_FENCE = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})[ \t]*([^\n`]*)$")
_PYTHON = {"", "python", "python3", "py", "py3", "python2", "pycon"}


def fenced_blocks(completion: str) -> list[tuple[str, str]]:
    """The fenced code blocks of a text, each as (info string, content); an unclosed last one counts."""
    blocks: list[tuple[str, str]] = []
    fence, info = "", ""
    lines: list[str] = []
    for line in completion.replace("\r\n", "\n").split("\n"):
        found = _FENCE.match(line)
        if fence and found and found[1].startswith(fence) and not found[2].strip():
            blocks.append((info, "\n".join(lines)))
            fence = ""
        elif fence:
            lines.append(line)
        elif found:
            fence, info, lines = found[1], found[2].strip(), []
    if fence and any(map(str.strip, lines)):
        blocks.append((info, "\n".join(lines)))
    return blocks


def extract(completion: str, policy: str) -> str | None:
    """Return the program of a completion under a policy of `EXTRACTIONS`, None if there is none."""
    blocks = [] if policy == "raw" else _python_blocks(completion)
    if not blocks:
        return completion if completion.strip() else None
    block = {"last_block": blocks[-1], "first_block": blocks[0], "longest_block": max(blocks, key=len)}[policy]
    return block if block.strip() else None


def _python_blocks(completion: str) -> list[str]:
    blocks = fenced_blocks(completion)
    python = [content for info, content in blocks if info.partition(" ")[0].lower() in _PYTHON]
    return python or [content for _, content in blocks]


def continues(program: str, prefix: str, name: str) -> bool:
    """Whether a program is the continuation of a prefix, not a program that defines the name by itself."""
    if not prefix:
        return False
    defines = rf"^(?:(?:async[ \t]+)?def|class)[ \t]+{re.escape(name)}\b|^{re.escape(name)}[ \t]*(?::[^=\n]*)?="
    return re.search(defines, program, re.MULTILINE) is None
