"""Made prompts with instructions: a scripted responder follows them all, whatever goes together."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

import verifiers
from agents.runs.contamination import NGRAM, overlaps
from rlvr_envs import tasks
from rlvr_envs.procedural.instructions import (
    KINDS,
    LEAST_WORDS,
    NEED_LANGDETECT,
    TONES,
    TOPICS,
    WORDINGS,
    Draws,
    Given,
    Wording,
    compatible,
)
from rlvr_envs.tasks import Instructions
from verifiers import InvalidArgumentError, MissingDependencyError, UnknownNameError
from verifiers.ifeval.text import occurrences, sentences, words

HAS_LANGDETECT = importlib.util.find_spec("langdetect") is not None
REAL = os.environ.get("RLVR_DATA_DIR")
GIVEN = Given("Write a warm poem about a kite.", ("string", "wind", "tail", "sky", "cloth", "kid"), 150)

TEXTS = {
    "en": "it was a calm day and she read to them in the old garden",
    "es": "era un hombre viejo que pescaba solo en un bote y hacía muchos días que no cogía un pez",
    "fr": "la petite fille marchait dans la rue avec son chien et elle chantait pour les gens du quartier",
    "de": "das Wetter war schön und wir gingen am Fluss spazieren bis es dunkel wurde und die Sterne schienen",
    "it": "la ragazza camminava per la strada con il suo cane e cantava una canzone per la gente del paese",
    "pt": "o menino não queria voltar para casa porque a chuva ainda não tinha chegado e ele estava feliz",
    "nl": "het meisje liep met haar hond door de straat en zong een liedje voor de mensen van het dorp",
    "pl": "dziewczyna szła ulicą ze swoim psem i śpiewała piosenkę dla ludzi którzy mieszkali we wsi",
    "sv": "flickan gick på gatan med sin hund och sjöng en sång för alla människor som bodde i byn",
    "ru": "девочка шла по улице со своей собакой и пела песню для людей которые жили в деревне",
}
"""A line of each language, without a comma; the English one has none of the letters j, k, q, v, x and z."""

WITH_WORDS = ("keywords:existence", "keywords:frequency", "keywords:forbidden_words", "combination:repeat_prompt")

Arguments = Mapping[str, Any]
NOTHING: Arguments = {}


def respond(instructions: Mapping[str, Arguments]) -> str:
    """A response that follows instructions by construction, and makes no sense."""
    asked = {kind.partition(":")[2]: arguments for kind, arguments in instructions.items()}
    if "constrained_response" in asked:
        return "My answer is maybe."
    line = TEXTS[asked.get("response_language", NOTHING).get("language", "en")]
    first = " ".join([*wanted(asked), *line.split(), *padding(line, asked)])
    if "json_format" in asked:
        return json.dumps({"text": first})
    if "two_responses" in asked:
        return cased(f"{first}.\n******\n{first} {line}.", asked)
    paragraphs = max(arguments.get("num_paragraphs", 1) for arguments in asked.values())
    parts = [first + ".", *[" ".join(line.split()[:3]) + "."] * (paragraphs - 1)]
    if (place := asked.get("nth_paragraph_first_word")) is not None:
        parts[place["nth_paragraph"] - 1] = f"{place['first_word']} {parts[place['nth_paragraph'] - 1]}"
    text = ("\n***\n" if "number_paragraphs" in asked else "\n\n").join(parts)
    whole = cased("\n".join([*opening(asked), text, *closing(asked)]), asked)
    return f'"{whole}\n"' if "quotation" in asked else whole  # a list may not begin in the same line as the quotation


def wanted(asked: Mapping[str, Arguments]) -> Iterable[str]:
    yield from asked.get("existence", {}).get("keywords", ())
    if (frequency := asked.get("frequency", NOTHING)).get("relation") == "at least":
        yield from [frequency["keyword"]] * frequency["frequency"]
    if (letters := asked.get("letter_frequency", NOTHING)).get("let_relation") == "at least":
        yield letters["letter"] * letters["let_frequency"]
    if (capitals := asked.get("capital_word_frequency", NOTHING)).get("capital_relation") == "at least":
        yield from ["LOUD"] * capitals["capital_frequency"]
    yield from ["[date]"] * asked.get("number_placeholders", {}).get("num_placeholders", 0)
    yield from ["*so*"] * asked.get("number_highlighted_sections", {}).get("num_highlights", 0)
    if (number := asked.get("number_sentences", NOTHING)).get("relation") == "at least":
        yield from ["So."] * number["num_sentences"]


def padding(line: str, asked: Mapping[str, Arguments]) -> list[str]:
    number = asked.get("number_words", NOTHING)
    count = number["num_words"] if number.get("relation") == "at least" else 0
    return list(itertools.islice(itertools.cycle(line.split()), max(0, count - len(line.split()))))


def opening(asked: Mapping[str, Arguments]) -> Iterable[str]:
    if "repeat_prompt" in asked:
        yield asked["repeat_prompt"]["prompt_to_repeat"]
    if "title" in asked:
        yield "<<so it was>>"


def closing(asked: Mapping[str, Arguments]) -> Iterable[str]:
    if "number_bullet_lists" in asked:
        yield from ["- so"] * asked["number_bullet_lists"]["num_bullets"]
    if "multiple_sections" in asked:
        sections = asked["multiple_sections"]
        yield from (f"{sections['section_spliter']} {number + 1}\nso" for number in range(sections["num_sections"]))
    if "postscript" in asked:
        yield f"{asked['postscript']['postscript_marker']} so"
    if "end_checker" in asked:
        yield asked["end_checker"]["end_phrase"]


def cased(text: str, asked: Mapping[str, Arguments]) -> str:
    if "english_capital" in asked:
        return text.upper()
    return text.lower() if "english_lowercase" in asked else text


def drawn(wording: Wording, code: int) -> tuple[str, Arguments]:
    return wording.draw(Draws(code), GIVEN, spelled=False)


def judged(instructions: Mapping[str, Arguments]) -> verifiers.Verdict:
    reference = {"instruction_id_list": list(instructions), "kwargs": list(instructions.values())}
    return verifiers.verify("ifeval", respond(instructions), reference)


PAIRS = [pair for pair in itertools.combinations(WORDINGS, 2) if compatible(pair[0].kind, pair[1].kind)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_response_can_follow_any_two_instructions_that_go_together(kind: str) -> None:
    """The extremes of the parameters, and some between: what goes together does whatever they are."""
    if kind in NEED_LANGDETECT:
        pytest.importorskip("langdetect")
    alone = [(one, one) for one in WORDINGS if one.kind == kind]
    for one, other in [*alone, *(pair for pair in PAIRS if pair[0].kind == kind)]:
        if other.kind in NEED_LANGDETECT and not HAS_LANGDETECT:
            continue
        for code in (0, 2**64 - 1, 987654321987654321):
            instructions = {wording.kind: drawn(wording, code)[1] for wording in (one, other)}
            verdict = judged(instructions)
            assert verdict.outcome == "correct", (instructions, verdict.detail)


@pytest.mark.parametrize(("kinds", "max_words"), [("basic", 100), ("all", 200), ("all", LEAST_WORDS)])
def test_every_prompt_of_the_data_set_can_be_followed_in_few_words(kinds: str, max_words: int) -> None:
    """Also where the least limit of words is that of every prompt."""
    if kinds == "all":
        pytest.importorskip("langdetect")
    seen: set[str] = set()
    data = Instructions(seed=3, kinds=kinds, max_words=max_words, size=600)
    for problem in data:
        reference: Any = problem.reference
        response = respond(dict(zip(reference["instruction_id_list"], reference["kwargs"], strict=True)))
        verdict = verifiers.verify("ifeval", response, reference)
        assert verdict.outcome == "correct", (problem.prompt, response, verdict.detail)
        assert len(words(response)) <= max_words + 2 * LEAST_WORDS
        seen |= set(reference["instruction_id_list"])
        assert str(problem.prompt).isascii()
        assert len(str(problem.prompt)) <= data.max_prompt_bytes
    assert seen == set(KINDS) - (NEED_LANGDETECT if kinds == "basic" else set())


def test_contradictions_are_kept_apart() -> None:
    for one, other in itertools.product(KINDS, repeat=2):
        assert compatible(one, other) == compatible(other, one)
    assert not compatible("change_case:english_capital", "change_case:english_lowercase")
    assert not any(compatible("detectable_format:constrained_response", kind) for kind in KINDS)
    assert not compatible("punctuation:no_comma", "detectable_format:json_format")
    assert not compatible("language:response_language", "startend:end_checker")
    for problem in Instructions(size=500, seed=1):
        ids = problem.reference["instruction_id_list"]  # type: ignore[index]
        assert all(compatible(one, other) for one, other in itertools.combinations(ids, 2))


def test_requests_are_one_sentence_without_comma_and_words_are_new() -> None:
    """So an answer can repeat a request whatever else is asked, and leave out a word of its topic."""
    required = [drawn(wording, code)[1] for wording in WORDINGS if wording.kind not in WITH_WORDS for code in range(40)]
    fixed = " ".join(str(value) for arguments in required for value in arguments.values())
    for topic in TOPICS:
        assert len(set(topic.words)) == 6, topic
        for form in (*topic.forms, *topic.questions):
            request = form.format(subject=topic.subject, tone=" ".join(TONES))
            assert len(sentences(request)) == 1, request
            assert "," not in request
            assert not [word for word in topic.words if occurrences(word, request)], request
        assert not [word for word in topic.words if occurrences(word, fixed)], topic


def test_there_are_many_thousand_requests_each_in_one_split() -> None:
    assert len({topic.subject for topic in TOPICS}) == len(TOPICS)
    assert sum(len(topic.forms) * len(TONES) + len(topic.questions) for topic in TOPICS) > 17_000
    asked = []
    for split in ("train", "test"):  # without their tones
        requests = [sentences(str(problem.prompt))[0].split() for problem in Instructions(split, size=900)]
        asked.append({" ".join(word for word in request if word not in TONES) for request in requests})
    assert not asked[0] & asked[1]


def test_kinds_are_ids_groups_and_presets() -> None:
    def chosen(kinds: Any) -> set[str]:
        data = Instructions(size=200, kinds=kinds)
        return {kind for problem in data for kind in problem.reference["instruction_id_list"]}  # type: ignore[index]

    assert chosen("punctuation:no_comma") == {"punctuation:no_comma"}
    assert chosen(["punctuation:no_comma", "startend"]) == {
        "punctuation:no_comma",
        "startend:end_checker",
        "startend:quotation",
    }
    # The only kind that asks a question has the fewest prompts.
    assert chosen("detectable_format:constrained_response") == {"detectable_format:constrained_response"}
    assert 1_000 < len(Instructions(kinds="detectable_format:constrained_response")) <= 10_000


def test_wrong_arguments_say_what_is_right() -> None:
    with pytest.raises(UnknownNameError, match="no_comma"):
        Instructions(kinds="punctuation:no_commas")
    with pytest.raises(InvalidArgumentError, match="kinds must name one or more"):
        Instructions(kinds=())
    with pytest.raises(InvalidArgumentError, match="instructions must be from 1 to 3, got 4"):
        Instructions(instructions=4)
    with pytest.raises(InvalidArgumentError, match="max_words must be from 40 to 1000, got 39"):
        Instructions(max_words=39)


def test_without_langdetect_the_kinds_that_need_it_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'rlvr-envs\[ifeval\]'"):
        Instructions(kinds="all")
    with pytest.raises(MissingDependencyError, match="kinds='basic'"):
        Instructions(kinds=("punctuation", "language"))
    assert len(Instructions()) == 10_000


@pytest.mark.skipif(not REAL, reason="needs RLVR_DATA_DIR, a folder with the published rows")
def test_nothing_of_the_benchmark_is_trained_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)  # no response is judged here
    try:
        rows = tasks.load("ifeval", "test", data_dir=REAL)
    except verifiers.MissingDataError:
        pytest.skip(f"{REAL} has no rows of ifeval")
    prompts = [str(problem.prompt) for split in ("train", "test") for problem in Instructions(split, kinds="all")]
    for length in (NGRAM, 8):
        results = overlaps(prompts, [rows[index] for index in range(len(rows))], words=length)
        assert [overlap for overlap in results if overlap.share] == []
