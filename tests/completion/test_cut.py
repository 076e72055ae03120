from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from verifiers import InvalidArgumentError
from verifiers.completion.cut import cut, without_end_tokens
from verifiers.completion.words import CLOSINGS, OPENINGS, THOUGHTS

FINAL = "<|channel|>final<|message|>"


@pytest.mark.parametrize("name", [*THOUGHTS, "Think", "ANALYSIS"])
@pytest.mark.parametrize("brackets", ["<>", "[]"])
def test_a_thought_goes_and_one_that_is_not_closed_leaves_nothing(name: str, brackets: str) -> None:
    opening, closing = f"{brackets[0]}{name}{brackets[1]}", f"{brackets[0]}/{name}{brackets[1]}"
    assert cut(f"{opening}\na\n{closing}b").text == "b"
    assert cut(f"a{closing}b").text == "b"
    assert cut(f"{opening}\na").missing == "a thought that is not closed"
    assert cut(f"{opening}\na\n{closing}\n").missing == "nothing after the thought"
    assert cut(f"{opening}\na\n{closing}b", thoughts=None).text.startswith(opening)


@pytest.mark.parametrize(("opening", "closing"), list(zip(OPENINGS, CLOSINGS, strict=True)))
def test_marks_of_model_families(opening: str, closing: str) -> None:
    assert cut(f"{opening}\na\n{closing}b").text.strip() == "b"
    assert cut(f"{opening}\na").text == ""


@pytest.mark.parametrize(
    ("completion", "response"),
    [
        (f"<|channel|>analysis<|message|>a<|end|><|start|>assistant{FINAL}b<|return|>", "b"),
        ("<|start|>assistant<|channel|>analysis<|message|>a", ""),
        ("analysisWe add.assistantfinalb", "b"),
        ("<|begin_of_thought|>a<|end_of_thought|>\n<|begin_of_solution|>b<|end_of_solution|>", "b"),
        ("<think>a</think>b<think>c", "b<think>c"),
        ("<think>a</think>b\n<think>c</think>d", "d"),
        ("<think>a</think>b\n<think>c", ""),
        ("A tag <think> opens a thought.", "A tag <think> opens a thought."),
        ("[Analysis] It adds up.\n\nb", "[Analysis] It adds up.\n\nb"),
        ("I write `</think>` here.", "I write `</think>` here."),
        ('x.split("</think>")', 'x.split("</think>")'),
        ("```xml\n<analysis>\na\n</analysis>\n```\nb", "```xml\n<analysis>\na\n</analysis>\n```\nb"),
        ('<think>I said "a"</think>b', "b"),
        ("<think>see `a`</think>\nb", "\nb"),
        ("<think>\n```\na\n```</think>\nb", "\nb"),
        ("```\na\n```</think>b", "b"),
        ('<think>The tag "</think>" ends it.</think>b', "b"),
        ("```\nx\n</think>\n```python\nb\n```", "\n```python\nb\n```"),
    ],
)
def test_what_is_a_thought(completion: str, response: str) -> None:
    assert cut(completion).text == response


def test_a_setting_names_other_tags() -> None:
    assert cut("<plan>a</plan>b", thoughts=("plan",)).text == "b"
    assert cut("<think>a</think>b", thoughts=("plan",)).text == "<think>a</think>b"


ENDS = ["<|im_end|>", "<｜end▁of▁sentence｜>", "</s>", "<eos>", "<end_of_turn>", "<turn|>", "</s>\n<|endoftext|> "]


@pytest.mark.parametrize("end", ENDS)
def test_end_tokens_go_at_the_end_alone(end: str) -> None:
    assert without_end_tokens(f"42{end}") == "42"
    assert without_end_tokens(f"4{end}2") == f"4{end}2"


@pytest.mark.parametrize("completion", [5, None, b"42"])
def test_a_completion_is_a_string(completion: object) -> None:
    with pytest.raises(InvalidArgumentError, match="a completion must be a string, got"):
        cut(completion)  # type: ignore[arg-type]


def test_a_stop_string_ends_the_completion() -> None:
    assert cut("a\nQuestion: b", stop=("Question:", "\n\n")).text == "a\n"


@given(st.text(st.sampled_from("ab <>/|[]`\n"), max_size=40))
def test_a_text_without_thoughts_is_its_own_response(text: str) -> None:
    assert without_end_tokens(text).startswith(cut(text).text)


@pytest.mark.parametrize("text", ["```python\nprint('a<|im_end|>b')\n```", 'split("<|endoftext|>")', "a <eos> b"])
def test_marks_of_ends_within_a_response_stay(text: str) -> None:
    assert cut(text).text == text
