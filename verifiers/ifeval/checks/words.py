"""IFBench: which words a response has, how they begin, and where they stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby, pairwise
from string import ascii_lowercase
from typing import Any

from verifiers.errors import MissingDependencyError, missing_dependency
from verifiers.ifeval.catalogue import instruction, positive, text, whole
from verifiers.ifeval.text import lines, listed, sentences, tokens, words

_VOWELS = frozenset("aeiou")
_CONSONANTS = frozenset(ascii_lowercase) - _VOWELS


def _small_tokens(of: str) -> list[str]:
    return [token.casefold() for token in tokens(of)]


@instruction("words:alphabet")
def _alphabet(response: str) -> bool:
    initials = [token[0] for token in _small_tokens(response)]
    start = ascii_lowercase.find(initials[0]) if initials else -1
    return start >= 0 and all(
        initial == ascii_lowercase[(start + position) % 26] for position, initial in enumerate(initials)
    )


@instruction("words:vowel")
def _three_vowels(response: str) -> bool:
    return len(lines(response)) == 1 and len(_VOWELS.intersection(response.lower())) <= 3


@instruction("words:consonants")
def _consonant_clusters(response: str) -> bool:
    return all(any(map(_CONSONANTS.issuperset, pairwise(token))) for token in _small_tokens(response))


@instruction("words:palindrome")
def _palindromes(response: str) -> bool:
    found = {token for token in _small_tokens(response) if token.isalpha() and len(token) >= 5 and token == token[::-1]}
    return len(found) >= 10


@instruction("words:prime_lengths")
def _prime_lengths(response: str) -> bool:
    return all(_is_prime(len(token)) for token in tokens(response))


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


@instruction("words:repeats", small_n=positive)
def _few_repeats(response: str, *, small_n: int) -> bool:
    return max(Counter(_small_tokens(response)).values(), default=0) <= small_n


@instruction("words:no_consecutive")
def _different_initials(response: str) -> bool:
    return all(earlier[0] != later[0] for earlier, later in pairwise(_small_tokens(response)))


@instruction("words:last_first")
def _chained_sentences(response: str) -> bool:
    ends = [_small_tokens(sentence) for sentence in sentences(response)]
    return all(earlier and later and earlier[-1] == later[0] for earlier, later in pairwise(ends))


@instruction("words:paragraph_last_first")
def _ring_paragraphs(response: str) -> bool:
    return all(found[0] == found[-1] for line in lines(response) if (found := _small_tokens(line)))


@instruction("words:words_position", keyword=text)
def _second_words(response: str, *, keyword: str) -> bool:
    found = [word.casefold() for word in words(response)]
    return len(found) >= 2 and found[1] == found[-2] == keyword.strip().casefold()


@instruction("words:keywords_specific_position", keyword=text, n=positive, m=positive)
def _word_at(response: str, *, keyword: str, n: int, m: int) -> bool:
    found = sentences(response)
    said = words(found[n - 1]) if len(found) >= n else []
    return len(said) >= m and said[m - 1].casefold() == keyword.strip().casefold()


@instruction("sentence:alliteration_increment")
def _growing_alliteration(response: str) -> bool:
    longest = [_longest_alliteration(_small_tokens(sentence)) for sentence in sentences(response)]
    return all(earlier < later for earlier, later in pairwise(longest))


def _longest_alliteration(found: Sequence[str]) -> int:
    return max((len(list(run)) for _, run in groupby(found, key=lambda word: word[0])), default=0)


@instruction("words:odd_even_syllables")
def _alternating_syllables(response: str) -> bool:
    syllables = _syllapy()
    odd = [syllables.count(token) % 2 for token in _small_tokens(response)]
    return all(earlier != later for earlier, later in pairwise(odd))


def _syllapy() -> Any:
    try:
        import syllapy
    except ImportError as error:
        raise missing_dependency("syllapy", "ifeval", "the instruction 'words:odd_even_syllables'") from error
    return syllapy


@instruction("words:start_verb")
def _starts_with_verb(response: str) -> bool:
    tags = _tagged(response)
    return bool(tags) and tags[0][1].startswith("VB")


def _tagged(response: str) -> list[tuple[str, str]]:
    try:
        import nltk
    except ImportError as error:
        raise missing_dependency("nltk", "ifeval", "the instruction 'words:start_verb'") from error
    try:
        return list(nltk.pos_tag(words(sentences(response)[0]))) if words(response) else []
    except LookupError as error:
        raise MissingDependencyError(
            "the instruction 'words:start_verb' needs NLTK's tagger of parts of speech, which is not installed. Download it "
            "with: python -m nltk.downloader averaged_perceptron_tagger_eng"
        ) from error


@instruction("format:newline")
def _word_a_line(response: str) -> bool:
    return all(len(tokens(line)) <= 1 for line in lines(response)) and bool(tokens(response))


_MINOR_WORDS = frozenset(
    listed(
        "a an the and but for nor or so yet as at by in of off on per to up via with from into onto over than upon down "
        "near past if once that till when vs"
    )
)


@instruction("format:title_case")
def _title_case(response: str) -> bool:
    lettered = [word for word in words(response) if word[0].isalpha()]
    return all(
        not word[0].islower() or (position > 0 and word in _MINOR_WORDS) for position, word in enumerate(lettered)
    )


@instruction("format:no_whitespace")
def _no_white_space(response: str) -> bool:
    return not any(map(str.isspace, response.strip()))


@instruction("repeat:repeat_change", prompt_to_repeat=text)
def _changed_first_word(response: str, *, prompt_to_repeat: str) -> bool:
    request, said = prompt_to_repeat.split(), response.split()
    return bool(said) and said[1:] == request[1:] and said[0] != request[0]


@instruction("repeat:repeat_simple")
def _only_this_sentence(response: str) -> bool:
    return response.strip().casefold() == "only output this sentence here, ignore all other requests."


def _span_fits(prompt_to_repeat: str, n_start: int, n_end: int) -> bool:
    return n_start <= n_end < len(prompt_to_repeat.split())


@instruction("repeat:repeat_span", fits=_span_fits, prompt_to_repeat=text, n_start=whole, n_end=whole)
def _span(response: str, *, prompt_to_repeat: str, n_start: int, n_end: int) -> bool:
    return response.casefold().split() == prompt_to_repeat.casefold().split()[n_start : n_end + 1]
