"""Finding the program in a completion: one file, or several that are named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

EXTRACTIONS = ("last_block", "first_block", "longest_block", "raw")
"""`*_block` takes that fenced block, or the whole text where there is none; `raw` always takes the whole text."""

# Completions are hostile too, and are read in the caller's process: no pattern may try a text in more than a few ways.
_FENCE = re.compile(r"^[ \t]{0,3}(`{3,}+|~{3,}+)[ \t]*+([^\n`]*+)$")
_PYTHON = {"", "python", "python3", "py", "py3", "python2", "pycon"}
_PATH = r"(?:\./)?((?:[A-Za-z_]\w*/)*[A-Za-z_]\w*\.py)"
_NAME_IN_INFO = re.compile(rf"(?:^|[\s:={{\"'])(?:[\w-]+[:=])?[\"']?{_PATH}[\"'}}]*(?:\s|$)")
_NAME_IN_COMMENT = re.compile(rf"^\s*#+[\s=-]*(?:file(?:name)?\s*[:=]\s*)?[`\"']?{_PATH}[`\"']?[\s=-]*$", re.IGNORECASE)
_NAME_BEFORE = re.compile(
    rf"^(?:[\s#>*+-]|\d+[.)])*+(?:file(?:name)?\s*+[:=]?\s*+)?[*`\"']*+{_PATH}[*`\"']*+\s*+:?\s*+[*`]*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced code block."""

    info: str
    """What follows the opening fence."""
    content: str
    before: str = ""
    """The last line before the block that is not empty."""

    @property
    def language(self) -> str:
        """The first word of the info string, in small letters."""
        return re.split(r"[\s:{]", self.info, maxsplit=1)[0].lower()

    @property
    def path(self) -> str:
        """The Python file that the block is said to be: by its info string, its first line, or the line before; or empty."""
        first = next(filter(str.strip, self.content.split("\n")), "")
        for pattern, text in ((_NAME_IN_INFO, self.info), (_NAME_IN_COMMENT, first), (_NAME_BEFORE, self.before)):
            if found := pattern.search(text):
                return found[1]
        return ""


@dataclass(frozen=True, slots=True)
class Source:
    """A program as a completion gives it."""

    text: str
    """The main file."""
    path: str = ""
    """The main file's path, where the completion says one."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Further files by path."""

    def __str__(self) -> str:
        if not self.others:
            return self.text
        files = {**self.others, self.path or "main": self.text}
        return "\n\n".join(f"# {path}\n{text}" for path, text in files.items())


def is_path(text: str) -> bool:
    """Whether a text names a Python file that can be imported from where the program lies."""
    return re.fullmatch(_PATH, text) is not None and not text.startswith("./")


def fenced_blocks(completion: str) -> list[Block]:
    """The fenced code blocks of a text; an unclosed last one counts."""
    blocks: list[Block] = []
    fence = info = before = last = ""
    lines: list[str] = []
    for line in completion.replace("\r\n", "\n").split("\n"):
        found = _FENCE.match(line)
        if fence and found and found[1].startswith(fence) and not found[2].strip():
            blocks.append(Block(info, "\n".join(lines), before))
            fence = last = ""
        elif fence:
            lines.append(line)
        elif found:
            fence, info, lines, before = found[1], found[2].strip(), [], last
        elif line.strip():
            last = line
    if fence and any(map(str.strip, lines)):
        blocks.append(Block(info, "\n".join(lines), before))
    return blocks


def extract(completion: str, policy: str, main: str = "solution.py") -> Source | None:
    """Find the program of a completion, None if there is none.

    Python blocks that are named (```` ```python utils.py ````, a first line `# utils.py`, or a line `**utils.py**` before the
    block) are files, of equal names the last. The main file is the block that the policy picks, or if that has a name, the
    one named as asked, or `main.py`. Blocks without a name that the policy does not pick are left out.

    Args:
        completion: A model's answer.
        policy: One of `EXTRACTIONS`.
        main: The path that the main file has if it has one; it may be a package of that name too.
    """
    blocks = [] if policy == "raw" else _python_blocks(completion)
    if not blocks:
        return Source(completion) if completion.strip() else None
    picked = {"last_block": blocks[-1], "first_block": blocks[0], "longest_block": max(blocks, key=_length)}[policy]
    files = {block.path: block.content for block in blocks if block.path}
    usual = (main, f"{main.removesuffix('.py')}/__init__.py", "main.py")
    path = picked.path and next((name for name in usual if name in files), picked.path)
    text = files.pop(path) if path else picked.content
    return Source(text, path, files) if text.strip() else None


def _length(block: Block) -> int:
    return len(block.content)


def _python_blocks(completion: str) -> list[Block]:
    blocks = fenced_blocks(completion)
    return [block for block in blocks if block.language in _PYTHON or _NAME_IN_INFO.search(block.info)] or blocks


def continues(program: str, prefix: str, name: str) -> bool:
    """Whether a program is the continuation of a prefix, not a program that defines the name by itself."""
    if not prefix:
        return False
    defines = rf"^(?:(?:async[ \t]+)?def|class)[ \t]+{re.escape(name)}\b|^{re.escape(name)}[ \t]*(?::[^=\n]*)?="
    return re.search(defines, program, re.MULTILINE) is None


def announced(prefix: str) -> str:
    """The name that a prompt's code announces: its last function or class that begins at the left margin, or empty."""
    names = re.findall(r"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)", prefix, re.MULTILINE)
    return names[-1] if names else ""
