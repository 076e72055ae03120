"""Finding the program in a completion: one file, or several that are named."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

EXTRACTIONS = ("last_block", "first_block", "longest_block", "raw")
"""`*_block` takes that fenced block, or the whole text where there is none; `raw` always takes the whole text."""

# Completions are hostile too, and are read in the caller's process: no pattern may try a text in more than a few ways.
_FENCE = re.compile(r"^[ \t]*+(`{3,}+|~{3,}+)[ \t]*+([^\n`]*+)$")
_ITEM = re.compile(r"[ \t]*+(?:[-*+]|\d{1,9}[.)])[ \t]++(?=\S)")
_PYTHON = {"python", "python3", "py", "py3", "python2"}
_MAYBE_PYTHON = {"", "pycon"}
_CODE = re.compile(
    r"(?:[ ]{2,}+|\t)(?![-*+>] |\d+[.)] )\S|(?:async def|def|class) \w+[(:]|import [\w., ]+$|from [\w.]+ import |@\w"
)
"""How a completion begins that is code from its first line on."""
_FENCE_INDENT = 3
"""Spaces by which a fence may be indented beyond the text around it."""
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
    """The fenced code blocks of a text, without the indentation of their fences; an unclosed last one counts.

    A fence may be indented by three spaces, and in a list item by three more than the item's text.
    """
    blocks: list[Block] = []
    lines = completion.replace("\r\n", "\n").split("\n")
    fence = info = before = last = ""
    indent = item = 0
    content: list[str] = []
    for line in lines:
        found = _FENCE.match(line)
        deep = _indent(line) - (indent if fence else item) > _FENCE_INDENT
        if fence and found and not deep and found[1].startswith(fence) and not found[2].strip():
            blocks.append(Block(info, _dedented(content, indent), before))
            fence = last = ""
        elif fence:
            content.append(line)
        elif found and not deep:
            fence, info, content, before, indent = found[1], found[2].strip(), [], last, _indent(line)
        elif line.strip():
            last = line
            item = _item_indent(line, item)
    if fence and any(map(str.strip, content)):
        blocks.append(Block(info, _dedented(content, indent), before))
    return blocks


def _up_to_fence(completion: str) -> Block | None:
    """What comes before the first fence, if the text begins with code: then a fence without info closes the prompt's."""
    lines = completion.replace("\r\n", "\n").split("\n")
    if not _CODE.match(next(filter(str.strip, lines), "")):
        return None
    for number, line in enumerate(lines):
        found = _FENCE.match(line)
        if found and _indent(line) <= _FENCE_INDENT:
            return None if found[2].strip() else Block("python", "\n".join(lines[:number]))
    return None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _item_indent(line: str, item: int) -> int:
    """How far the text of the list item is indented to which a line belongs, 0 if it belongs to none."""
    found = _ITEM.match(line)
    return found.end() if found else item if _indent(line) >= item else 0


def _dedented(lines: Sequence[str], indent: int) -> str:
    """What a block holds whose fence is indented; it may be that only the fence is."""
    first = next(filter(str.strip, lines), "")
    if indent and _indent(first) >= indent:
        lines = [line[min(indent, _indent(line)) :] for line in lines]
    return "\n".join(lines)


def extract(completion: str, policy: str, main: str = "solution.py") -> Source | None:
    """Find the program of a completion, None if there is none.

    Python blocks that are named (```` ```python utils.py ````, a first line `# utils.py`, or a line `**utils.py**` before the
    block) are files, of equal names the last. The main file is the block that the policy picks, or if that has a name, the
    one named as asked, or `main.py`. Blocks without a name that the policy does not pick are left out. The policy picks out
    of the blocks that are labelled as Python or named; if none of them can be the main file, also out of those that have no
    label, such as a program's output; and only if there are none of these either, out of all. A completion that begins with
    code, up to a fence without a label, goes on inside a fence of the prompt: what follows is no part of the program.

    Args:
        completion: A model's answer.
        policy: One of `EXTRACTIONS`.
        main: The path that the main file has if it has one; it may be a package of that name too.
    """
    usual = (main, f"{main.removesuffix('.py')}/__init__.py", "main.py")
    blocks = [] if policy == "raw" else _python_blocks(completion, usual)
    if not blocks:
        return Source(completion) if completion.strip() else None
    picked = {"last_block": blocks[-1], "first_block": blocks[0], "longest_block": max(blocks, key=_length)}[policy]
    files = {block.path: block.content for block in blocks if block.path}
    path = picked.path and next((name for name in usual if name in files), picked.path)
    text = files.pop(path) if path else picked.content
    return Source(text, path, files) if text.strip() else None


def _length(block: Block) -> int:
    return len(block.content)


def _python_blocks(completion: str, main: Collection[str]) -> list[Block]:
    """The blocks that may be files of the program, out of which a policy picks.

    Args:
        completion: A model's answer.
        main: The paths that a main file may have.
    """
    if inside := _up_to_fence(completion):
        return [inside]
    blocks = fenced_blocks(completion)
    usable = [
        block for block in blocks if block.language in _PYTHON | _MAYBE_PYTHON or _NAME_IN_INFO.search(block.info)
    ]
    labelled = [block for block in usable if block.path or block.language in _PYTHON]
    has_main = any(not block.path or block.path in main for block in labelled)
    return (labelled if has_main else usable) or blocks


def continues(program: str, prefix: str, *names: str) -> bool:
    """Whether a program is the continuation of a prefix, not a program of its own.

    Args:
        program: The program.
        prefix: The prompt's code, may be empty.
        names: What may be under test. A program that defines one of these, or the function or class that the prefix announces,
            stands alone.
    """
    own = "|".join(map(re.escape, filter(None, {*names, announced(prefix)}))) if prefix else ""
    if not own:
        return False
    defines = rf"^(?:(?:async[ \t]+)?def|class)[ \t]+(?:{own})\b|^(?:{own})[ \t]*(?::[^=\n]*)?="
    return re.search(defines, program, re.MULTILINE) is None


# Programs come in groups that answer the same problem.
@functools.lru_cache(64)
def announced(prefix: str) -> str:
    """The name that a prompt's code announces: its last function or class that begins at the left margin, or empty."""
    names = re.findall(r"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)", prefix, re.MULTILINE)
    return names[-1] if names else ""
