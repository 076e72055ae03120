"""The part of an evaluation's problems that occurs in training data, by overlap of word n-grams.

A problem counts as contaminated depending on the share of its n-grams that occur in any training text (Brown et al. 2020,
arXiv:2005.14165, appendix C, with n = 13). A problem of at most n words is contaminated if it is a whole training text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from verifiers import AtLeast, Problem, checked

NGRAM = 13
"""Default number of words in an n-gram."""
_WORD = re.compile(r"\w+", re.UNICODE)


@dataclass(frozen=True)
class Overlap:
    """The overlap of one problem with the training texts."""

    problem_id: str
    share: float
    """Share of the problem's n-grams that occur in the training texts, from 0 to 1."""
    example: str
    """An n-gram of the problem that occurs in the training texts; empty if there is none."""
    whole: bool
    """Whether the prompt has at most as many words as an n-gram, so that the whole prompt is searched for."""


def text_of(problem: Problem) -> str:
    """The prompt of a problem as one text."""
    if isinstance(problem.prompt, str):
        return problem.prompt
    return "\n".join(message.content for message in problem.prompt)


@checked
def overlaps(
    training: Iterable[str], evaluated: Sequence[Problem], *, words: Annotated[int, AtLeast(2)] = NGRAM
) -> list[Overlap]:
    """Find the n-grams of each problem in training texts.

    Case, punctuation and spacing are ignored. Only the evaluated n-grams are kept in memory; the training texts are read once.

    Raises:
        InvalidArgumentError: If there are fewer than 2 words in an n-gram.
    """
    grams = [list(dict.fromkeys(_windows(_words(text_of(problem)), words))) for problem in evaluated]
    wanted = {gram for of_problem in grams for gram in of_problem}
    seen: set[tuple[str, ...]] = set()
    for text in training:
        tokens = _words(text)
        seen.update(wanted.intersection(_windows(tokens, words)))
    results: list[Overlap] = []
    for problem, of_problem in zip(evaluated, grams, strict=True):
        hits = [gram for gram in of_problem if gram in seen]
        share = len(hits) / len(of_problem) if of_problem else 0.0
        whole = len(of_problem) == 1 and len(_words(text_of(problem))) <= words
        results.append(Overlap(problem.id, share, " ".join(hits[0]) if hits else "", whole))
    return results


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _windows(tokens: list[str], words: int) -> Iterator[tuple[str, ...]]:
    """Every sequence of `words` consecutive tokens; all tokens together if there are at most `words`."""
    if len(tokens) <= words:
        return iter([tuple(tokens)] if tokens else [])
    return (tuple(tokens[start : start + words]) for start in range(len(tokens) - words + 1))
