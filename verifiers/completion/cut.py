"""The response in a completion: the text without thoughts, end tokens, and anything after a stop string.

Completions may be hostile. Every pattern here is linear in the length of the text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from verifiers.completion.code import Fence, fences
from verifiers.completion.places import line_start, matches
from verifiers.completion.words import CLOSINGS, OPENINGS, THOUGHTS, tags
from verifiers.errors import InvalidArgumentError

_END = re.compile(
    r"(?:<\|[^<>|\n]{1,60}+\|>|<｜[^<>｜\n]{1,60}+｜>|</?s>|\[(?:EOS|PAD)\]"
    r"|<(?:eos|bos|pad|unk|eod|end|end_of_turn|start_of_turn|end_of_utterance|\|turn|turn\|)>)\Z"
)
"""Matches special tokens at the end of a text by their shape, since no list of them can be complete."""
_BEGINNINGS = re.compile(r"(?:\s*+<\|[^<>|\n]{1,60}+\|>)++")
_TURN = re.compile(
    r"(?:<\|[^<>|\n]{1,40}+\|>|</s>|<end_of_turn>|<turn\|>)\s*+"
    r"(?:(?:<\|[^<>|\n]{1,40}+\|>|<start_of_turn>|<\|turn>|<s>)\s*+(?:user|human|system)\b|\[INST\])",
    re.IGNORECASE,
)
"""Matches the end of a turn before another speaker's turn, which the policy made up."""
_LONGEST_END = 64
_NAME = re.compile(r"[\w:-]+")
_SIGNS = ("<", "[", "◁")
"""The characters with which the marks of thoughts begin."""
_CHANNEL = r"<\|channel\|>(?:analysis|commentary)\b[^<\n]*+<\|message\|>"
_FINAL = r"<\|channel\|>final[^<\n]*+<\|message\|>"
_IN_A_STRING = r"(?![\"'][ \t]*+(?:[),\]:;+]|$)|\\[snwSW](?![A-Za-z]))"
"""Excludes a mark at the end of a program's string, as in `split("a</think>")`, or within a regular expression."""
_QUOTES = "\"'`"
_SKIPPED_CHANNEL = re.compile(r"\A(?:analysis|commentary)(?=[A-Z\s]).*assistantfinal(?P<response>.*)\Z", re.DOTALL)
"""Matches the channels of gpt-oss in a text from which the tokenizer dropped their marks."""


class Response(NamedTuple):
    """The part of a completion after its thoughts."""

    text: str
    """The text; empty if there is none."""
    missing: str = ""
    """The reason why there is no response; empty if there is one."""
    start: int = 0
    """The index at which the text begins in the completion, whose line ends are first converted to line feeds."""


def cut(completion: str, *, stop: Sequence[str] = (), thoughts: Collection[str] | None = THOUGHTS) -> Response:
    """Cut a completion down to its response.

    Args:
        completion: A model's text.
        stop: Stop strings; the completion ends before the first that occurs.
        thoughts: Names of the tags of thoughts; None reads thoughts as text.

    Raises:
        InvalidArgumentError: If the completion is not a string.
    """
    given: object = completion  # a verifier may be called with anything
    if not isinstance(given, str):
        raise InvalidArgumentError(f"a completion must be a string, got {given!r}")
    if "\r" in completion:
        completion = completion.replace("\r\n", "\n")
    for string in stop:
        completion = completion.partition(string)[0]
    text = without_end_tokens(_TURN.split(completion, maxsplit=1)[0] if "<" in completion else completion)
    start, is_open = (0, False) if thoughts is None else _after_thoughts(text, tuple(thoughts))
    if is_open:
        return Response("", "a thought that is not closed", len(text))
    if not start:
        return Response(text)
    if not text[start:].strip():
        return Response("", "nothing after the thought", len(text))
    # Some models put a special token in front of their response, too.
    start += leading.end() if (leading := _BEGINNINGS.match(text[start:])) else 0
    return Response(text[start:], start=start)


def thought_names(thoughts: str | Sequence[str]) -> tuple[str, ...]:
    """The names of the tags of thoughts that a setting lists, as a sequence or as text with commas between them.

    Raises:
        InvalidArgumentError: If there are no names, or one is not the name of a tag.
    """
    names: object = thoughts.split(",") if isinstance(thoughts, str) else thoughts
    names = tuple(names) if isinstance(names, Sequence) else ()
    if not names or not all(isinstance(name, str) and _NAME.fullmatch(name) for name in names):
        raise InvalidArgumentError(f"thoughts must be names of tags, such as ('think',), got {thoughts!r}")
    return names


def without_thoughts(text: str) -> str:
    """The part of a text after its last thought; empty if that thought is not closed."""
    start, is_open = _after_thoughts(text, THOUGHTS)
    return "" if is_open else text[start:]


def without_end_tokens(text: str) -> str:
    """A text without the special tokens, and the white space between them, at its end."""
    end = len(text)
    while True:
        trimmed = end
        while trimmed and text[trimmed - 1].isspace():
            trimmed -= 1
        if not trimmed or text[trimmed - 1] not in ">]":
            return text[:end]
        match = _END.search(text[max(0, trimmed - _LONGEST_END) : trimmed])
        if not match:
            return text[:end]
        end = trimmed - len(match[0])


@functools.lru_cache(16)
def _marks(names: tuple[str, ...]) -> re.Pattern[str]:
    openings = "|".join((tags(names, opening=True), *map(re.escape, OPENINGS)))
    closings = "|".join((tags(names, opening=False), _FINAL, *map(re.escape, CLOSINGS)))
    return re.compile(
        rf"(?P<tag>{openings})|(?P<channel>{_CHANNEL})|(?<!\\)(?P<close>{closings}){_IN_A_STRING}",
        re.IGNORECASE | re.MULTILINE,
    )


def _after_thoughts(text: str, names: tuple[str, ...]) -> tuple[int, bool]:
    """The start of the text after the last thought (0 if there is no thought), and whether a thought is open at the end."""
    if (skipped := _SKIPPED_CHANNEL.match(text)) is not None:
        return skipped.start("response"), False
    marks = list(matches(_marks(names), _SIGNS, text)) if "<" in text or "[" in text or "◁" in text else []
    if not marks:
        return 0, False
    last_closing = {mark[0].casefold(): mark.start() for mark in marks if mark["close"]}
    code = fences(text, behind_tags=True)
    start, thinking, fence, passed = 0, False, "", 0
    for mark in marks:
        while passed < len(code) and code[passed].start < mark.start():
            fence = "" if thinking else code[passed].after(fence)
            passed += 1
        in_label = passed > 0 and mark.start() < code[passed - 1].end
        # A mark may close a thought together with the thought's last block, in one line.
        if in_label and not (mark["close"] and code[passed - 1].info.startswith(mark[0])):
            continue
        if not mark["close"]:
            thinking = thinking or (not fence and _opens(mark, last_closing))
        elif not _is_quoted(mark) and (in_label or thinking or not fence or not _closes_code(code, passed)):
            start, thinking, fence = mark.end(), False, ""
    return start, thinking


def _opens(mark: re.Match[str], last_closing: Mapping[str, int]) -> bool:
    """Whether a mark opens a thought; a tag in square brackets that is never closed and has text after it may be a heading."""
    if mark["channel"]:
        return True
    if line_start(mark.string, mark.start(), " \t") < 0:
        return False
    tag = mark[0].casefold()
    alone = mark.string[mark.end() : mark.end() + 1] in ("\n", "")
    return not tag.startswith("[") or alone or tag == "[think]" or last_closing.get(f"[/{tag[1:]}", -1) > mark.start()


def _is_quoted(mark: re.Match[str]) -> bool:
    """Whether a mark stands between two equal quotation marks or backticks; a mark with only one beside it is not quoted."""
    before, after = mark.string[mark.start() - 1 : mark.start()], mark.string[mark.end() : mark.end() + 1]
    return before != "" and before == after and before in _QUOTES


def _closes_code(fences: Sequence[Fence], passed: int) -> bool:
    """Whether a mark stands in a block of code: the next fence closes the block, and the remaining fences pair up."""
    return passed < len(fences) and not fences[passed].info and (len(fences) - passed) % 2 == 1
