"""The preset `published`, which judges IFEval's instructions as the checkers published with IFEval do.

The rules are those of `instruction_following_eval` in google-research as of 2025. They treat keywords as regular expressions,
count `don't` as two words, and so on; `docs/ifeval.md` has the list. Unlike the published checkers, no rule here takes
quadratic time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from verifiers.errors import InvalidArgumentError, MissingDependencyError, missing_dependency
from verifiers.ifeval.catalogue import Check, compare, rule
from verifiers.ifeval.language import best_guess
from verifiers.ifeval.reference import Instruction

_CHECKS: dict[str, Check] = {}
_SAME = ("keywords:letter_frequency",)
_POSTSCRIPTS = {"P.S.": r"p\.\s?s\.", "P.P.S": r"p\.\s?p\.\s?s"}
_FENCES = ("```json", "```Json", "```JSON", "```")


def as_published(instruction: Instruction) -> Callable[[str], bool]:
    """Return a function that decides, as the published checker does, whether a response follows an instruction.

    The function rejects every blank response. It raises `MissingDependencyError` if a package that the instruction needs is not
    installed.

    Raises:
        InvalidArgumentError: If the instruction is not one of IFEval's, or has an invalid regular expression.
    """
    identifier, kwargs = instruction.id, instruction.kwargs
    if identifier not in _CHECKS and identifier not in _SAME:
        raise InvalidArgumentError(
            f"the preset 'published' judges the instructions of IFEval; {identifier!r} is none of them, so leave the preset out"
        )
    try:
        for pattern in _patterns(kwargs):
            re.compile(pattern)
    except re.error as error:
        raise InvalidArgumentError(
            f"the preset 'published' takes the texts of {identifier!r} for regular expressions; {pattern!r} is none: {error}"
        ) from error
    check = _CHECKS.get(identifier) or rule(identifier).check
    return lambda response: bool(response.strip()) and check(response, **kwargs)


def _patterns(kwargs: Mapping[str, Any]) -> Iterator[str]:
    """The parameters that the published checkers treat as regular expressions."""
    for name in ("keyword", "postscript_marker", "section_spliter"):
        if name in kwargs:
            yield kwargs[name]
    for name in ("keywords", "forbidden_words"):
        yield from kwargs.get(name, ())


def _published(identifier: str) -> Callable[[Check], Check]:
    def enter(check: Check) -> Check:
        _CHECKS[identifier] = check
        return check

    return enter


def _count(pattern: str, response: str) -> int:
    return sum(1 for _ in re.finditer(pattern, response, re.IGNORECASE))


@_published("keywords:existence")
def _all_occur(response: str, *, keywords: tuple[str, ...]) -> bool:
    return all(_count(keyword, response) for keyword in keywords)


@_published("keywords:frequency")
def _occurs(response: str, *, keyword: str, frequency: int, relation: str) -> bool:
    return compare(_count(keyword.strip(), response), relation, frequency)


@_published("keywords:forbidden_words")
def _none_occurs(response: str, *, forbidden_words: tuple[str, ...]) -> bool:
    return not any(_count(rf"\b{word}\b", response) for word in forbidden_words)


@_published("language:response_language")
def _in_language(response: str, *, language: str) -> bool:
    guess = best_guess(response)
    return guess is None or guess[0] == language


@_published("change_case:english_capital")
def _english_capitals(response: str) -> bool:
    return response.isupper() and _in_language(response, language="en")


@_published("change_case:english_lowercase")
def _english_small_letters(response: str) -> bool:
    return response.islower() and _in_language(response, language="en")


@_published("change_case:capital_word_frequency")
def _capital_words(response: str, *, capital_frequency: int, capital_relation: str) -> bool:
    words = _split("word_tokenize", "change_case:capital_word_frequency", response)
    return compare(sum(map(str.isupper, words)), capital_relation, capital_frequency)


@_published("punctuation:no_comma")
def _no_comma(response: str) -> bool:
    return "," not in response


@_published("length_constraints:number_words")
def _words(response: str, *, num_words: int, relation: str) -> bool:
    return compare(_count(r"\w+", response), relation, num_words)


@_published("length_constraints:number_sentences")
def _sentences(response: str, *, num_sentences: int, relation: str) -> bool:
    sentences = _split("sent_tokenize", "length_constraints:number_sentences", response)
    return compare(len(sentences), relation, num_sentences)


@_published("length_constraints:number_paragraphs")
def _divided_paragraphs(response: str, *, num_paragraphs: int) -> bool:
    return len(_between(response, "***")) == num_paragraphs


@_published("length_constraints:nth_paragraph_first_word")
def _first_word(response: str, *, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    parts = response.split("\n\n")
    place = parts[nth_paragraph - 1].split() if nth_paragraph <= len(parts) else []
    if not place or sum(bool(part.strip()) for part in parts) != num_paragraphs:
        return False
    word = re.split("[.,?!'\"]", place[0].lstrip("'").lstrip('"'))[0]
    return word.lower() == first_word.lower()


@_published("detectable_content:number_placeholders")
def _placeholders(response: str, *, num_placeholders: int) -> bool:
    closed = (part for line in response.split("\n") for part in line.split("]")[:-1])
    return sum("[" in part for part in closed) >= num_placeholders


@_published("detectable_content:postscript")
def _postscript(response: str, *, postscript_marker: str) -> bool:
    marker = postscript_marker.strip()
    return re.search(_POSTSCRIPTS.get(marker, marker.lower()), response.lower()) is not None


@_published("detectable_format:number_bullet_lists")
def _bullets(response: str, *, num_bullets: int) -> bool:
    starred, dashed = r"(?m)^[^\S\n]*\*[^*].*", r"(?m)^[^\S\n]*-"
    return _count(starred, response) + _count(dashed, response) == num_bullets


@_published("detectable_format:constrained_response")
def _fixed_response(response: str) -> bool:
    return any(f"My answer is {answer}." in response for answer in ("yes", "no", "maybe"))


@_published("detectable_format:number_highlighted_sections")
def _highlights(response: str, *, num_highlights: int) -> bool:
    inside = [*re.findall(r"\*([^\n*]*)\*", response), *re.findall(r"\*\*([^\n*]*)\*\*", response)]
    return sum(bool(text.strip()) for text in inside) >= num_highlights


@_published("detectable_format:multiple_sections")
def _sections(response: str, *, section_spliter: str, num_sections: int) -> bool:
    return len(re.findall(rf"{section_spliter.strip()}\s?\d+", response)) >= num_sections


@_published("detectable_format:json_format")
def _json(response: str) -> bool:
    text = response.strip()
    for fence in _FENCES:
        text = text.removeprefix(fence)
    try:
        json.loads(text.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


@_published("detectable_format:title")
def _title(response: str) -> bool:
    return any(map(_has_title, response.split("\n")))


def _has_title(line: str) -> bool:
    start, end = line.find("<<"), line.rfind(">>")
    return 0 <= start < end - 2 and bool(line[start:end].lstrip("<").rstrip(">").strip())


@_published("combination:two_responses")
def _two_responses(response: str) -> bool:
    answers = _between(response, "******")
    return len(answers) == 2 and answers[0] != answers[1]


@_published("combination:repeat_prompt")
def _repeats_prompt(response: str, *, prompt_to_repeat: str) -> bool:
    return response.strip().lower().startswith(prompt_to_repeat.strip().lower())


@_published("startend:end_checker")
def _ends_with(response: str, *, end_phrase: str) -> bool:
    return response.strip().strip('"').lower().endswith(end_phrase.strip().lower())


@_published("startend:quotation")
def _quoted(response: str) -> bool:
    text = response.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


def _between(response: str, mark: str) -> list[str]:
    """Return the parts that a mark separates; an empty list if two marks have nothing between them."""
    parts = [part.strip() for part in response.split(mark)]
    return [part for part in parts if part] if all(parts[1:-1]) else []


def _split(function: str, identifier: str, response: str) -> list[str]:
    """The words or sentences of a response, according to NLTK and its data."""
    try:
        import nltk
    except ImportError as error:
        raise missing_dependency(
            "nltk", "ifeval", f"the instruction {identifier!r} with the preset 'published'"
        ) from error
    try:
        return list(getattr(nltk, function)(response))
    except LookupError as error:
        raise MissingDependencyError(
            f"the instruction {identifier!r} with the preset 'published' needs NLTK's tokenizer of sentences, which is not "
            "installed. Download it with: python -m nltk.downloader punkt_tab"
        ) from error
