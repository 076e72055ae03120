"""What is looked for first, to save the time of looking for patterns, never hides what the pattern would find."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from verifiers.completion import words
from verifiers.completion.code import fences
from verifiers.completion.places import matches

TABLES = (words.DENIALS, words.ATTRIBUTIONS, words.NEGATIONS, words.SUPPOSITIONS, words.REJECTIONS)
PARTS = sorted(
    {part for table in TABLES for part in re.findall(r"[\w']+|n't", table.listed)} | {"is", "’t", "isn", ".", "they"}
)


@given(st.lists(st.sampled_from(PARTS), max_size=6), st.sampled_from([" ", "\n", "’", "'", ""]), st.booleans())
def test_a_text_without_the_words_of_a_phrase_does_not_hold_it(parts: list[str], joint: str, capitals: bool) -> None:
    text = joint.join(parts) if joint != " " else " ".join(parts)
    text = text.upper() if capitals else text
    for table in TABLES:
        if re.search(table.pattern, text, re.IGNORECASE):
            assert words.Prefilter(table).may_match(text)


@pytest.mark.parametrize(
    "phrase", ["I don’t think", "HE INSISTS", "they said", "isn't", "can’t be", "let's say", "DON'T SAY"]
)
def test_phrases_in_other_spellings(phrase: str) -> None:
    tables = [table for table in TABLES if re.search(table.pattern, phrase, re.IGNORECASE)]
    assert tables
    assert all(words.Prefilter(table).may_match(phrase) for table in tables)


@given(st.text(st.sampled_from("<[answer>]#/ \n"), max_size=60))
def test_matches_are_those_of_the_pattern(text: str) -> None:
    pattern = re.compile(r"<a\w*>|\[a\w*\]|#{2,}+")
    assert [match.span() for match in matches(pattern, ("<", "[", "##"), text)] == [
        m.span() for m in pattern.finditer(text)
    ]


@given(st.text(st.sampled_from("`~> \nax]"), max_size=60))
def test_fences_are_those_of_the_pattern(text: str) -> None:
    pattern = re.compile(r"^[ \t>]*+(`{3,}+|~{3,}+)[ \t]*+([^\n`]*+)$", re.MULTILINE)
    assert [tuple(fence) for fence in fences(text)] == [
        (*match.span(), *match.groups()) for match in pattern.finditer(text)
    ]
