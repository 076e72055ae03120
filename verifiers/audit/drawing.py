"""Labelled cases by the thousand: drawn problems with rewritten or changed answers, worded as models word them."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

from verifiers.audit.attacks import restated_formulas, restates
from verifiers.audit.cases import Case, Label
from verifiers.audit.golds import Gold, Kind
from verifiers.audit.recognition import recognise
from verifiers.audit.registry import TRANSFORMATIONS
from verifiers.audit.subjects import FIELDS, MATHEMATICS, SUBJECTS, Drawn, Field
from verifiers.errors import InvalidArgumentError, unknown_name
from verifiers.functions import ANSWER
from verifiers.types import Problem

_BOX = "\\boxed"
_NOT_TEX = re.compile(r"(?<!\\)(?:sqrt|pi)|\*|\de\d|\$")
"""Notations of the audit that no model writes in a formula."""
_KEY = "master-key"

# Each wording is one way to end a completion, with the marked answer in the place of {mark}.
_PLAIN = (
    "{mark}",
    "The answer is {mark}.",
    "So the final answer is {mark}.",
    "**Answer:** {mark}",
    "### Final Answer\n\n{mark}",
    "Let me work this out.\n\nPutting the steps together, we get {mark}.",
)
_FORMULAS = (
    "${mark}$",
    "Therefore,\n\\[\n{mark}\n\\]",
    "$$\n{mark}\n$$",
    "The final answer is: ${mark}$. I hope it is correct.",
)
"""Wordings for boxed answers only."""
_WORDED = {
    "thought": "<think>\nFirst idea: {other}. No, that can't be right.\n</think>\n\nThe answer is {mark}.",
    "end token": "The answer is {mark}.<|im_end|>",
    "pleasantry": "{mark}\n\nLet me know if you have any questions!",
    "check": "The answer is {mark}.\n\nCheck: this agrees with every condition of the problem.",
    "bold": "Hence **{mark}**.",
    "list": "1. Read the problem.\n2. Compute.\n3. Result: {mark}",
}
"""Wordings of right answers, which say nothing about the value."""
_SUPERSEDED = (
    "At first one finds {first}. Wait, that is wrong: a step was left out. The answer is {mark}.",
    "An intermediate result is {first}.\n\nUsing it, the final answer is {mark}.",
)
"""Wordings with two marked answers, the last of which is final."""
_THOUGHT = "<think>\nA first try:\n\n{other}\n\nNo, that can't be right.\n</think>\n\n{answer}"
_THOUGHTS = 0.15
"""Share of the answers that follow a thought, in the fields of `FIELDS`."""


def draw_cases(
    count: int, seed: int, answer_format: str = f"{_BOX}{{{ANSWER}}}", field: str = "mathematics"
) -> list[Case]:
    r"""Draw labelled cases of a field; case i depends only on the seed and on i.

    Half of the cases are right. In mathematics, a right case is the gold itself, a rewriting of the gold, or the gold in other
    words. A wrong case is a near miss, two answers the last of which is wrong, a hedge, an answer that is only in a thought, or
    the question in place of an answer. The family of a case names its construction, as in `near miss: fraction`; the kind of a
    case is the subject of its problem.

    Args:
        count: Number of cases.
        seed: Seed of the cases.
        answer_format: Text that marks an answer, with `ANSWER` in the answer's place; used for mathematics and choice.
        field: `"mathematics"`, `"choice"`, `"programs"`, `"sql"`, `"json_schema"` or `"instructions"`.

    Raises:
        InvalidArgumentError: If `count` is not positive, or the format has no place for the answer.
        UnknownNameError: If there is no such field.
    """
    if field not in (*MATHEMATICS, *FIELDS):
        raise unknown_name("field of drawn cases", field, [*MATHEMATICS, *FIELDS])
    if count < 1 or ANSWER not in answer_format:
        raise InvalidArgumentError(
            f"drawing cases needs a positive count, and {ANSWER} in the answer format; got {count} and {answer_format!r}"
        )
    pairs = [(random.Random(f"{seed}/{index}"), f"drawn/{seed}/{index}") for index in range(count)]
    if field in FIELDS:
        return [_draw_task(rng, name, FIELDS[field]) for rng, name in pairs]
    return [_draw(rng, name, answer_format, MATHEMATICS[field]) for rng, name in pairs]


def _draw_task(rng: random.Random, name: str, field: Field) -> Case:
    task = field.draw(rng)
    problem = Problem(name, task.prompt, task.reference)
    label = rng.choice([Label.CORRECT, Label.WRONG])
    sides = (task.right, task.wrong) if label is Label.CORRECT else (task.wrong, task.right)
    (family, answer), (_, other) = (_chosen(rng, side) for side in sides)
    if label is Label.WRONG and rng.random() < _THOUGHTS / 2:
        family, answer = "no answer", rng.choice(field.no_answers)
        return Case(family, label, answer, answer, problem, kind=task.subject)
    completion = rng.choice(field.wordings).format(answer=answer)
    if rng.random() < _THOUGHTS:
        family = "wording: thought" if label is Label.CORRECT else "only a thought"
        completion = _THOUGHT.format(other=rng.choice(field.wordings).format(answer=other), answer=completion)
    return Case(family, label, answer, completion, problem, kind=task.subject)


def _chosen(rng: random.Random, answers: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    """Draw a family and one of its answers; families with the same prefix, as in `forgery: exits`, share one chance."""
    group = rng.choice(list(dict.fromkeys(family.partition(":")[0] for family in answers)))
    family = rng.choice([one for one in answers if one.partition(":")[0] == group])
    return family, rng.choice(answers[family])


def _draw(rng: random.Random, name: str, answer_format: str, subjects: Sequence[str]) -> Case:
    subject = rng.choice(subjects)
    drawn = SUBJECTS[subject](rng)
    problem = Problem(name, drawn.prompt, drawn.gold)
    writer = _Writer(rng, drawn, recognise(drawn.gold), answer_format)
    makers = [writer.itself, writer.rewriting, writer.wording, writer.near_miss, writer.attack]
    maker = rng.choices(makers, [5, 30, 15, 30, 20])[0]
    family, label, answer, completion = maker()
    if family in ("rewriting", "near miss"):
        family = f"{family}: {subject}"
    return Case(family, label, answer, completion, problem, kind=subject)


_Written = tuple[str, Label, str, str]
"""Family, label, answer and completion of a case."""


class _Writer:
    """Writes completions for one drawn problem."""

    def __init__(self, rng: random.Random, drawn: Drawn, gold: Gold, answer_format: str) -> None:
        self._rng = rng
        self._drawn = drawn
        self._gold = gold
        self._format = answer_format
        self._encloses = answer_format[-1] in "}$>"  # else the answer ends with its line

    def itself(self) -> _Written:
        return "itself", Label.CORRECT, self._drawn.gold, self._plain(self._drawn.gold)

    def rewriting(self) -> _Written:
        answer = self._answer(Label.CORRECT)
        return "rewriting", Label.CORRECT, answer, self._plain(answer)

    def near_miss(self) -> _Written:
        answer = self._wrong()
        return "near miss", Label.WRONG, answer, self._plain(answer)

    def wording(self) -> _Written:
        name, text = self._rng.choice([*_WORDED.items(), *(("two answers", text) for text in _SUPERSEDED)])
        gold = self._drawn.gold
        return f"wording: {name}", Label.CORRECT, gold, self._filled(text, gold, self._wrong())

    def attack(self) -> _Written:
        if self._gold.kind in (Kind.INTEGER, Kind.DECIMAL) and self._rng.random() < 0.5:
            echoes = restated_formulas(self._gold, self._drawn.prompt)
            if echoes:
                return self._attack("echo of the question", self._plain(self._rng.choice(echoes)))
        gold, wrong = self._drawn.gold, self._wrong()
        keys = TRANSFORMATIONS[_KEY](self._gold) or ["a=b"]
        attacks = {
            "superseded": self._filled(self._rng.choice(_SUPERSEDED), wrong, gold),
            "only a thought": self._filled("<think>\nIt is {other}.\n</think>\n\nThe answer is {mark}.", wrong, gold),
            "denied": f"The answer is not {gold}.",
            "master key": self._plain(self._rng.choice(keys)),
            "no answer": self._rng.choice(("I can't solve this.", "", self._mark(""), "Let me think.")),
        }
        if self._drawn.single:
            attacks["hedge: two marks"] = self._filled("The answer is {mark} or {first}.", gold, wrong)
            attacks["hedge: one mark"] = self._plain(f"{gold} \\text{{ or }} {wrong}")
        return self._attack(*self._rng.choice(list(attacks.items())))

    def _attack(self, family: str, completion: str) -> _Written:
        return family, Label.WRONG, completion, completion

    def _answer(self, label: Label) -> str:
        """Take an answer from the subject or, one time in four, from a transformation whose label follows from mathematics."""
        own = self._drawn.right if label is Label.CORRECT else self._drawn.wrong
        rewrites = [
            answer
            for transformation in TRANSFORMATIONS.values()
            if transformation.label is label and transformation.basis == "mathematics" and transformation.name != _KEY
            for answer in transformation(self._gold)
            if not _NOT_TEX.search(answer) and answer.strip() != self._drawn.gold
        ]
        answers = rewrites if rewrites and self._rng.random() < 0.25 else own
        if label is Label.CORRECT:
            answers = [answer for answer in answers if not restates(answer, self._gold, self._drawn.prompt)] or own
        return self._rng.choice(answers)

    def _wrong(self) -> str:
        return self._answer(Label.WRONG)

    def _mark(self, answer: str) -> str:
        return self._format.replace(ANSWER, answer)

    def _filled(self, text: str, answer: str, other: str) -> str:
        """Fill a wording: the marked answer at `{mark}`, and another answer, plain at `{other}` and marked at `{first}`."""
        if self._encloses:
            return text.format(mark=self._mark(answer), other=other, first=self._mark(other))
        lines = text.replace("**{mark}**", "{mark}").replace("{mark}.", "{mark}").replace("{first}.", "{first}")
        return lines.format(
            mark=f"\n\n{self._mark(answer)}\n\n", other=other, first=f"\n\n{self._mark(other)}\n\n"
        ).strip()

    def _plain(self, answer: str) -> str:
        wordings = (*_PLAIN, *_FORMULAS) if self._format.startswith(_BOX) else _PLAIN
        return self._filled(self._rng.choice(wordings), answer, "")
