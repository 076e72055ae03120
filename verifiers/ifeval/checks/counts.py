"""IFBench: rules about counts and about ratios of counts."""

from __future__ import annotations

import re
from itertools import pairwise

from verifiers.ifeval.catalogue import instruction, percentage, positive, text, whole
from verifiers.ifeval.text import listed, occurrences, sentence_kind, sentences, tokens, words

_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+(?:\.\d+)?")
_CONJUNCTIONS = frozenset(("and", "but", "for", "nor", "or", "so", "yet"))
_PRONOUNS = frozenset(
    listed(
        "i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her "
        "hers herself it its itself they them their theirs themself themselves"
    )
)
_NAMES = listed(
    "Emma Liam Sophia Jackson Olivia Noah Ava Lucas Isabella Mason Mia Ethan Charlotte Alexander Amelia Benjamin "
    "Harper Leo Zoe Daniel Chloe Samuel Lily Matthew Grace Owen Abigail Gabriel Ella Jacob Scarlett Nathan Victoria "
    "Elijah Layla Nicholas Audrey David Hannah Christopher Penelope Thomas Nora Andrew Aria Joseph Claire Ryan "
    "Stella Jonathan"
)
_INTERROBANG = re.compile(r"\?!|!\?|‽")
_JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")

# The instruction names no list; these are the words that NLTK, which the published checker uses, counts: most pronouns,
# determiners, auxiliaries, prepositions, conjunctions, and the parts into which apostrophes divide contractions.
_STOP_WORDS = (_PRONOUNS - {"mine", "themself", "us"}) | frozenset(
    listed(
        "what which who whom this that these those am is are was were be been being have has had having do does did "
        "doing will should can a an the and but if or because as until while of at by for with about against between "
        "into through during before after above below to from up down in out on off over under again further then once "
        "here there when where why how all any both each few more most other some such no nor not only own same so than "
        "too very just now s t d ll m o re ve y don ain aren couldn didn doesn hadn hasn haven isn ma mightn mustn needn "
        "shan shouldn wasn weren won wouldn"
    )
)


@instruction(
    "count:word_count_range",
    fits=lambda min_words, max_words: min_words <= max_words,
    min_words=whole,
    max_words=whole,
)
def _word_count(response: str, *, min_words: int, max_words: int) -> bool:
    return min_words <= len(words(response)) <= max_words


@instruction("count:unique_word_count", N=whole)
def _unique_words(response: str, *, N: int) -> bool:
    return len({word.casefold() for word in words(response)}) >= N


@instruction("count:conjunctions", small_n=whole)
def _conjunctions(response: str, *, small_n: int) -> bool:
    return len(_CONJUNCTIONS & set(map(str.casefold, words(response)))) >= small_n


@instruction("count:person_names", N=whole)
def _person_names(response: str, *, N: int) -> bool:
    mentioned = set(re.findall(r"[^\W\d_]+", response))
    return sum(name in mentioned for name in _NAMES) >= N


@instruction("count:numbers", N=whole)
def _numbers(response: str, *, N: int) -> bool:
    return len(_NUMBER.findall(response)) == N


@instruction("count:punctuation")
def _punctuation(response: str) -> bool:
    rest, interrobangs = _INTERROBANG.subn(" ", response, count=1)
    return interrobangs == 1 and all(mark in rest for mark in ".,!?;:")


@instruction("count:pronouns", N=whole)
def _pronouns(response: str, *, N: int) -> bool:
    return sum(word in _PRONOUNS for word in re.findall(r"[a-z]+", response.lower())) >= N


@instruction("count:words_japanese", N=positive)
def _japanese_words(response: str, *, N: int) -> bool:
    every = [token for token in response.split() if any(map(str.isalnum, token))][N - 1 :: N]
    return all(_JAPANESE.search(token) for token in every if not "".join(filter(str.isalnum, token)).isdigit())


@instruction("count:keywords_multiple", keyword1=text, keyword2=text, keyword3=text, keyword4=text, keyword5=text)
def _keywords(response: str, **keywords: str) -> bool:
    times = {"keyword1": 1, "keyword2": 2, "keyword3": 3, "keyword4": 5, "keyword5": 7}
    return all(occurrences(keywords[name], response) == wanted for name, wanted in times.items())


@instruction("ratio:stop_words", percentage=percentage)
def _stop_words(response: str, *, percentage: float) -> bool:
    found = re.findall(r"\w+", response.lower())
    return bool(found) and 100 * sum(word in _STOP_WORDS for word in found) <= percentage * len(found)


@instruction("ratio:sentence_type")
def _two_to_one(response: str) -> bool:
    kinds = [sentence_kind(sentence) for sentence in sentences(response)]
    return kinds.count(".") == 2 * kinds.count("?") > 0


@instruction("ratio:sentence_balance")
def _balanced(response: str) -> bool:
    kinds = [sentence_kind(sentence) for sentence in sentences(response)]
    return kinds.count(".") == kinds.count("?") == kinds.count("!") > 0


@instruction("ratio:overlap", reference_text=text, percentage=percentage)
def _overlap(response: str, *, reference_text: str, percentage: float) -> bool:
    own, wanted = _trigrams(response), _trigrams(reference_text.replace("\r\n", "\n"))
    return bool(own) and abs(100 * len(own & wanted) / len(own) - percentage) <= 2


def _trigrams(of: str) -> set[str]:
    return {of[start : start + 3] for start in range(len(of) - 2)}


@instruction("ratio:sentence_words")
def _equally_long(response: str) -> bool:
    found = sentences(response)
    used = [word.casefold() for word in words(response)]
    return len(found) == 3 and len(set(map(len, found))) == 1 and len(set(used)) == len(used)


@instruction("sentence:increment", small_n=whole)
def _increment(response: str, *, small_n: int) -> bool:
    lengths = [len(tokens(sentence)) for sentence in sentences(response)]
    return all(later == earlier + small_n for earlier, later in pairwise(lengths))


@instruction("sentence:keyword", word=text, N=positive)
def _keyword_in_sentence(response: str, *, word: str, N: int) -> bool:
    found = sentences(response)
    return len(found) >= N and occurrences(word, found[N - 1]) > 0
