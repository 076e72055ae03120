"""The code blocks of a response: in fences, in tags or LaTeX environments, and in a fence that the prompt opened."""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

# Completions may be hostile, and are parsed in the caller's process: no pattern may backtrack more than a little.
_TAG = r"(?:</?[A-Za-z|｜][^<>\n`]{0,64}+>|\[/?[A-Z]{3,12}\])"
_FENCE = re.compile(rf"^[ \t]*+(?:{_TAG}[ \t]*+)*+(`{{3,}}+|~{{3,}}+)[ \t]*+([^\n`]*+)$")
_TAGS = re.compile(rf"(?:[ \t]*+{_TAG})*+[ \t]*+")
_CLOSING_TAGS = re.compile(r"(?:[ \t]*+(?:</[^<>\n]{1,64}+>|\[(?:/[A-Z]{3,12}|DONE)\]))++[ \t]*+")
_FENCE_AFTER_TEXT = re.compile(r"^[^`]*+(?<![`'\"])(`{3,}+)[ \t]*+((?:python|py)[\d.]*+)[ \t]*+$", re.IGNORECASE)
_ITEM = re.compile(r"[ \t]*+(?:[-*+]|\d{1,9}[.)])[ \t]++(?=\S)")
_QUOTED = re.compile(r"(?: {0,3}>(?!>>(?: |$)) ?)++")
_QUOTED_FENCE = re.compile(r"(?: {0,3}>(?!>>(?: |$)) ?)++ {0,3}(?:```|~~~)")
_FENCE_INDENT = 3
"""Spaces by which a fence may be indented beyond the text around it."""
_STRINGS = re.compile(r"\\.|'''|\"\"\"|['\"#]")
_PYTHON = re.compile(r"(?:i?python|py)[\d.]*")
_LANGUAGE = re.compile(r"[\s{.]*+(?:lang(?:uage)?[-=:])?\"?([\w+#.-]*)", re.IGNORECASE)

_CODE = re.compile(
    r"(?:[ ]{2,}+|\t)(?![-*+>] |\d+[.)] )\S|(?:async def|def|class) \w+[(:]|import [\w., ]+$|from [\w.]+ import |@\w"
    r"|[rR]?(?:\"\"\"|''')"
)
"""Matches the beginning of a completion that is code from its first line on."""
_STATEMENT = re.compile(
    r"\w++(?:[.,] ?\w++)*+ ?[-+*/]?= ?\S|(?:print|input)\(|(?:(?>for \w.*? in )|(?:while|if|with) ).*:$|try:$|return\b|#!"
)
"""Matches possible beginnings of a completion that is code; prose can begin like some of them."""
_PROSE = re.compile(
    r"[A-Z][\w'’]*+(?! (?:if|and|or|in|for|not|else) ),?(?: [`\w][\w'’`-]*+){2}"
    r"|[A-Z][\w'’]*+(?: \w[\w'’-]*+)*+:$|\*\*[A-Z][^*]*+\*\*"
)
"""Matches the beginning of a line of prose: three words in a row, a heading in bold, or words before a colon."""

_MARK = re.compile(
    r"^[ \t]*+(?:<(?P<tag>pre|code|python|program|solution|answer|final_answer)(?P<attributes>\s[^<>\n]{0,200}+)?>"
    r"|\[(?P<label>PYTHON|CODE|ANSWER|SOLUTION|BEGIN)\]"
    r"|\\begin\{(?P<environment>lstlisting|minted|[vV]erbatim)\}(?P<options>(?:\[[^\]\n]{0,200}+\]|\{[^}\n]{0,40}+\})*+))",
    re.MULTILINE,
)
_MARK_DEPTH = 4


class Block(NamedTuple):
    """A block of code."""

    info: str
    """The text after the opening fence."""
    content: str
    before: str = ""
    """The last non-empty line before the block."""
    closed: bool = True
    """Whether the block ends with a fence, rather than at the end of the text or at the beginning of another block."""

    @property
    def language(self) -> str:
        """The first word of the info string, in lower case: `python` in `Python {.x}`, `{.python}` and `language-python`."""
        match = _LANGUAGE.match(self.info)
        return match[1].lower() if match else ""

    @property
    def is_python(self) -> bool:
        """Whether the block is labelled as Python."""
        return _PYTHON.fullmatch(self.language) is not None

    @property
    def is_session(self) -> bool:
        """Whether the block shows an interactive session."""
        return self.content.lstrip().startswith(">>> ")


def code_blocks(text: str) -> list[Block]:
    """The blocks from which a program is taken, in order; empty if the text has none.

    A text that begins with code continues a block of the prompt. This block ends at a fence without a label, a closing tag, or
    prose. Blocks marked by tags or LaTeX count only if nothing is fenced.
    """
    if inside := _continued(text):
        return [inside]
    return fenced_blocks(text) or list(_marked(text))


def fenced_blocks(text: str) -> list[Block]:
    """The fenced code blocks of a text, without the indentation of their fences; an unclosed last block counts too.

    A fence may be indented by up to three spaces; in a list item, by up to three more than the item's text. It may follow tags,
    a list item's mark or, if its label is just Python, any text. A block is closed by a fence without a label, which may also
    stand at the end of a line of Python and be followed by tags; pairs of fences within a Python string close nothing. A block
    that runs into a fence with a label is cut off there. The marks of a quotation are removed, and a block of Markdown is
    replaced by the blocks that it contains.
    """
    blocks = []
    for block in _fenced(text):
        inner = _fenced(block.content) if block.language in ("markdown", "md") else []
        blocks += [*filter(_filled, inner)] or [*filter(_filled, [block])]
    return blocks


def last_block(
    response: str, languages: Collection[str], accepts: Callable[[str], bool] = lambda content: bool(content.strip())
) -> str | None:
    """The last accepted fenced block of a response; None if no block is accepted.

    A block of one of the languages takes precedence over an unlabelled block, and an unlabelled block over any other block.

    Args:
        response: A completion without its thoughts.
        languages: Labels, in lower case.
        accepts: Function that returns whether a block with this content is accepted.
    """
    blocks = [block for block in fenced_blocks(response) if accepts(block.content)]
    for wanted in (languages, ("",)):
        if chosen := [block for block in blocks if block.language in wanted]:
            return chosen[-1].content
    return blocks[-1].content if blocks else None


def block_or_text(response: str, languages: Collection[str]) -> str | None:
    """The last fenced block of a response, or the whole response if it has no fence; None if the result would be blank."""
    if fenced_blocks(response):
        return last_block(response, languages)
    return response if response.strip() else None


def _filled(block: Block) -> bool:
    return block.closed or bool(block.content.strip())


def _open_at_start(text: str) -> bool:
    """Whether a text seems to begin inside a block: its first fence has no label, and its fences don't pair up."""
    blocks = _fenced(text)
    return bool(blocks) and not blocks[0].info and not all(block.closed for block in blocks)


def _continued(text: str) -> Block | None:
    """The code with which a text begins, or None; a fence without a label after the code closes the prompt's block."""
    first = _first_line(text)
    surely = _begins_with_code(first)
    if not surely:
        # If nothing but a fence follows, there is no other code.
        may_be = _STATEMENT.match(first) or not any(map(_filled, _fenced(text)))
        if not may_be or not _open_at_start(text):
            return None
    lines = text.split("\n")
    # A complete program may be followed by a better program; a continuation of the prompt's code is the only program.
    before_prose = surely and (first[0].isspace() or not any(map(_FENCE.match, lines)))
    strings = _Strings(lines)
    has_fence = False
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence and _indent(line) <= _FENCE_INDENT:
            has_fence = True
            if not strings.holds(number):
                return Block("python", "\n".join(lines[:number])) if _TAGS.fullmatch(fence[2]) else None
        code = _before_fence(line, "```", strings.quote)
        if code is not None:
            return Block("python", "\n".join([*lines[:number], code]))
        ends = (surely and _CLOSING_TAGS.fullmatch(line)) or (before_prose and _PROSE.match(line))
        if ends and not strings.quote:
            return Block("python", "\n".join(lines[:number]))
        strings.read(line)
    return Block("python", text) if has_fence else None


def _begins_with_code(first: str) -> bool:
    return _CODE.match(first) is not None and not _PROSE.match(first.strip())


def _first_line(text: str) -> str:
    match = re.search(r"^[ \t]*+\S.*", text, re.MULTILINE)
    return match[0] if match else ""


def _fenced(text: str) -> list[Block]:
    """All fenced blocks, including an empty unclosed one."""
    lines = text.split("\n")
    blocks: list[Block] = []
    passed: list[str] = []
    """The lines outside of blocks."""
    number = end = read = item = 0
    for place in [place for place, line in enumerate(lines) if "```" in line or "~~~" in line]:
        if place < number:
            continue
        passed += lines[number:place]
        number, line = place, lines[place]
        if _QUOTED_FENCE.match(line):
            quoted = []
            while number < len(lines) and (mark := _QUOTED.match(lines[number])):
                quoted.append(lines[number][mark.end() :])
                number += 1
            blocks += _fenced("\n".join(quoted))
            continue
        if _indent(line) > _FENCE_INDENT:  # otherwise the list item of the fence does not matter
            item = functools.reduce(_item_indent, filter(str.strip, passed[read:]), item)
            read = len(passed)
        before = next(filter(str.strip, islice(reversed(passed), len(passed) - end)), "")
        if opening := _opening(line, before, item):
            block, number = _read_block(opening, lines, number + 1)
            blocks.append(block)
            end = len(passed)
        else:
            passed.append(line)
            number += 1
    return blocks


class _Opening(NamedTuple):
    fence: str
    indent: int
    info: str
    before: str


def _opening(line: str, before: str, item: int) -> _Opening | None:
    """The opening of a block in a line, or None; `item` is the indentation of the list item that contains the line."""
    if _indent(line) - item > _FENCE_INDENT:
        return None
    mark = _ITEM.match(line)
    start = mark.end() if mark else 0
    match = _FENCE.match(line[start:]) or _FENCE_AFTER_TEXT.match(line)
    if not match:
        return None
    info = "" if _TAGS.fullmatch(match[2]) else match[2].strip()
    return _Opening(match[1], start or _indent(line), info, before)


class _Strings:
    """Tracks a program's triple-quoted strings, line by line."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.quote = ""
        """The quotes of the open string, empty if none is open."""
        self._lines = lines
        self._held = self._checked = 0

    def read(self, line: str) -> None:
        """Advance past this line."""
        self.quote = _quote_after(line, self.quote)

    def holds(self, number: int) -> bool:
        """Whether the fence at a line is inside an open string, in which every second fence must have no label."""
        if self.quote and number >= self._checked:
            self._held, self._checked = self._end(number)
        return number < self._held

    def _end(self, number: int) -> tuple[int, int]:
        """The line up to which fences belong to the open string (0 if they do not), and the last line that was searched."""
        infos = []
        for end in range(number, len(self._lines)):
            if fence := _FENCE.match(self._lines[end]):
                infos.append(fence[2])
            elif self.quote in self._lines[end]:
                paired = len(infos) % 2 == 0 and all(map(_TAGS.fullmatch, infos[1::2]))
                return (end if paired else 0), end
        return 0, len(self._lines)


def _read_block(opening: _Opening, lines: Sequence[str], start: int) -> tuple[Block, int]:
    """The block that opens just before the line `start`, and the number of the line after the block."""

    def block(end: int, *last: str, closed: bool = True) -> Block:
        content = _dedented([*lines[start:end], *last], opening.indent)
        return Block(opening.info, content, opening.before, closed)

    may_be_python = not opening.info or Block(opening.info, "").is_python
    strings = _Strings(lines)
    cut = None
    for number in range(start, len(lines)):
        line = lines[number]
        is_near = opening.fence in line and _indent(line) - opening.indent <= _FENCE_INDENT
        fence = _FENCE.match(line) if is_near else None
        if fence and fence[1].startswith(opening.fence) and not strings.holds(number):
            if _TAGS.fullmatch(fence[2]):
                return block(number), number + 1
            return block(number if cut is None else cut, closed=False), number
        if may_be_python:
            code = _before_fence(line, opening.fence, strings.quote)
            if code is not None:
                return block(number, code), number + 1
            if cut is None and not strings.quote and _CLOSING_TAGS.fullmatch(line):
                cut = number
            strings.read(line)
    return block(len(lines) if cut is None else cut, closed=False), len(lines)


def _quote_after(line: str, quote: str) -> str:
    """The triple quote of the string that is open after a line of Python, empty if none is open."""
    if quote not in line or ("'''" not in line and '"""' not in line):
        return quote
    quote = _open_string(line, quote)
    return quote if len(quote) == 3 else ""


def _open_string(line: str, quote: str) -> str:
    """The quote of the string that is open at the end of a piece of a line; empty if none is open."""
    for token in _STRINGS.findall(line):
        if quote:
            # Within '...', three quotes are the end of the string and an empty string.
            quote = "" if token.startswith(quote) else quote
        elif token == "#":
            break
        elif token[0] in "'\"":
            quote = token
    return quote


def _before_fence(line: str, fence: str, quote: str) -> str | None:
    """The code before a closing fence at the end of a line of Python; None if the line has no such fence.

    `quote` is the triple quote of the string that is open before the line; empty if none is.
    """
    end = line.rfind(fence) + len(fence)
    if end < len(fence) or not _TAGS.fullmatch(line, end):
        return None
    code = line[:end].rstrip(fence[0])
    return None if not code.strip() or fence in code or _open_string(code, quote) else code


def _marked(text: str) -> Iterator[Block]:
    """The blocks that begin with a tag or a LaTeX environment for code at the start of a line."""
    if _begins_with_code(_first_line(text)):
        return
    end = 0
    while mark := _MARK.search(text, end):
        closing = _closing(mark)
        stop = text.find(closing, mark.end())
        content, end = (text[mark.end() :], len(text)) if stop < 0 else (text[mark.end() : stop], stop + len(closing))
        info = f"{mark['attributes'] or ''}{mark['options'] or ''}"
        is_html = mark["tag"] in ("pre", "code")
        for _ in range(_MARK_DEPTH):
            inner = _MARK.match(content.lstrip())
            if not inner:
                break
            content = content.lstrip()[inner.end() :].rpartition(_closing(inner))[0] or content.lstrip()[inner.end() :]
            info = f"{inner['attributes'] or ''}{inner['options'] or ''}" or info
            is_html |= inner["tag"] in ("pre", "code")
        if is_html and "<" not in content:
            content = html.unescape(content)
        if content.strip():
            yield Block(_marked_language(info), content)


def _closing(mark: re.Match[str]) -> str:
    """The text that closes a tag or environment."""
    if mark["tag"]:
        return f"</{mark['tag']}>"
    if mark["label"] == "BEGIN":  # as MBPP's prompts have it
        return "[DONE]"
    return f"[/{mark['label']}]" if mark["label"] else f"\\end{{{mark['environment']}}}"


def _marked_language(info: str) -> str:
    """The language that a mark's attributes or options name, empty if they name none."""
    match = re.search(r"lang(?:uage)?[-=:][\"']?(\w++)|\{(\w++)\}", info)
    return (match[1] or match[2]).lower() if match else ""


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _item_indent(item: int, line: str) -> int:
    """The indentation of the text of the list item that contains a line, 0 if none does."""
    match = _ITEM.match(line)
    return match.end() if match else item if _indent(line) >= item else 0


def _dedented(lines: Sequence[str], indent: int) -> str:
    """The content of an indented block without its indentation; lines that are indented less are accepted."""
    first = next(filter(str.strip, lines), "")
    if indent and _indent(first) >= indent:
        lines = [line[min(indent, _indent(line)) :] for line in lines]
    return "\n".join(lines)
