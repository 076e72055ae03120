"""Extracts the answer from a completion without judging it.

This module decides which mathematics can be an answer, and holds the presets. `verifiers.completion` finds the place of the
answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

from verifiers.completion.answers import DEFAULT_FORMS, FORMS, Kind, find
from verifiers.completion.cut import cut, thought_names
from verifiers.completion.mark import EXPLICIT, Form
from verifiers.completion.marking import TEXT_COMMANDS
from verifiers.completion.words import THOUGHTS
from verifiers.errors import InvalidArgumentError, unknown_name
from verifiers.math.compare.shapes import is_set_like
from verifiers.math.reading.normalize import normal_text, unwrap
from verifiers.math.reading.read import tree_or_none
from verifiers.math.tree import ListOf, Node, Sentence, Words

MAX_COMPLETION = 2_000_000
"""Maximum length of a completion, in characters; only the end of a longer completion is searched."""
_LONGEST_WHOLE = 4_000
_MAX_PROSE_WORDS = 3

Method = Form
METHODS: tuple[Method, ...] = FORMS


class Extracted(NamedTuple):
    """An answer and how it was found; `answer` is None if none was found."""

    answer: str | None
    method: str
    """One of `METHODS`, the name of a regular-expression preset, or the reason why there is no answer."""
    second: str | None = None
    """A different answer that the completion also gives, without retracting the first."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """Settings for the extraction of answers.

    Raises:
        InvalidArgumentError: If a method is unknown, the pattern has no group, or the name of a thought's tag is not a word.
    """

    methods: tuple[Method, ...] = DEFAULT_FORMS
    """The forms of answers to look for, from `METHODS`."""
    stop: tuple[str, ...] = ()
    """Stop strings: the completion is cut at the first one that occurs."""
    thinking: Literal["closed", "ignore"] = "closed"
    """`closed`: only text after the last thought counts, and an unclosed thought gives no answer; `ignore`: tags are ordinary
    text."""
    thoughts: tuple[str, ...] = THOUGHTS
    """The names of the tags that enclose thoughts."""
    asked: Method | None = None
    """The form that the prompt asks for, which is preferred to any other."""
    pattern: re.Pattern[str] | None = None
    """A regular expression that replaces the methods: the first group that matches is the answer."""
    occurrence: int = 0
    """The index of the pattern's match that counts: 0 for the first, -1 for the last."""
    literal: bool = False
    """Whether answers are compared as strings after `ignored` is deleted, as in lm-eval's exact match."""
    ignored: tuple[re.Pattern[str], ...] = field(default=())

    def __post_init__(self) -> None:
        for method in (*self.methods, *([] if self.asked is None else [self.asked])):
            if method not in METHODS:
                raise unknown_name("extraction method", method, METHODS)
        if self.thinking not in ("closed", "ignore"):
            raise InvalidArgumentError(f"thinking must be 'closed' or 'ignore', got {self.thinking!r}")
        thought_names(self.thoughts)
        if self.pattern is not None and self.pattern.groups == 0:
            raise InvalidArgumentError(f"the pattern {self.pattern.pattern!r} has no group for the answer")

    def __call__(self, completion: str, same: Callable[[str, str], bool] | None = None) -> Extracted:
        """Find the answer in a completion.

        Args:
            completion: A model's text.
            same: Decides whether two answers are the same, if a completion gives several; by default, answers are compared as
                text.
        """
        completion = completion[-MAX_COMPLETION:]
        response = cut(completion, stop=self.stop, thoughts=self.thoughts if self.thinking == "closed" else None)
        if self.pattern is not None:
            return Extracted(_matched(self.pattern, self.occurrence, response.text), "pattern")
        if response.missing:
            return Extracted(None, response.missing)
        found = find(response.text, _Mathematics(same or _same_text), self.methods, self.asked)
        return Extracted(found.value, found.form, found.other)


def _matched(pattern: re.Pattern[str], occurrence: int, completion: str) -> str | None:
    """The result of lm-eval's regex filter: the first non-empty group of the chosen match."""
    matches = pattern.findall(completion)
    if not matches:
        return None
    match = matches[occurrence]
    groups = match if isinstance(match, tuple) else (match,)
    return next((group for group in groups if group), "").strip() or None


def _same_text(first: str, second: str) -> bool:
    return normal_text(first) == normal_text(second)


@dataclass(slots=True)
class _Mathematics(Kind[str]):
    """Texts that can be an answer in mathematics: expressions, and a few words."""

    equal: Callable[[str, str], bool]
    is_list: ClassVar[bool] = True

    def read(self, content: str, form: Form) -> str | None:
        """The answer in a mark's content; None if the content holds no answer."""
        answer = _without_typeface(content.strip())
        if form in EXPLICIT:
            return answer or None
        if form == "number":
            return _last_number(answer)
        if form == "second" and not _NAMED_VALUE.fullmatch(answer):
            return None
        return (_whole if form in ("whole", "second") else _stated)(answer)

    def same(self, first: str, second: str) -> bool:
        """Whether two answers are equal, or the second is the first rounded, in another unit, or with added words."""
        if self.equal(first, second):
            return True
        trees = [tree_or_none(text) for text in (first, second)]
        # One of several values states nothing new, but a part of an interval is another interval.
        sets = any(tree is not None and is_set_like(tree) for tree in trees)
        if not sets and self.equal(first, f"{first} or {second}"):
            return True
        leading = _LEADING.match(second)
        return leading is not None and self.equal(first, leading[0])

    def comparable(self, first: str, second: str) -> bool:
        """Whether the second answer is more than words about a value."""
        is_value = re.search(r"[0-9\\=]", second) or not _WORD.search(second)
        return bool(is_value) or re.search(r"[0-9\\=]", first) is None


def _without_typeface(answer: str) -> str:
    """An answer without a typeface command around the whole; a command around one letter is kept, as it may mark a vector."""
    while (match := _TYPEFACE.fullmatch(answer)) is not None and len(match[1]) > 1:
        answer = match[1].strip()
    return answer


def _stated(answer: str) -> str | None:
    """The answer that follows a phrase: anything that can be read, or a few words of prose."""
    tree = tree_or_none(answer)
    if tree is None:
        return answer if len(_WORD.findall(answer)) <= _MAX_PROSE_WORDS and _SAYS_SOMETHING.search(answer) else None
    return None if _is_prose(tree) else answer


def _whole(text: str) -> str | None:
    """The completion itself, if it is an expression or a few words."""
    answer = unwrap(text)
    if not answer or len(answer) > _LONGEST_WHOLE or _SENTENCE.search(answer) or _FRAGMENT.search(answer):
        return None
    tree = tree_or_none(answer)
    if tree is None or _is_prose(tree) or any(isinstance(part, Sentence) for part in _parts(tree)):
        return None
    return answer


def _parts(tree: Node) -> tuple[Node, ...]:
    return tree.items if isinstance(tree, ListOf) else (tree,)


def _is_prose(tree: Node) -> bool:
    """Whether an answer consists only of words, and of more words than a name or a verdict has."""
    words = [part.text for part in _parts(tree) if isinstance(part, Words)]
    return len(words) == len(_parts(tree)) and sum(len(text.split()) for text in words) > _MAX_PROSE_WORDS


_TYPEFACE = re.compile(rf"\$*\\(?:{TEXT_COMMANDS})\s*\{{((?:[^{{}}]|\{{[^{{}}]*\}})*)\}}\$*[\s.,;]*")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_SAYS_SOMETHING = re.compile(r"\w")
_SENTENCE = re.compile(
    r"\n|\b(?:is|are|was|were|be|has|have|had|gets?|got|we|she|he|they|you|there)\b(?=.*[0-9\\$])",
    re.IGNORECASE | re.DOTALL,
)
_FRAGMENT = re.compile(r"(?:[-+*/=^<(\[{]|[0-9)] x|\\(?:times|cdot|frac|div|le|ge))\Z")
_NAMED_VALUE = re.compile(r"(?:[\s$]*\\?[A-Za-z]+(?:\([A-Za-z]\))?\s*=)?[^=]*")
_LEADING = re.compile(r"[-+]?[0-9][0-9.,/]*(?=\s+[A-Za-z]{2,})")
_LAST_NUMBER = re.compile(r"-?\$?[0-9][0-9,]*(?:\.[0-9]+)?(?:/[0-9]+)?|-?\.[0-9]+")


def _last_number(text: str) -> str | None:
    numbers = _LAST_NUMBER.findall(text)
    return numbers[-1].rstrip(",") if numbers else None


_LM_EVAL_IGNORED = tuple(re.compile(pattern) for pattern in (",", r"\$", r"(?s).*#### ", r"\.$"))
_GSM8K_STOP = ("Question:", "</s>", "<|im_end|>")
PRESETS: dict[str, Extraction] = {
    "default": Extraction(),
    "chat": Extraction(methods=(*DEFAULT_FORMS, "value")),
    "flexible": Extraction(methods=(*DEFAULT_FORMS, "number")),
    "boxed": Extraction(methods=("box",)),
    "answer_tag": Extraction(methods=("tag",)),
    # The regular expressions, stop strings and ignored strings of lm-eval 0.4.13, tasks/gsm8k/gsm8k.yaml.
    "gsm8k_strict": Extraction(
        stop=_GSM8K_STOP,
        pattern=re.compile(r"#### (\-?[0-9\.\,]+)"),
        thinking="ignore",
        literal=True,
        ignored=_LM_EVAL_IGNORED,
    ),
    "gsm8k_flexible": Extraction(
        stop=_GSM8K_STOP,
        pattern=re.compile(r"(-?[$0-9.,]{2,})|(-?[0-9]+)"),
        occurrence=-1,
        thinking="ignore",
        literal=True,
        ignored=_LM_EVAL_IGNORED,
    ),
    # The phrase of the four-shot prompt of Lewkowycz et al. (2022), appendix D; answers are compared by this verifier.
    "minerva": Extraction(
        stop=("Problem:",),
        pattern=re.compile(r"Final Answer: The final answer is(.*?)\.? I hope it is correct"),
        thinking="ignore",
    ),
}


def extraction_named(extraction: str | Extraction) -> Extraction:
    """The extraction preset with this name; an `Extraction` is returned unchanged.

    Raises:
        UnknownNameError: If no preset has that name.
        InvalidArgumentError: If `extraction` is neither a name nor an `Extraction`.
    """
    if isinstance(extraction, Extraction):
        return extraction
    if not isinstance(extraction, str):
        raise InvalidArgumentError(f"extraction must be the name of a preset or an Extraction, got {extraction!r}")
    if extraction not in PRESETS:
        raise unknown_name("extraction preset", extraction, PRESETS)
    return PRESETS[extraction]
