"""Finds the marked answer of a completion or a worked solution: one reader for all verifiers and data sets.

Only what follows the last `</think>` counts. There the marks are, in this order, a box, `####` and `<answer>`. Each verifier
itself interprets the text at a mark, and a completion without one.
"""

from __future__ import annotations

import re

# Special tokens that a tokenizer writes at the end of a text, unless it is configured to skip them.
_SPECIAL_TOKENS = re.compile(r"(?:(?:<\|[a-z_]{2,20}\|>|</s>|<eos>|<pad>|<end_of_turn>)\s*+)++\Z")
# A line after `####` that starts with a word, possibly numbered, and has text below it: a Markdown heading of level four.
_HEADING = re.compile(r"#{3,}[ \t]*[*_]*(?:\(?[0-9]{1,2}[.):][ \t]+)?[*_]*[^\W\d_]{2,}[^\n]*\n\s*\S")
_TAG = re.compile(r"<answer>", re.IGNORECASE)
_TAG_END = re.compile(r"</answer>", re.IGNORECASE)
_LAST_TAG_END = re.compile(r"</answer>\s*\Z", re.IGNORECASE)
_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![A-Za-z])\s*")
_DELIMITER = re.compile(r"\\.|[{}$\s]", re.DOTALL)
_ENDS = frozenset(("$", r"\)", r"\]"))
_BETWEEN_BOXES = re.compile(
    r"(?:[\s,;$.]|\\[,;! ]|\\q?quad\b|\\(?:text|mbox|textrm)\s*\{\s*(?:,|and|or|,\s*and|,\s*or)\s*\}|\\\(|\\\)|\band\b|\bor\b)*"
)


def marked(text: str) -> str | None:
    """Return the content at the strongest mark of a text, stripped; empty if it has no content, None without a mark."""
    for read in (joined_boxes, after_hashes, last_tagged):
        if (content := read(text)) is not None:
            return content.strip()
    return None


def after_thinking(completion: str) -> tuple[str, str]:
    """Return the text after a completion's last closed thought, and the reason if that is not an answer, else an empty one."""
    _, closed, rest = completion.rpartition("</think>")
    if "<think>" in rest:
        return "", "an unclosed <think>"
    if closed and not rest.strip():
        return "", "nothing after </think>"
    return rest, ""


def without_special_tokens(completion: str) -> str:
    """Return a completion without the special tokens at its end."""
    return _SPECIAL_TOKENS.sub("", completion) if completion.rstrip().endswith(">") else completion


def last_tagged(text: str) -> str | None:
    """Return the content of the last `<answer>`, up to its end or that of the text; None if there is none."""
    tags = list(_TAG.finditer(text))
    return _TAG_END.split(text[tags[-1].end() :], maxsplit=1)[0] if tags else None


def after_hashes(text: str) -> str | None:
    """Return the line after the last `####`; None if there is none or it is a heading."""
    start = text.rfind("####")
    if start < 0 or _HEADING.match(text, start):
        return None
    return _LAST_TAG_END.sub("", text[start + 4 :].lstrip("#").lstrip().partition("\n")[0])


def boxes(text: str) -> list[tuple[int, int, str | None]]:
    r"""Return every outermost box: its start, its end, and its content, None if it is not closed.

    Without braces, as in `\boxed 5$` or `\boxed\frac12.`, the content is the text up to white space, the end of the
    formula or punctuation there. Escaped braces (`\{`, `\}`) are text, not delimiters.
    """
    spans: list[tuple[int, int, str | None]] = []
    position = 0
    while (match := _BOX.search(text, position)) is not None:
        read = _braced if text.startswith("{", match.end()) else _bare
        content, position = read(text, match.end())
        spans.append((match.start(), position, content))
    return spans


def joined_boxes(text: str) -> str | None:
    """Return the last box, joined with those before it that are separated only by signs and joining words, as a list.

    Returns:
        The contents joined by commas, or by `or` if that separates any two of them; None if there is no box, and an
        empty text if the last is empty or not closed.
    """
    spans = boxes(text)
    if not spans:
        return None
    contents, joiner = [spans[-1][2]], ", "
    for earlier, later in zip(spans[-2::-1], spans[:0:-1], strict=True):
        between = text[earlier[1] : later[0]]
        if not _BETWEEN_BOXES.fullmatch(between) or "\n\n" in between:
            break
        contents.append(earlier[2])
        joiner = " or " if re.search(r"\bor\b", between) else joiner
    if not contents[0]:
        return ""
    return joiner.join(dict.fromkeys(content for content in reversed(contents) if content))


def boxed_answer(solution: str) -> str | None:
    r"""Return the answer that a worked solution gives in its last box, or in the last few; None if it gives none."""
    return joined_boxes(solution) or None


def _braced(text: str, start: int) -> tuple[str | None, int]:
    """The group whose opening brace is at `start`, None if it is never closed, and the index after it."""
    depth = 0
    for match in _DELIMITER.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return text[start + 1 : match.start()].strip(), match.end()
    return None, len(text)


def _bare(text: str, start: int) -> tuple[str, int]:
    """The text from `start` to the end of the word or formula, and the index after it."""
    depth, end = 0, len(text)
    for match in _DELIMITER.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth < 0 or (depth == 0 and (match[0] in _ENDS or match[0].isspace())):
            end = match.start()
            break
    return text[start:end].rstrip(".,;"), end


def last_fenced(text: str) -> str | None:
    """Return the content of the last fenced block (Markdown, by backticks) that is closed; None if there is none."""
    content, opened, ticks = None, -1, ""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        mark = line.strip()
        if opened < 0 and mark.startswith("```") and "`" not in mark.lstrip("`"):
            opened, ticks = number, mark[: len(mark) - len(mark.lstrip("`"))]
        elif opened >= 0 and mark.startswith(ticks) and not mark.strip("`"):
            content, opened = "\n".join(lines[opened + 1 : number]), -1
    return content


def last_line(text: str) -> str:
    """Return the last line that is not blank, stripped; empty if there is none."""
    return text.rstrip().rpartition("\n")[2].strip()
