"""Finding the place of an answer in a completion, for the small verifiers."""

from __future__ import annotations

import re

_TAG = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")


def last_tagged(text: str) -> str | None:
    """Return what the last `<answer>...</answer>` encloses, None where there is none."""
    tagged = _TAG.findall(text)
    return tagged[-1].strip() if tagged else None


def last_boxed(text: str) -> str | None:
    r"""Return what the last `\boxed{...}` encloses, None where there is none or it is not closed."""
    openings = list(_BOX.finditer(text))
    return _braced(text, openings[-1].end()) if openings else None


def _braced(text: str, start: int) -> str | None:
    depth = 1
    for index in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return text[start:index].strip()
    return None


def last_line(text: str) -> str:
    """Return the last line that is not blank, stripped; empty where there is none."""
    return text.rstrip().rpartition("\n")[2].strip()
