"""Completions composed from the pieces that the page "Where the answer stands" names, each with the outcome it demands.

A case is drawn in layers: a question, one spelling of its right or of a wrong value, markings around the value, a form that
states it, what stands before and behind that, a thought, an end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import permutations
from random import Random
from typing import Literal

from verifiers import Problem, Verifier, make

from . import pieces
from .pieces import VERIFIERS, WRAPPERS, Form, Layers, Question, wrapped

Expected = Literal["correct", "wrong", "no_answer"]
"""`wrong` is anything but correct."""
SHARE_OF_PLAIN = 0.25
FORMULAS = [wrapper for wrapper in WRAPPERS if wrapper.formula]
BOLD, TEXT = (next(wrapper for wrapper in WRAPPERS if wrapper.name == name) for name in ("**", "\\text"))
Fits = Callable[[Form], bool]


def any_form(form: Form) -> bool:
    """Every one, the completion that is nothing but the answer included."""
    return True


def marked(form: Form) -> bool:
    """Those of the ranks 1 and 2."""
    return form.rank < 3


def closed(form: Form) -> bool:
    """Those of the ranks 1 and 2 behind which more can stand."""
    return form.rank < 3 and not form.last


@dataclass(frozen=True, slots=True)
class Mark:
    """One statement of a value."""

    value: str
    form: Form
    layers: Layers = ()
    tail: str = ""
    line: str = ""
    outer: Layers = ()

    def text(self, layers: Layers | None = None) -> str:
        """The statement, with these markings around the value, or its own."""
        stated = self.form(wrapped(self.value, self.layers if layers is None else layers))
        if self.tail:
            stated = stated.removesuffix(".") + self.tail
        return self.line + wrapped(stated, self.outer)


@dataclass(frozen=True, slots=True)
class Draft:
    """A response, before a thought or an end token is put around it."""

    scenario: str
    mark: Mark | None
    before: str = ""
    after: str = ""
    expected: Expected = "wrong"
    open: bool = False
    """Whether it breaks off, so that neither a fence nor an end token can be put behind it."""

    def text(self, layers: Layers) -> str:
        """The response, with these markings around the value of its mark."""
        return self.before + (self.mark.text(layers) if self.mark else "") + self.after


@dataclass(frozen=True, slots=True)
class Case:
    """A completion, and what a verifier has to make of it."""

    verifier: str
    completion: str
    problem: Problem
    expected: Expected
    layers: Layers = ()
    rendered: Callable[[Layers], str] = field(default=str, repr=False, compare=False)


def rewrapped(case: Case) -> Iterator[Case]:
    """The case with its wrappers in every other order, and with each of them put on twice: its outcome is the same."""
    for layers in permutations(case.layers):
        if layers != case.layers:
            yield replace(case, completion=case.rendered(layers))
    for i in range(len(case.layers)):
        yield replace(case, completion=case.rendered((*case.layers[: i + 1], *case.layers[i:])))


@cache
def _forms_of(verifier: str, value: str) -> tuple[Form, ...]:
    return tuple(form for form in pieces.FORMS if form.fits(verifier, value))


class _Composer:
    """Draws the pieces for one question."""

    def __init__(self, rng: Random, question: Question, right: bool) -> None:
        self.rng, self.question = rng, question
        self.right, self.wrong = rng.choice(question.right), rng.choice(question.wrong)
        self.value, self.other = (self.right, self.wrong) if right else (self.wrong, self.right)

    def _form(self, value: str, fits: Fits) -> Form:
        forms = [form for form in _forms_of(self.question.verifier, value) if fits(form)]
        family = self.rng.choice(sorted({form.family for form in forms}))
        return self.rng.choice([form for form in forms if form.family == family])

    def _layers(self, value: str, form: Form) -> Layers:
        """Up to three markings, of which one makes a formula; one does where a sign `=` could be read as a verb."""
        if form.verbatim:
            return ()
        pool = [w for w in WRAPPERS if w.fits(value) and not (w.formula and form.formula)]
        layers = self.rng.sample(pool, self.rng.choices(range(4), (35, 35, 20, 10))[0])
        layers = [w for i, w in enumerate(layers) if not (w.formula and any(v.formula for v in layers[:i]))]
        if form.rank == 2 and self.question.verifier == "math" and "=" in value and not any(w.formula for w in layers):
            layers = [*(self.rng.sample(FORMULAS, 1) if not form.formula else ()), *layers]
        return tuple(layers)

    def _plain_layers(self, value: str, form: Form) -> Layers:
        """None, or the one that is usual for such a value: a formula for TeX, bold or a formula for the rest."""
        math, tex = self.question.verifier == "math", "\\" in value
        word = (not tex and bool(re.search(r"[A-Za-z]{2}", value))) or self.question.verifier == "choice"
        inside = form.formula or form.family in ("box", "json", "tag") or form.verbatim
        if inside:
            return (TEXT,) if word and form.family == "box" and not form.verbatim and self.rng.random() < 0.5 else ()
        if not word and (tex or (math and re.search(r"[\^=]", value)) or self.rng.random() < 0.35):
            return (self.rng.choice([w for w in FORMULAS if w.fits(value)] or [BOLD]),)
        return (BOLD,) if self.rng.random() < 0.35 and form.family != "hashes" and "**" not in form.template else ()

    def mark(self, value: str, fits: Fits = marked, other: str = "") -> Mark:
        """A statement of the value in one of the forms; with a tail or a line mark only where it is the only one."""
        form = self._form(value, fits)
        mark = Mark(value, form, self._layers(value, form))
        if form.family in ("sentence", "choosing", "confirming", "result") and "\n" not in form.template:
            if form.template.endswith("@.") and other:
                mark = replace(mark, tail=self.rng.choice(pieces.TAILS).replace("¤", other))
            if other and self.rng.random() < 0.1:
                mark = replace(mark, line=self.rng.choice(pieces.LINE_MARKS))
            if self.rng.random() < 0.15:
                mark = replace(mark, outer=(self.rng.choice([w for w in pieces.OUTER if w.fits(mark.text())]),))
        return mark

    def marks(self, first: str, second: str, fits: Callable[[Form, Form], bool]) -> tuple[Mark, Mark]:
        """Two statements whose forms fit each other."""
        while True:
            marks = self.mark(first, closed), self.mark(second)
            if fits(marks[0].form, marks[1].form):
                return marks

    def neutral(self, texts: Sequence[str]) -> str:
        """Nothing, or one of these texts."""
        return self.rng.choice(texts).replace("¤", self.other) if self.rng.random() < 0.5 else ""

    def after(self, mark: Mark) -> str:
        """What may stand behind a mark."""
        return "" if mark.form.last else self.neutral(pieces.AFTER)

    def bridge(self) -> str:
        """A paragraph between two marks."""
        return f"\n\n{self.rng.choice(pieces.BRIDGES)}\n\n"

    def plain(self) -> Draft:
        """A single value in a single usual form."""
        form = self._form(self.value, lambda form: form.usual)
        return Draft("plain", Mark(self.value, form, self._plain_layers(self.value, form)))

    # What is settled: the value is the answer, and `other` is not.

    def stated(self) -> Draft:
        """One mark, with or without text around it."""
        mark = self.mark(self.value, any_form, self.other)
        before = "" if mark.form.rank == 4 else self.neutral(pieces.BEFORE)
        return Draft("stated", mark, before and f"{before}\n\n", self.after(mark))

    def superseded(self) -> Draft:
        """Another mark before, of the same rank or a worse one."""
        first, mark = self.marks(self.other, self.value, lambda a, b: a.rank >= b.rank and not b.weak)
        return Draft("superseded", mark, first.text() + self.bridge(), self.after(mark))

    def corrected(self) -> Draft:
        """Another mark, a correction, and the answer."""
        first, mark = self.marks(self.other, self.value, lambda a, b: not b.weak)
        joint = f"\n\n{self.rng.choice(pieces.CORRECTED)}\n\n"
        if self.rng.random() < 0.3:
            form = self.rng.choice(pieces.CORRECTIONS_IN_LINE)
            mark, joint = Mark(self.value, form, self._layers(self.value, form)), "\n\n"
        return Draft("corrected", mark, first.text() + joint, self.after(mark))

    def repeated(self) -> Draft:
        """The same answer twice."""
        value = self.value
        if self.question.verifier == "choice" and value == self.right:
            value = self.rng.choice(self.question.right)
        mark, second = self.marks(
            self.value, value, lambda a, b: a.template != b.template and not a.weak and not b.weak
        )
        return Draft("repeated", mark, "", self.bridge() + second.text())

    def confirmed(self) -> Draft:
        """A correction that takes nothing back."""
        mark, text = self.mark(self.value, closed), self.rng.choice(pieces.CONFIRMED)
        return Draft("confirmed", mark, "", f"\n\n{text}")

    def beside_none(self) -> Draft:
        """Beside a mark that is denied, asked, supposed or, for a choice, no answer."""
        mark, behind = self.mark(self.value, lambda form: form.rank < 3 and not form.weak), self.rng.random() < 0.4
        pool = [*pieces.NONES, *([] if behind else pieces.NONES_BEFORE)]
        if self.question.verifier == "choice":
            letter = bool(re.fullmatch(r"\(?[A-E]\)?", self.other))
            pool += ["The sum is $\\boxed{391}$.", *(["@ is not correct."] if letter else [])]
        text = self.rng.choice(pool).replace("@", self.other)
        if behind and not mark.form.last:
            return Draft("beside none", mark, "", self.bridge() + text)
        return Draft("beside none", mark, text + self.bridge(), self.after(mark))

    def listed(self) -> Draft | None:
        """Marks that are one list, where the answer is a list, or else a wrong one."""
        template = self.rng.choice(pieces.LISTS)
        pair = self.question.parts if self.value == self.right else self.rng.sample([self.right, self.wrong], 2)
        return Draft("listed", None, template.replace("@", pair[0]).replace("¤", pair[1])) if pair else None

    # What is not settled, or settled otherwise.

    def contradicted(self) -> Draft:
        """Behind the mark, another one of a worse rank without a correction."""
        pair = self.rng.sample([self.right, self.wrong], 2)
        mark, second = self.marks(pair[0], pair[1], lambda a, b: a.rank < b.rank and not b.weak)
        return Draft("contradicted", mark, "", self.bridge() + second.text())

    def offered(self) -> Draft:
        """A second value behind the answer."""
        pair = self.rng.sample([self.right, self.wrong], 2)
        mark = self.mark(pair[0], lambda form: closed(form) and "hope" not in form.template)
        text, stated = self.rng.choice(pieces.ALTERNATIVES), mark.text()
        paragraph = mark.form.family in ("json", "tag") or "\n" in stated
        joint = "\n\n" if paragraph else " " if re.search(r"\.\W*(?:</\w+>\W*)*\Z", stated) else ". "
        return Draft("offered", mark, "", joint + text.replace("@", pair[1]))

    def several(self) -> Draft | None:
        """One mark with more than one value, or with a part of an expression."""
        values = self.question.several
        return Draft("several", self.mark(self.rng.choice(values))) if values else None

    def taken_back(self) -> Draft:
        """A correction with nothing behind it."""
        mark, text = self.mark(self.right, closed), self.rng.choice(pieces.TAKEN_BACK)
        return Draft("taken back", mark, "", f"\n\n{text}", "no_answer")

    def cut_off(self) -> Draft:
        """The last mark of the best rank is empty or breaks off."""
        mark, text = self.mark(self.right, closed), self.rng.choice(pieces.CUT_OFF)
        ends = text in (r"$\boxed{}$", "<answer></answer>")
        return Draft("cut off", mark, "", self.bridge() + text.replace("@", self.right), "no_answer", open=not ends)

    def denied(self) -> Draft:
        """The right value in nothing but a mark that is none."""
        numeric = self.question.verifier == "numeric"
        text = self.rng.choice(pieces.NEGATED[:1] if numeric else (*pieces.NONES, *pieces.NONES_BEFORE))
        return Draft("denied", None, text.replace("@", self.right))

    def items(self) -> Draft:
        """Items of a list that begin with phrases whose answers differ."""
        pair, text = self.rng.sample([self.right, self.wrong], 2), self.rng.choice(pieces.ITEMS)
        return Draft("items", None, text.replace("@", pair[0]).replace("¤", pair[1]))

    def fenced(self) -> Draft | None:
        """The right value in nothing but fenced code, with text around it."""
        mark = self.mark(
            self.right, lambda form: form.rank < 3 and form.family != "json" and "```" not in form.template
        )
        if self.question.verifier == "numeric":
            return None
        after = "\n```\n\nThe code above shows how the text will look."
        return Draft("fenced", mark, "Here is a template for the text:\n\n```\n", after, "no_answer")

    def only_thought(self) -> Draft:
        """The right value in a thought that is not closed, or has nothing behind it."""
        (opening, closing), mark = self.rng.choice(pieces.THOUGHTS), self.mark(self.right)
        ends = self.rng.random() < 0.5 and not mark.form.last
        return Draft("only thought", mark, f"{opening}\n", f"\n{closing}" if ends else "", "no_answer", open=not ends)

    def declined(self) -> Draft:
        """A refusal."""
        return Draft("declined", None, self.rng.choice(pieces.REFUSALS), "", "no_answer")

    def broken_off(self) -> Draft:
        """A completion that ends before it says anything."""
        return Draft("broken off", None, self.rng.choice(pieces.FRAGMENTS), "", "no_answer", open=True)


SETTLED: tuple[tuple[int, Callable[[_Composer], Draft | None]], ...] = (
    (8, _Composer.stated),
    (3, _Composer.superseded),
    (3, _Composer.corrected),
    (2, _Composer.repeated),
    (2, _Composer.confirmed),
    (3, _Composer.beside_none),
    (1, _Composer.listed),
)
UNSETTLED: tuple[tuple[int, Callable[[_Composer], Draft | None]], ...] = (
    (3, _Composer.contradicted),
    (3, _Composer.offered),
    (5, _Composer.several),
    (3, _Composer.taken_back),
    (3, _Composer.cut_off),
    (2, _Composer.denied),
    (1, _Composer.items),
    (1, _Composer.fenced),
    (3, _Composer.only_thought),
    (2, _Composer.declined),
    (2, _Composer.broken_off),
)


def _surroundings(rng: Random, draft: Draft, decoy: str) -> Callable[[str], str]:
    """What puts a thought, a fence and an end token around a response, each of them or not."""
    before, after = "", ""
    response = draft.text(draft.mark.layers if draft.mark else ())
    is_open = draft.open or response.rfind("<answer>") > response.rfind("</answer>")
    if "```" not in response and not is_open and draft.scenario != "only thought" and rng.random() < 0.08:
        before, after = ("```json\n", "\n```") if response.startswith("{") else rng.choice(pieces.FENCES)
    if draft.scenario != "only thought" and rng.random() < 0.4:
        (opening, closing), text = rng.choice(pieces.THOUGHTS), rng.choice(pieces.THOUGHT_TEXTS)
        opened = f"{opening}\n" if closing == pieces.FINAL or rng.random() < 0.8 or "`" in text else ""
        before = f"{opened}{text.replace('¤', decoy)}\n{closing}{rng.choice(['', chr(10), chr(10) * 2])}{before}"
    if not is_open and rng.random() < 0.3:
        after += rng.choice(pieces.ENDS)
    return lambda text: f"{before}{text}{after}"


def _case(rng: Random, question: Question, right: bool, plain: bool) -> Case | None:
    composer = _Composer(rng, question, right)
    settled = right or plain or rng.random() < 0.45
    weights, scenarios = zip(*(SETTLED if settled else UNSETTLED), strict=True)
    draft = composer.plain() if plain else rng.choices(scenarios, weights)[0](composer)
    if draft is None:
        return None
    around = str if plain else _surroundings(rng, draft, composer.other if settled else composer.right)

    def rendered(layers: Layers) -> str:
        return around(draft.text(layers))

    layers = draft.mark.layers if draft.mark else ()
    expected: Expected = "correct" if right else draft.expected
    return Case(question.verifier, rendered(layers), question.problem, expected, layers, rendered)


def _ambiguous(case: Case) -> bool:
    """Whether a sign of currency in it can be taken for the start of a formula."""
    return (
        bool(re.search(r"(?<!\\)\$(105|150)\b", case.completion)) and len(re.findall(r"(?<!\\)\$", case.completion)) > 1
    )


def cases(seed: int, count: int) -> Iterator[Case]:
    """As many cases as asked for, the same for the same seed: every verifier in turn, right and not right in turn."""
    rng, made = Random(seed), 0
    while made < count:
        verifier, right = VERIFIERS[made % len(VERIFIERS)], made // len(VERIFIERS) % 2 == 0
        case = _case(rng, rng.choice(pieces.QUESTIONS[verifier]), right, rng.random() < SHARE_OF_PLAIN)
        if case is not None and not _ambiguous(case):
            yield case
            made += 1


JUDGES: dict[str, Verifier] = {name: make(name) for name in VERIFIERS}


def judged(case: Case) -> str:
    """The outcome of the verifier of a case, an exception included, which is an outcome of its own."""
    try:
        return JUDGES[case.verifier](case.completion, case.problem).outcome.value
    except Exception as error:  # noqa: BLE001 - whatever it is, the test names it and goes on
        return f"raised {error!r}"
