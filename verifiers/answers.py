"""Where a completion or a worked solution says that its answer stands: one reader for all verifiers and data sets.

What is thought is not said: only what follows the last `</think>` counts. There the marks are, in this order, a box, `####` and
`<answer>`. What a verifier makes of the text at a mark, and of a completion without one, is its own business.
"""

from __future__ import annotations

import re

# What a tokenizer writes at the end of a text, if it is told not to skip it.
_SPECIAL_TOKENS = re.compile(r"(?:(?:<\|[a-z_]{2,20}\|>|</s>|<eos>|<pad>|<end_of_turn>)\s*+)++\Z")
# A line behind `####` that starts with a word, perhaps numbered, and has text below it: Markdown's fourth heading.
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
    """Return what stands at the strongest mark of a text, stripped; empty where that holds nothing, None without a mark."""
    for read in (joined_boxes, after_hashes, last_tagged):
        if (content := read(text)) is not None:
            return content.strip()
    return None


def after_thinking(completion: str) -> tuple[str, str]:
    """Return what a completion says after its last closed thought, and why that is no answer, if so."""
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
    """Return what the last `<answer>` encloses, up to its end or that of the text; None where there is none."""
    tags = list(_TAG.finditer(text))
    return _TAG_END.split(text[tags[-1].end() :], maxsplit=1)[0] if tags else None


def after_hashes(text: str) -> str | None:
    """Return the line behind the last `####`, None where there is none or it is a heading."""
    start = text.rfind("####")
    if start < 0 or _HEADING.match(text, start):
        return None
    return _LAST_TAG_END.sub("", text[start + 4 :].lstrip("#").lstrip().partition("\n")[0])


def boxes(text: str) -> list[tuple[int, int, str | None]]:
    r"""Return every outermost box: where it starts and ends, and its content, None if it is not closed.

    Without braces, as in `\boxed 5$` or `\boxed\frac12.`, the content is what follows, up to white space, the end of the
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
    """Return the last box with those before it that only signs and joining words stand between, as a list.

    Returns:
        The contents joined by commas, or by `or` where that stands between two of them; None if there is no box, and an
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
    """The group whose opening brace is at `start`, None if it is never closed, and where to go on."""
    depth = 0
    for match in _DELIMITER.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return text[start + 1 : match.start()].strip(), match.end()
    return None, len(text)


def _bare(text: str, start: int) -> tuple[str, int]:
    """What follows `start` up to the end of the word or formula, and where to go on."""
    depth, end = 0, len(text)
    for match in _DELIMITER.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth < 0 or (depth == 0 and (match[0] in _ENDS or match[0].isspace())):
            end = match.start()
            break
    return text[start:end].rstrip(".,;"), end


def last_line(text: str) -> str:
    """Return the last line that is not blank, stripped; empty where there is none."""
    return text.rstrip().rpartition("\n")[2].strip()
