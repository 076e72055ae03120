"""IFEval: how long a response is, in words, sentences and paragraphs."""

from __future__ import annotations

import re

from verifiers.ifeval.catalogue import compare, instruction, positive, relation, text, whole
from verifiers.ifeval.text import bare, paragraphs, sentences, words

_DIVIDER = re.compile(r"(?:(?<=\s)|\A)\*\*\*(?=\s|\Z)")


@instruction("length_constraints:number_words", num_words=whole, relation=relation)
def _words(response: str, *, num_words: int, relation: str) -> bool:
    return compare(len(words(response)), relation, num_words)


@instruction("length_constraints:number_sentences", num_sentences=whole, relation=relation)
def _sentences(response: str, *, num_sentences: int, relation: str) -> bool:
    return compare(len(sentences(response)), relation, num_sentences)


@instruction("length_constraints:number_paragraphs", num_paragraphs=positive)
def _divided_paragraphs(response: str, *, num_paragraphs: int) -> bool:
    parts = [part.strip() for part in _DIVIDER.split(response)]
    outer_blank = [bool(parts) and not parts[0], len(parts) > 1 and not parts[-1]]
    return all(parts[outer_blank[0] : len(parts) - outer_blank[1]]) and sum(map(bool, parts)) == num_paragraphs


@instruction(
    "length_constraints:nth_paragraph_first_word",
    fits=lambda num_paragraphs, nth_paragraph, first_word: nth_paragraph <= num_paragraphs,
    num_paragraphs=positive,
    nth_paragraph=positive,
    first_word=text,
)
def _first_word(response: str, *, num_paragraphs: int, nth_paragraph: int, first_word: str) -> bool:
    found = paragraphs(response)
    if len(found) != num_paragraphs:
        return False
    return bare(found[nth_paragraph - 1].split()[0]).casefold() == bare(first_word).casefold()
