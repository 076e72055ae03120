from collections import Counter

import pytest
from math_corpus import PAIRS

from verifiers import Outcome, Problem
from verifiers.math import MathVerifier, UnreadableError
from verifiers.math.reading.parse import parse

GROUPS = sorted({pair.group for pair in PAIRS})
JUDGED = (Outcome.CORRECT, Outcome.INCORRECT, Outcome.NO_ANSWER)
UNFINISHED = "an operation that is not carried out"  # the value is equal, and its computation is left to the reader
verifier = MathVerifier()


@pytest.mark.parametrize("group", GROUPS)
def test_every_labelled_pair(group):
    wrong = []
    for pair in PAIRS:
        if pair.group == group:
            finding = verifier.compare(pair.answer, pair.gold)
            equal = finding.outcome is Outcome.CORRECT or (finding.same and finding.reason == UNFINISHED)
            if equal is not pair.correct or finding.outcome not in JUDGED:
                wrong.append((pair.gold[:60], pair.answer[:60], finding))
    assert wrong == []


def test_the_corpus_has_both_labels_in_nearly_every_group():
    labels = Counter((pair.group, pair.correct) for pair in PAIRS)
    assert len(PAIRS) > 1500
    for group in GROUPS:
        assert labels[group, False] >= 10, group
        assert labels[group, True] >= 2 or group == "one answer hedged", group


def test_no_pair_is_listed_twice_with_different_labels():
    labels = {}
    for pair in PAIRS:
        assert labels.setdefault((pair.gold, pair.answer), pair.correct) == pair.correct, pair


def test_every_gold_is_correct_against_itself():
    for gold in {pair.gold for pair in PAIRS}:
        assert verifier.compare(gold, gold).outcome is Outcome.CORRECT, gold


def test_an_answer_in_a_box_is_judged_like_the_bare_answer():
    for pair in PAIRS[::3]:
        if pair.group == "one answer hedged":
            continue  # a refusal to answer is none in a completion
        if pair.answer.count("{") == pair.answer.count("}") and "boxed" not in pair.answer and "\\$" not in pair.answer:
            boxed = verifier(f"Therefore $\\boxed{{{pair.answer}}}$.", Problem("", "", pair.gold))
            assert boxed.outcome is verifier.compare(pair.answer, pair.gold).outcome, pair


def test_a_read_tree_is_plain_data_that_equal_texts_share():
    for pair in PAIRS[::10]:
        try:
            tree = parse(pair.answer)
        except UnreadableError:
            continue
        assert tree == parse(f"  {pair.answer} ")
        assert hash(tree) == hash(parse(pair.answer))
