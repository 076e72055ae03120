"""JSON that fits a schema: where it stands, how strictly it is read, and what can't be judged."""

from __future__ import annotations

import contextlib
import json
import pickle
import re
import time
import unicodedata
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings, strategies as st

import verifiers
from verifiers import Outcome, Problem, Verdict
from verifiers.json_schema.patterns import python_pattern
from verifiers.json_schema.reading import NotJSONError, json_text, read_json, same

pytest.importorskip("jsonschema", reason="needs jsonschema: pip install 'rlvr-envs[jsonschema]'")

from verifiers.json_schema import JSONSchemaVerifier

Judge = Callable[[str, object], Verdict]
PERSON = {
    "type": "object",
    "properties": {"age": {"type": "integer"}},
    "required": ["age"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    verifier = JSONSchemaVerifier(timeout_s=1)

    def ask(completion: str, reference: object) -> Verdict:
        (verdict,) = verifiers.verify_batch(verifier, [completion], [Problem("p", "", reference)])
        return verdict

    yield ask
    verifier.close()


@pytest.mark.parametrize(
    ("completion", "outcome"),
    [
        ('{"age": 3}', Outcome.CORRECT),
        (' {"age": 3.0}\n', Outcome.CORRECT),
        ('```\n{"age": "x"}\n```\nor\n```json\n{"age": 3}\n```', Outcome.CORRECT),
        ('```json\n{"age": 3}\n```\nor\n```\n{"age": "x"}\n```', Outcome.INCORRECT),
        ('<think>{"age": "x"}</think>{"age": 3}<|im_end|>', Outcome.CORRECT),
        ('{"age": true}', Outcome.INCORRECT),
        ('{"age": 3, "name": "x"}', Outcome.INCORRECT),
        ('{"age": 3} and more', Outcome.INCORRECT),
        ('{"age": "x", "age": 3}', Outcome.INCORRECT),
        ('{"age": 1e999}', Outcome.INCORRECT),
        ('{"age": ' + "1" * 5000 + "}", Outcome.INCORRECT),
        ("[" * 200_000, Outcome.INCORRECT),
        ('{"age": ' * 101 + "3" + "}" * 101, Outcome.INCORRECT),
        ('The age is {"age": 3}.', Outcome.NO_ANSWER),
        ('<think>{"age": 3}', Outcome.NO_ANSWER),
        ("", Outcome.NO_ANSWER),
    ],
)
def test_what_a_completion_is_worth(judge: Judge, completion: str, outcome: Outcome) -> None:
    assert judge(completion, PERSON).outcome is outcome
    assert judge(completion, json.dumps(PERSON)).outcome is outcome


def test_an_expected_value_is_compared_as_json(judge: Judge) -> None:
    reference = {"schema": {"type": "object"}, "expected": {"a": [1, None], "b": True}}
    assert judge('{"b": true, "a": [1.0, null]}', reference).outcome is Outcome.CORRECT
    for other in ('{"b": 1, "a": [1, null]}', '{"b": true, "a": [null, 1]}', '{"b": true}'):
        assert judge(other, reference).outcome is Outcome.INCORRECT
    assert judge("null", {"schema": True, "expected": None}).outcome is Outcome.CORRECT


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ({"$ref": "http://example.com/person.json"}, "no file or address is opened"),
        ({"$ref": "file:///etc/passwd"}, "no file or address is opened"),
        ({"properties": {"a": {"items": {"$ref": "#/$defs/none"}}}}, "leads to nothing in the schema"),
        ({"type": "text"}, "not a valid schema"),
        ({"pattern": "("}, "can't read the pattern '('"),
        ({"properties": {"a": {"pattern": r"\p{Script=Greek}"}}}, "the Unicode property 'Script=Greek', which is not"),
        ({"pattern": r"\p{lu}"}, "expected a general category, such as L, Lu or Uppercase_Letter, or Any, ASCII or"),
        ({"$schema": "urn:my-own"}, "the dialect 'urn:my-own' is not known"),
        ("{", "the reference must be a JSON schema"),
        ({"schema": {1, 2}}, "the reference must be a JSON schema"),
        ([PERSON], "a schema is an object, true or false, got list"),
        ({"schema": PERSON, "expcted": {"age": 3}}, "unknown key 'expcted'. Did you mean 'expected'?"),
        ({"expected": {"age": 3}}, "the key 'schema' is missing"),
        ({"schema": {"typ": "object"}, "expected": {"age": 3}}, "JSON Schema ignores its keys 'typ'"),
        ({"prefixItems": [], "$schema": "http://json-schema.org/draft-07/schema#"}, "ignores its keys 'prefixItems'"),
    ],
)
@pytest.mark.parametrize("completion", ['{"age": 3}', "no JSON"])
def test_a_schema_that_nothing_can_be_judged_by_is_an_error(
    judge: Judge, schema: object, complaint: str, completion: str
) -> None:
    verdict = judge(completion, schema)
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert complaint in str(verdict.detail["error"])
    assert verdict.detail["unreadable_reference"] is True


def test_references_inside_the_schema_are_followed(judge: Judge) -> None:
    named = {"$defs": {"n": {"$id": "http://example.com/n", "type": "integer"}}, "$ref": "http://example.com/n"}
    older = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"tree": {"type": "array", "items": {"$ref": "#/definitions/tree"}}},
        "$ref": "#/definitions/tree",
    }
    assert judge("3", {"$ref": "#"}).outcome is Outcome.VERIFIER_ERROR  # which leads to itself
    assert [judge(text, named).outcome for text in ("3", '"x"')] == [Outcome.CORRECT, Outcome.INCORRECT]
    assert [judge(text, older).outcome for text in ("[[], [[]]]", "[[], [3]]")] == [Outcome.CORRECT, Outcome.INCORRECT]
    assert judge("[" * 100 + "]" * 100, older).outcome is Outcome.CORRECT


def test_a_pattern_that_runs_forever_is_stopped_and_the_next_value_judged() -> None:
    problem = Problem("p", "", {"type": "string", "pattern": "^(a+)+$"})
    with contextlib.closing(JSONSchemaVerifier(timeout_s=0.5)) as verifier:
        assert verifier('"' + "a" * 60 + '!"', problem).outcome is Outcome.TIMEOUT
        assert verifier('"aaa"', problem).outcome is Outcome.CORRECT


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("^a$", "a", "a\n"),
        (r"^\d+$", "12", "١٢"),
        (r"^[\d-]+$", "1-2", "١"),
        (r"^\$[$]$", "$$", "$"),
        (r"^(?<same>a)b$", "ab", "b"),
        (r"^[\S]$", "\x85", "\ufeff"),
        (r"^.$", "\x85", "\u2028"),
        (r"a\b", "aé", "ab"),
        (r"^[^\W]$", "a", "é"),
        (r"^\u{1F600}\uD83D\uDE00[\u{61}-\u{63}]$", "😀😀b", "😀b"),
        (r"^[^]\u0041$", "\nA", "A"),
        (r"^([]|a)$", "a", "]"),
        (r"^\p{L}+$", "Größe语", "a1"),
        (r"^\P{L}$", "7", "é"),
        (r"^[^\p{Nd}\p{P}]+$", "a b", "a٣"),
        (r"^\p{General_Category=Decimal_Number}\p{gc=Sc}$", "٣€", "3E"),
        (r"^\p{LC}\p{ASCII}\p{Any}$", "éa\n", "語aa"),
        (r"^\p{Assigned}$", "a", "\U000e0fff"),
        (r"^\p{L}\P{Any}|x$", "x", "ax1"),
        (r"^[^\]]$", "a", "]"),
    ],
)
def test_patterns_are_those_of_ecma_262(judge: Judge, pattern: str, good: str, bad: str) -> None:
    assert judge(json.dumps(good), {"pattern": pattern}).outcome is Outcome.CORRECT
    assert judge(json.dumps(bad), {"pattern": pattern}).outcome is Outcome.INCORRECT


@pytest.mark.parametrize("category", ["L", "Lu", "Lo", "M", "Nd", "P", "Sc", "Zs", "Cn", "Cs", "Co"])
def test_a_property_has_the_characters_of_its_category(category: str) -> None:
    inside, outside, in_class = (
        re.compile(python_pattern(text % category)) for text in (r"\p{%s}", r"\P{%s}", r"[^\p{%s}]")
    )
    for character in map(chr, [*range(0x3000), *range(0x3000, 0x110000, 37)]):
        belongs = unicodedata.category(character).startswith(category)
        assert (inside.match(character) is not None) is belongs
        assert (outside.match(character) is None) is (in_class.match(character) is None) is belongs


def test_a_reference_leads_to_what_stands_under_no_keyword(judge: Judge) -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "own": {"word": {"pattern": r"^\p{L}$", "multipleOf": 0.1, "items": {"$ref": "#/own/word"}}},
        "$ref": "#/own/word",
    }
    assert [judge(text, schema).outcome for text in ('"é"', '["é", 0.3]')] == [Outcome.CORRECT] * 2
    assert [judge(text, schema).outcome for text in ('"1"', '["1", 0.3]')] == [Outcome.INCORRECT] * 2
    for _ in range(2):
        dialect = {"$ref": "http://json-schema.org/draft-07/schema#"}
        assert judge('{"multipleOf": 0.1}', dialect).outcome is Outcome.CORRECT
        assert judge('{"multipleOf": "x"}', dialect).outcome is Outcome.INCORRECT


@pytest.mark.parametrize(
    ("number", "divisor", "fits"),
    [
        ("0.3", 0.1, True),
        ("19.99", 0.01, True),
        ("19.995", 0.01, False),
        ("0", 0.1, True),
        ("1e308", 5e-324, True),
        ("1.7976931348623157e308", 0.3, False),
        ("1.5", 10**400, False),
        ("1" + "0" * 4000, 1e308, True),
    ],
)
@pytest.mark.parametrize(
    ("dialect", "keyword"),
    [
        ("https://json-schema.org/draft/2020-12/schema", "multipleOf"),
        ("http://json-schema.org/draft-04/schema#", "multipleOf"),
        ("http://json-schema.org/draft-03/schema#", "divisibleBy"),
    ],
)
def test_multiples_are_those_of_decimal_numbers(
    judge: Judge, number: str, divisor: float, fits: bool, dialect: str, keyword: str
) -> None:
    start = time.monotonic()
    verdict = judge(f"[{number}]", {"$schema": dialect, "items": {keyword: divisor}})
    assert verdict.outcome is (Outcome.CORRECT if fits else Outcome.INCORRECT), verdict.detail
    if not fits:
        assert "is not a multiple of" in str(verdict.detail["errors"])
    assert time.monotonic() - start < 4


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", "2024-02-29", "2023-02-29"),
        ("date-time", "2024-01-01T23:59:60Z", "2024-01-01T00:00:00"),
        ("duration", "P1DT2H", "P"),
        ("email", "a.b@c.de", "a@b@c"),
        ("ipv6", "::1", "1"),
        ("uri", "https://a.b/c?d#e", "a b"),
        ("uri", "http://u:p@[::1]:80/x;y?z=/?", "http://[1"),
        ("uri", "urn:isbn:123", "http://a:8x/"),
        ("uri-reference", "a/b?c#d", "a/[b]"),
        ("json-pointer", "/a/~0", "a"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"),
    ],
)
def test_formats_are_checked(judge: Judge, name: str, good: str, bad: str) -> None:
    assert judge(json.dumps(good), {"format": name}).outcome is Outcome.CORRECT
    assert judge(json.dumps(bad), {"format": name}).outcome is Outcome.INCORRECT
    assert judge("3", {"format": name}).outcome is Outcome.CORRECT
    assert judge('"?"', {"format": f"my-{name}"}).outcome is Outcome.CORRECT


LEAF = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
INNER = LEAF | st.lists(LEAF, max_size=2) | st.dictionaries(st.text(max_size=3), LEAF, max_size=2)
JSON = INNER | st.lists(INNER, max_size=3) | st.dictionaries(st.text(max_size=3), INNER, max_size=3)


@settings(max_examples=50)
@given(value=JSON)
def test_json_is_read_as_it_was_written(value: object) -> None:
    text = json.dumps(value)
    assert json_text(text) == text
    assert json_text(f"So:\n```json\n{text}\n```") == text
    assert json_text("It is:\n```json\n[]\n```\nso <answer>\n{}\n</answer>.") == "{}"
    assert same(read_json(text), value)
    assert same(value, json.loads(json.dumps(value, sort_keys=True)))


@pytest.mark.parametrize("part", ['\\"', '"', "```a\n", "```\n", "[", "a"])
def test_where_json_stands_is_found_in_the_time_of_one_look(part: str) -> None:
    text = '{"' + part * 50_000
    start = time.process_time()
    for found in (json_text(text), json_text(part * 50_000)):
        with contextlib.suppress(NotJSONError):
            read_json(found or "")
    assert time.process_time() - start < 4


def test_a_copy_has_a_process_of_its_own() -> None:
    original = JSONSchemaVerifier(timeout_s=2)
    copy = pickle.loads(pickle.dumps(original))
    assert isinstance(copy, JSONSchemaVerifier)
    assert copy.same_answer('{"a": 1}', '{"a": 1.0}', Problem("", "", {}))
    assert not copy.same_answer("{", "{", Problem("", "", {}))
