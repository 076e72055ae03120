"""The instructions of IFEval and IFBench, each on texts that follow it and texts that do not."""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import verifiers
from tests.instructions import CASES, EMOJI, ENGLISH, FIRST_WORD, NEEDS, SPAN
from verifiers import InvalidArgumentError, Outcome, Problem
from verifiers.ifeval import Instruction, read_instructions, rules


def _skip_without(identifier: str) -> None:
    package = NEEDS.get(identifier)
    if package and importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}: pip install 'rlvr-envs[ifeval]'")


@pytest.mark.parametrize(("identifier", "kwargs", "good", "bad"), CASES, ids=[case[0] for case in CASES])
def test_who_follows_an_instruction(
    identifier: str, kwargs: dict[str, object], good: list[str], bad: list[str]
) -> None:
    _skip_without(identifier)
    instruction = Instruction(identifier, kwargs)
    assert [text for text in good if not instruction.followed_by(text)] == []
    assert [text for text in bad if instruction.followed_by(text)] == []


@pytest.mark.parametrize(("identifier", "kwargs", "good", "bad"), CASES, ids=[case[0] for case in CASES])
def test_crlf_ends_a_line_as_lf_does(
    identifier: str, kwargs: dict[str, object], good: list[str], bad: list[str]
) -> None:
    _skip_without(identifier)
    windows = {key: value.replace("\n", "\r\n") if isinstance(value, str) else value for key, value in kwargs.items()}
    for text in (*good, *bad):
        found = judge(text, [Instruction(identifier, kwargs)]).detail
        assert judge(text.replace("\n", "\r\n"), [Instruction(identifier, windows)]).detail == found


def test_every_instruction_is_covered_here() -> None:
    assert {case[0] for case in CASES} == rules().keys() - {"words:start_verb"}
    assert len(rules()) == 25 + 58


@pytest.fixture
def nltk_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The only folder in which NLTK looks for its data; it is empty."""
    nltk = pytest.importorskip("nltk", reason="needs nltk: pip install 'rlvr-envs[ifeval]'")
    forget = getattr(nltk.tag._get_tagger, "cache_clear", lambda: None)  # not in each version
    forget()
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    yield tmp_path
    forget()


def test_the_tagger_decides_who_starts_with_a_verb(nltk_data: Path) -> None:
    """NLTK itself, with a tagger that knows three words, in the files that its downloader brings."""
    name = "averaged_perceptron_tagger_eng"
    folder = nltk_data / "taggers" / name
    folder.mkdir(parents=True)
    tags = {"Go": "VB", "Going": "VBG", "Home": "NN"}
    for part, content in {"tagdict": tags, "weights": {}, "classes": ["NN"]}.items():
        (folder / f"{name}.{part}.json").write_text(json.dumps(content))
    instruction = Instruction("words:start_verb")
    assert instruction.followed_by("**Go** home. I stay.")
    assert instruction.followed_by("Going home")
    assert not instruction.followed_by("Home. Go.")
    assert not instruction.followed_by("Unknown words")


ROW = {
    "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
    "kwargs": [{"num_words": None}, {"relation": "at least", "num_words": 3, "keyword": None}],
}


def judge(completion: str, reference: object = ROW, **arguments: object) -> verifiers.Verdict:
    return verifiers.verify("ifeval", completion, reference, **arguments)


def test_a_completion_that_follows_all_is_correct() -> None:
    verdict = judge("one two three")
    assert (verdict.outcome, verdict.score, verdict.answer) == (Outcome.CORRECT, 1.0, "one two three")
    names = ("punctuation:no_comma", "length_constraints:number_words")
    found = [{"id": name, "strict": True, "loose": True} for name in names]
    assert verdict.detail == {"followed": 2, "total": 2, "instructions": found}


def test_partial_credit_is_the_share_that_is_followed() -> None:
    assert judge("one two").outcome is Outcome.INCORRECT
    half = judge("one two", partial_credit=True)
    assert (half.outcome, half.score) == (Outcome.SCORED, 0.5)
    assert judge("one two three", partial_credit=True).outcome is Outcome.CORRECT
    none = judge("one, two", partial_credit=True)
    assert (none.outcome, none.score) == (Outcome.INCORRECT, 0.0)


def test_loose_accuracy_forgives_an_opening_line_a_closing_line_and_asterisks() -> None:
    assert judge("Sure, here it is:\none two three", mode="loose").outcome is Outcome.CORRECT
    assert judge("Sure, here it is:\none two three").outcome is Outcome.INCORRECT
    assert judge("Sure,\none two three\nBye, bye", mode="loose").outcome is Outcome.CORRECT
    json_only = {"instruction_id_list": ["detectable_format:json_format"], "kwargs": [{}]}
    assert judge("**[1]**", json_only, mode="loose").outcome is Outcome.CORRECT
    assert judge("one, two three four", mode="loose").outcome is Outcome.INCORRECT


def test_each_instruction_may_be_followed_by_another_of_the_eight_texts() -> None:
    reference = [Instruction("punctuation:no_comma"), Instruction("startend:end_checker", {"end_phrase": "Bye, bye"})]
    assert judge("one\nBye, bye", reference, mode="loose").outcome is Outcome.CORRECT


@pytest.mark.parametrize("completion", ["", "  \n", "<think>one two three", "<think>one two three</think>\n"])
def test_without_a_response_there_is_no_answer(completion: str) -> None:
    assert judge(completion).outcome is Outcome.NO_ANSWER


@pytest.mark.parametrize("text", ["***", "!!! ... ???", EMOJI, "—"])
@pytest.mark.parametrize(
    "identifier", ["words:consonants", "words:prime_lengths", "punctuation:no_comma", "format:title_case"]
)
def test_a_response_without_words_follows_nothing(identifier: str, text: str) -> None:
    assert not Instruction(identifier).followed_by(text)


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [
        ({**ROW, "instruction_id_list": ["punctuation:no_coma", "x"]}, "unknown instruction 'punctuation:no_coma'"),
        ({**ROW, "kwargs": [{}, {"relation": "at least"}]}, "lacks 'num_words'; its kwargs are num_words, relation"),
        ({**ROW, "kwargs": [{"n": 3}, {"relation": "at least", "num_words": 3}]}, "has 'n', which it does not take"),
        ({**ROW, "kwargs": [{}, {"relation": "more than", "num_words": 3}]}, "relation of the instruction"),
        ({**ROW, "kwargs": [{}, {"relation": "at least", "num_words": 2.5}]}, "must be a whole number of at least 0,"),
        ({**ROW, "kwargs": [{}, {"relation": "at least", "num_words": math.inf}]}, "must be a whole number"),
        ({**ROW, "kwargs": [{}]}, "one mapping for each of the 2 instructions"),
        ({"instruction_id_list": [], "kwargs": []}, "a list of one or more ids"),
        ("not json", "expected the JSON of instructions"),
        (7, "expected instructions, or a mapping"),
        ({"instruction_id_list": [3], "kwargs": [{}]}, "an instruction is an id and a mapping"),
    ],
)
def test_a_reference_that_says_nothing_clear_is_an_error(reference: object, complaint: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        judge("one two three", reference)
    assert complaint in str(caught.value)
    (verdict,) = verifiers.verify_batch(verifiers.make("ifeval"), ["one"], [Problem("p", "", reference)])
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert complaint in str(verdict.detail["error"])


@pytest.mark.parametrize(
    ("identifier", "kwargs"),
    [
        ("count:word_count_range", {"min_words": 5, "max_words": 4}),
        ("length_constraints:nth_paragraph_first_word", {**FIRST_WORD, "nth_paragraph": 3}),
        ("repeat:repeat_span", {**SPAN, "n_end": 9}),
    ],
)
def test_parameters_that_contradict_each_other_are_an_error(identifier: str, kwargs: dict[str, object]) -> None:
    with pytest.raises(InvalidArgumentError, match="contradict each other"):
        Instruction(identifier, kwargs)


def test_a_package_that_is_not_installed_is_no_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    from verifiers.ifeval import language

    language._detectors.cache_clear()
    monkeypatch.setitem(sys.modules, "langdetect", None)
    reference = {"instruction_id_list": ["language:response_language"], "kwargs": [{"language": "en"}]}
    (verdict,) = verifiers.verify_batch(verifiers.make("ifeval"), [ENGLISH], [Problem("p", "", reference)])
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert "pip install 'rlvr-envs[ifeval]'" in str(verdict.detail["error"])


@pytest.mark.usefixtures("nltk_data")
def test_a_tagger_that_is_not_installed_is_no_wrong_answer() -> None:
    reference = {"instruction_id_list": ["punctuation:no_comma", "words:start_verb"], "kwargs": [{}, {}]}
    problems = [Problem("p", "", reference)] * 2
    for verdict in verifiers.verify_batch(verifiers.make("ifeval"), ["Go, home", "Go home"], problems):
        assert (verdict.outcome, math.isnan(verdict.score)) == (Outcome.VERIFIER_ERROR, True)
        assert "python -m nltk.downloader averaged_perceptron_tagger_eng" in str(verdict.detail["error"])


def test_a_reference_may_be_instructions_a_row_its_json_or_a_list_of_one() -> None:
    read = read_instructions(ROW)
    assert read == read_instructions(json.dumps(ROW)) == read_instructions([ROW]) == read_instructions(read)
    assert read_instructions({"instruction_id": ["punctuation:no_comma"], "kwargs": [None]}) == read[:1]
    assert read[1].kwargs == {"relation": "at least", "num_words": 3}


PURE = [case[:2] for case in CASES if case[0] not in NEEDS]


@given(text=st.text(alphabet=" \n\t.,!?\"'“*-#<>[](){}aAbeNtT0147猫" + EMOJI, max_size=80), case=st.sampled_from(PURE))
def test_any_text_is_judged_and_strict_is_never_laxer_than_loose(
    text: str, case: tuple[str, dict[str, object]]
) -> None:
    reference = [Instruction(*case)]
    strict, loose = judge(text, reference), judge(text, reference, mode="loose")
    assert strict.outcome in (Outcome.CORRECT, Outcome.INCORRECT, Outcome.NO_ANSWER)
    assert strict.score <= loose.score
    assert judge(text, reference) == strict
