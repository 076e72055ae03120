import pytest

from rlvr_envs.data.rows import Row
from verifiers import DataError


def row(**values: object) -> Row:
    return Row(values, 2, "data/x/test.jsonl, line 4")


def message(call: object, *arguments: str) -> str:
    with pytest.raises(DataError) as caught:
        call(*arguments)  # type: ignore[operator]  # a bound method of Row
    return str(caught.value)


def test_a_missing_column_with_nothing_near_suggests_nothing() -> None:
    assert message(row(a=1, b=2).text, "problem", "question") == (
        "data/x/test.jsonl, line 4: no column 'problem' or 'question'. Columns found: 'a', 'b'."
    )
    assert message(row().value, "answer") == "data/x/test.jsonl, line 4: no column 'answer'. Columns found: none."


def test_an_integer_column_takes_integers_only_and_long_values_are_cut_in_messages() -> None:
    for value in (True, 1.0, None):
        assert "column 'id' should hold an integer, got " in message(row(id=value).integer, "id")
    long = message(row(answer=list(range(10_000))).text, "answer")
    assert long.endswith("…")
    assert len(long) < 200


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    expected = (
        "data/x/test.jsonl, line 4: column 'question' holds half of a surrogate pair as its character 3, in "
        r"'2 \ud83d +', where Unicode text was expected: write the character itself or both halves, or leave the row out"
    )
    assert message(row(question="2 \ud83d +").text, "problem", "question") == expected
    assert row(question="2 \U0001f600 +").text("question") == "2 \U0001f600 +"
    long = message(row(question="a" * 100 + "\udfff" + "b" * 100).text, "question")
    assert f"character 101, in '{'a' * 20}\\udfff{'b' * 20}'" in long


def test_text_within_a_value_is_named_by_its_path() -> None:
    value = {"tests": [("1", 2), ("1", {"out": "\ud800"})]}
    assert "column 'answer.tests.1.1.out' holds half of" in message(row().check_characters, value, "answer")  # type: ignore[arg-type]
    row().check_characters({"tests": [1, None, True, "é"]}, "answer")
