from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from verifiers.completion.explicit import boxed_answer, boxes, explicit_marks
from verifiers.completion.mark import EXPLICIT


def last_boxed(text: str) -> str | None:
    boxed = boxes(text)
    return boxed[-1][2] if boxed else None


@pytest.mark.parametrize(
    ("solution", "answer"),
    [
        (r"so it is $\boxed{5}$.", "5"),
        (r"$\boxed{x = \boxed{3}}$", r"x = \boxed{3}"),
        (r"the answer is \boxed 5.", "5"),
        (r"\boxed -5 is it", "-5"),
        (r"\fbox{12}", "12"),
        (r"$\boxed\frac12$", r"\frac12"),
    ],
)
def test_the_last_box(solution: str, answer: str) -> None:
    assert last_boxed(solution) == answer


@pytest.mark.parametrize(
    "solution",
    [
        r"\boxed",
        r"\boxed{}",
        r"\boxed{5",
        r"first \boxed{1}, then \boxed{2",
        r"\boxedname{5}",
        r"\boxed{\}",
        r"\boxed $",
    ],
)
def test_no_box_or_an_unfinished_one(solution: str) -> None:
    assert not last_boxed(solution)
    assert not boxed_answer(solution)


balanced = st.recursive(
    st.text(st.sampled_from("ab1+= ,$"), max_size=4) | st.sampled_from([r"\{", r"\}", r"\\", r"\pi ", r"\frac"]),
    lambda inner: st.lists(inner, max_size=3).map("".join) | inner.map(lambda text: "{" + text + "}"),
    max_leaves=12,
)


@given(balanced, balanced, balanced, st.sampled_from([r"\boxed", r"\fbox"]))
def test_whatever_is_balanced_comes_back_whole(before: str, content: str, after: str, box: str) -> None:
    solution = f"{before} {box}{{{content}}} {after}"
    assert last_boxed(solution) == content.strip()


@given(st.text(st.sampled_from("\\{}$ boxedf5"), max_size=40))
def test_any_text_gives_an_answer_or_none(solution: str) -> None:
    answer = last_boxed(solution)
    assert not answer or (answer in solution and answer == answer.strip())


@pytest.mark.parametrize(
    ("solution", "answer"),
    [
        (r"the answer is $\boxed{5}$.", "5"),
        (r"$x$ is $\boxed{3}$, $\boxed{4}$, or $\boxed{\frac{2}{5}}$.", r"3 or 4 or \frac{2}{5}"),
        (r"first $\boxed{1}$, and so the answer is $\boxed{2}$", "2"),
        (r"$\boxed{1}$ and $\boxed{}$", ""),
        (r"$\boxed{}$ and $\boxed{2}$", "2"),
        (r"no box", None),
    ],
)
def test_boxes_side_by_side_are_one_answer(solution: str, answer: str | None) -> None:
    assert boxed_answer(solution) == answer


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("<answer>3</answer> but $\\boxed{5}$", "5"),
        ("#### 3\nor <answer>5</answer>", "5"),
        ("####\n5", "5"),
        ("#### Check 2\nIt holds. <answer> 5 </answer>", "5"),
        ("#### 2. Verify\nIt holds.", None),
        ("<answer>3</answer> no <ANSWER>5", "5"),
        ("<answer>3</answer><ANSWER>5", "3, 5"),
        ('{"answer": "5"}', "5"),
        ('{"steps": [1], "final_answer": 5}', "5"),
        ("#### 5</answer>", "5"),
        ("\\boxed{5", ""),
        ("<answer></answer>", ""),
    ],
)
def test_the_last_mark_holds_the_answer(text: str, content: str | None) -> None:
    marks = explicit_marks(text, EXPLICIT)
    assert (marks[-1].contents[0] if marks else None) == content
