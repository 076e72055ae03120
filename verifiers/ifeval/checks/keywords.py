"""IFEval: keywords, letters, language and case."""

from __future__ import annotations

from verifiers.ifeval.catalogue import compare, instruction, relation, text, texts, whole
from verifiers.ifeval.language import is_in, language, may_be_english
from verifiers.ifeval.text import occurrences, words

_COMMAS = frozenset(",，､、،﹐︐")


@instruction("keywords:existence", keywords=texts)
def _all_occur(response: str, *, keywords: tuple[str, ...]) -> bool:
    return all(occurrences(keyword, response) for keyword in keywords)


@instruction("keywords:frequency", keyword=text, frequency=whole, relation=relation)
def _occurs(response: str, *, keyword: str, frequency: int, relation: str) -> bool:
    return compare(occurrences(keyword, response), relation, frequency)


@instruction("keywords:forbidden_words", forbidden_words=texts)
def _none_occurs(response: str, *, forbidden_words: tuple[str, ...]) -> bool:
    return not any(occurrences(word, response) for word in forbidden_words)


def _sign(value: object) -> str:
    if not isinstance(value, str) or len(value.strip()) != 1:
        raise ValueError("one letter or sign")
    return value.strip().lower()


@instruction("keywords:letter_frequency", letter=_sign, let_frequency=whole, let_relation=relation)
def _letter_occurs(response: str, *, letter: str, let_frequency: int, let_relation: str) -> bool:
    return compare(response.lower().count(letter), let_relation, let_frequency)


@instruction("language:response_language", language=language)
def _in_language(response: str, *, language: str) -> bool:
    return is_in(response, language)


@instruction("change_case:english_capital")
def _english_capitals(response: str) -> bool:
    return response.isupper() and may_be_english(response.lower())


@instruction("change_case:english_lowercase")
def _english_small_letters(response: str) -> bool:
    return response.islower() and may_be_english(response)


@instruction("change_case:capital_word_frequency", capital_frequency=whole, capital_relation=relation)
def _capital_words(response: str, *, capital_frequency: int, capital_relation: str) -> bool:
    return compare(sum(map(str.isupper, words(response))), capital_relation, capital_frequency)


@instruction("punctuation:no_comma")
def _no_comma(response: str) -> bool:
    return _COMMAS.isdisjoint(response)
