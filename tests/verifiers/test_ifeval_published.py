"""The preset `published` of the ifeval verifier: texts on which IFEval's published checkers and its instructions differ."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import verifiers
from tests.instructions import CASES
from verifiers import InvalidArgumentError, Outcome, Problem, UnknownNameError
from verifiers.ifeval import IFEvalVerifier, Instruction
from verifiers.ifeval.published import as_published

LEAST, LESS = {"relation": "at least"}, {"relation": "less than"}
CAPITALS = {"capital_frequency": 2, "capital_relation": "at least"}
SUMMARY = {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Summary"}
SECTIONS = {"section_spliter": "Section", "num_sections": 2}
BY_PACKAGE = {
    "language:response_language": "langdetect",
    "change_case:english_capital": "langdetect",
    "change_case:english_lowercase": "langdetect",
    "change_case:capital_word_frequency": "nltk",
    "length_constraints:number_sentences": "nltk",
}

# Each id with its kwargs, texts that follow it only as published, and texts that follow it only by its own words.
DIFFERENCES: list[tuple[str, dict[str, object], list[str], list[str]]] = [
    ("keywords:existence", {"keywords": ["good", "c.t"]}, ["Goodness, a cat."], []),
    ("keywords:frequency", {"keyword": " war ", "frequency": 2, **LEAST}, ["War is toward."], []),
    ("keywords:frequency", {"keyword": "war", "frequency": 2, **LESS}, [], ["War is toward."]),
    ("keywords:forbidden_words", {"forbidden_words": ["peace talks"]}, ["Peace\ntalks."], []),
    ("language:response_language", {"language": "de"}, ["1 2 3"], []),
    ("change_case:english_capital", {}, [], ["YES"]),
    ("change_case:english_lowercase", {}, [], ["my name is sam", "etchings"]),
    ("change_case:capital_word_frequency", CAPITALS, [], ["The HALF-TIME show."]),
    ("punctuation:no_comma", {}, ["一，二"], []),
    ("length_constraints:number_words", {"num_words": 4, **LEAST}, ["I don't know"], []),
    ("length_constraints:number_sentences", {"num_sentences": 2, **LEAST}, ["See fig. 2 now."], []),
    ("length_constraints:number_sentences", {"num_sentences": 2, **LESS}, [], ["See fig. 2 now."]),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, ["***a*** b"], ["a\n\n***\n\nb ***c*** d"]),
    ("length_constraints:nth_paragraph_first_word", SUMMARY, ["a\n \nb\n\nSummary."], ["a\n\nSummary: b"]),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, ["[1] and [a](b)", "[] [ ] a"], []),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, ["Oh, and P.S. hi", "P.S."], []),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, ["a p. p.stop"], []),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, ["-1\n---", "* a\n*b*"], ["* a\n+ b"]),
    ("detectable_format:constrained_response", {}, ["My answer is yes. My answer is no."], []),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, ["***a***", "*a * b*\n* c *"], []),
    ("detectable_format:multiple_sections", SECTIONS, ["Section 1 of Section 2"], ["Section I\na\nSection II\nb"]),
    ("detectable_format:json_format", {}, ['"a"', "NaN", "1"], []),
    ("detectable_format:title", {}, ["<<a>b>>"], []),
    ("combination:two_responses", {}, ["a *******b"], []),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say a b."}, ["Say a b."], ["Say a  b. So."]),
    ("startend:end_checker", {"end_phrase": "The end."}, [], ["The\nend.", "“The end.”"]),
    ("startend:quotation", {}, ['""'], ["“a”"]),
]
IFEVAL = {row[0] for row in DIFFERENCES} | {"keywords:letter_frequency"}
"""Every instruction of IFEval but one has a difference."""


@pytest.fixture(autouse=True)
def punkt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Data of NLTK's tokenizer of sentences that knows one abbreviation, and no other data of NLTK."""
    if importlib.util.find_spec("nltk") is None:
        yield tmp_path
        return
    import nltk

    # Not in each version.
    forget = getattr(getattr(nltk.tokenize, "_get_punkt_tokenizer", None), "cache_clear", lambda: None)
    forget()
    folder = tmp_path / "tokenizers" / "punkt_tab" / "english"
    folder.mkdir(parents=True)
    for name, content in {"abbrev_types.txt": "dr\n", "collocations.tab": "", "sent_starters.txt": ""}.items():
        (folder / name).write_text(content)
    (folder / "ortho_context.tab").write_text("")
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    yield tmp_path
    forget()


def _skip_without_package(identifier: str) -> None:
    package = BY_PACKAGE.get(identifier)
    if package and importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}: pip install 'rlvr-envs[ifeval]'")


@pytest.mark.parametrize(("identifier", "kwargs", "published", "own"), DIFFERENCES, ids=[row[0] for row in DIFFERENCES])
def test_who_follows_an_instruction_only_as_published_and_who_only_by_its_words(
    identifier: str, kwargs: dict[str, object], published: list[str], own: list[str]
) -> None:
    _skip_without_package(identifier)
    instruction = Instruction(identifier, kwargs)
    follows = as_published(instruction)
    for text in (*published, *own):
        assert (follows(text), instruction.followed_by(text)) == (text in published, text in own), text


@pytest.mark.parametrize(("identifier", "kwargs", "good", "bad"), CASES, ids=[case[0] for case in CASES])
def test_only_instructions_of_ifeval_have_a_published_checker(
    identifier: str, kwargs: dict[str, object], good: list[str], bad: list[str]
) -> None:
    _skip_without_package(identifier)
    assert len(IFEVAL) == 25
    instruction = Instruction(identifier, kwargs)
    if identifier in IFEVAL:
        follows = as_published(instruction)
        assert {follows(text) for text in (*good, *bad)} <= {True, False}
        assert not follows(" \n")
    else:
        with pytest.raises(InvalidArgumentError, match="judges the instructions of IFEval"):
            as_published(instruction)


BULLETS = {"instruction_id_list": ["detectable_format:number_bullet_lists"], "kwargs": [{"num_bullets": 2}]}


def judge(completion: str, reference: object = BULLETS, **arguments: object) -> verifiers.Verdict:
    return verifiers.verify("ifeval", completion, reference, **arguments)


def test_the_preset_decides_the_verdict_and_both_findings() -> None:
    assert judge("-1\n---").outcome is Outcome.INCORRECT
    verdict = judge("-1\n---", preset="published")
    assert verdict.outcome is Outcome.CORRECT
    assert verdict.detail["instructions"] == [
        {"id": "detectable_format:number_bullet_lists", "strict": True, "loose": True}
    ]
    assert judge("So:\n- a\n- b\n- c", preset="published").outcome is Outcome.INCORRECT
    assert judge("So:\n- a\n- b\n- c", preset="published", mode="loose").outcome is Outcome.CORRECT
    assert repr(IFEvalVerifier(preset="published")).endswith("partial_credit=False, preset='published')")


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [
        ({"instruction_id_list": ["words:vowel"], "kwargs": [{}]}, "'words:vowel' is none of them"),
        (
            {"instruction_id_list": ["keywords:existence"], "kwargs": [{"keywords": ["c("]}]},
            "for regular expressions; 'c(' is none",
        ),
    ],
)
def test_what_the_published_checkers_can_not_judge_is_an_error(reference: object, complaint: str) -> None:
    (verdict,) = verifiers.verify_batch(
        verifiers.make("ifeval", preset="published"), ["c( is it"], [Problem("p", "", reference)]
    )
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert complaint in str(verdict.detail["error"])


def test_an_unknown_preset_is_an_error() -> None:
    with pytest.raises(UnknownNameError, match="unknown preset of the ifeval verifier 'publishd'"):
        IFEvalVerifier(preset="publishd")
    with pytest.raises(InvalidArgumentError, match="preset"):
        IFEvalVerifier(preset=True)  # type: ignore[arg-type]


def test_a_tokenizer_that_is_not_installed_is_no_wrong_answer(punkt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nltk = pytest.importorskip("nltk", reason="needs nltk: pip install 'rlvr-envs[ifeval]'")
    monkeypatch.setattr(nltk.data, "path", [str(punkt / "nothing")])
    kwargs = [{"num_sentences": 1, **LEAST}]
    problem = Problem("p", "", {"instruction_id_list": ["length_constraints:number_sentences"], "kwargs": kwargs})
    (verdict,) = verifiers.verify_batch(verifiers.make("ifeval", preset="published"), ["So."], [problem])
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert "python -m nltk.downloader punkt_tab" in str(verdict.detail["error"])


@pytest.mark.parametrize("repeated", ["[", "<<", "*", "\n", "* ", "-", " ", ">>", "`", '"'])
def test_a_response_of_one_sign_takes_no_quadratic_time(repeated: str) -> None:
    ids = [case for case in CASES if case[0] in IFEVAL and case[0] not in BY_PACKAGE]
    response = f"a{repeated * 100_000}b"
    started = time.process_time()
    for identifier, kwargs, *_ in ids:
        as_published(Instruction(identifier, kwargs))(response)
    assert time.process_time() - started < 5
