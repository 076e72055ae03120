"""Several values, points, matrices, sets of numbers, families, words and choices."""

from __future__ import annotations

import random
from collections.abc import Iterable
from fractions import Fraction

from verifiers.audit.subjects.drawn import Drawn, not_zero, quadratic, subject, without_square
from verifiers.audit.writing import latex_fraction, terminating_decimal


def _other(gold: Iterable[object], answers: dict[str, Iterable[object]]) -> tuple[str, ...]:
    """The answers whose elements differ from the gold's elements."""
    return tuple(text for text, elements in answers.items() if set(elements) != set(gold))


# Several values


@subject
def _set_of_roots(rng: random.Random) -> Drawn:
    a, b, other = sorted(rng.sample(range(-12, 13), 3))
    right = (
        f"{b}, {a}",
        f"\\{{{a}, {b}\\}}",
        f"\\{{{b},{a}\\}}",
        f"x={a}, x={b}",
        f"x={a} \\text{{ or }} x={b}",
        f"{a} \\text{{ and }} {b}",
        f"x_1={a}, x_2={b}",
        f"x = {b}, {a}",
        f"x\\in\\{{{a}, {b}\\}}",
        f"x={a} \\lor x={b}",
        f"{a} \\text{{ or }} {b}",
        f"\\left\\{{{a},\\ {b}\\right\\}}",
    )
    texts = {f"{one}, {two}": (one, two) for one, two in ((-a, -b), (a, -b), (a, other), (a + 1, b), (a, a))}
    wrong = _other((a, b), {**texts, f"{a}": (a,), f"{b}": (b,), f"{a}, {b}, {other}": (a, b, other)})
    prompt = f"Solve ${quadratic(1, -a - b, a * b)}=0$."
    return Drawn(prompt, f"{a}, {b}", right, wrong, single=False)


@subject
def _conjugate_roots(rng: random.Random) -> Drawn:
    p, q = not_zero(rng, 9), without_square(rng, 30)
    root = f"\\sqrt{{{q}}}"
    right = (
        f"{p}\\pm{root}",
        f"{p}-{root}, {p}+{root}",
        f"\\{{{p}-{root}, {p}+{root}\\}}",
        f"x={p}\\pm {root}",
        f"x={p}+{root} \\text{{ or }} x={p}-{root}",
        f"\\frac{{{2 * p}\\pm\\sqrt{{{4 * q}}}}}{{2}}",
        f"x_{{1,2}}={p}\\pm{root}",
    )
    wrong = (
        f"{p}+{root}",
        f"{-p}\\pm{root}",
        f"{p}\\pm\\sqrt{{{q + 1}}}",
        f"{p}+{root}, {-p}-{root}",
        f"{p}\\pm {q}",
        f"\\pm{root}",
    )
    prompt = f"Solve ${quadratic(1, -2 * p, p * p - q)}=0$."
    return Drawn(prompt, f"{p}+{root}, {p}-{root}", right, wrong, single=False)


@subject
def _point(rng: random.Random) -> Drawn:
    a, b, c, d = (rng.randint(-9, 9) for _ in range(4))
    x, y = Fraction(a + c, 2), Fraction(b + d, 2)
    if x == y:
        y += 1
        d += 2
    one, two = latex_fraction(x), latex_fraction(y)
    right = (
        f"\\left({one}, {two}\\right)",
        f"({terminating_decimal(x)},{terminating_decimal(y)})",
        f"({one},\\ {two})",
        f"({one};{two})",
        f"\\left({one},{two}\\right)",
        f"M = ({one}, {two})",
    )
    wrong = (
        f"({two}, {one})",
        f"({latex_fraction(x + 1)}, {two})",
        f"({one}, {latex_fraction(y - 1)})",
        f"({one}, {two}, 0)",
        *((f"({latex_fraction(-x)}, {two})",) if x else ()),
    )
    prompt = f"What is the midpoint of $({a},{b})$ and $({c},{d})$?"
    return Drawn(prompt, f"({one}, {two})", right, wrong, single=False)


@subject
def _matrix(rng: random.Random) -> Drawn:
    factor, (a, b, c, d) = rng.randint(2, 5), rng.sample([n for n in range(-6, 7) if n], 4)

    def written(entries: Iterable[int], brackets: str = "pmatrix") -> str:
        p, q, r, s = entries
        return f"\\begin{{{brackets}}} {p} & {q} \\\\ {r} & {s} \\end{{{brackets}}}"

    gold = [factor * n for n in (a, b, c, d)]
    changed = [[*gold[:at], gold[at] + 1, *gold[at + 1 :]] for at in range(4)]
    left, end = "\\left[\\begin{array}{cc}", "\\end{array}\\right]"
    array = f"{left} {gold[0]} & {gold[1]} \\\\ {gold[2]} & {gold[3]} {end}"
    right = (array, written(gold, "bmatrix"), written(gold).replace(" ", "").replace("\\\\", "\\\\ "))
    wrong = (*map(written, changed), written([gold[0], gold[2], gold[1], gold[3]]), written([-n for n in gold]))
    prompt = f"What is ${factor}A$ for $A={written((a, b, c, d))}$?"
    return Drawn(prompt, written(gold), right, wrong, single=False)


# Sets of numbers


@subject
def _interval(rng: random.Random) -> Drawn:
    low, high = sorted(rng.sample(range(-15, 16), 2))
    right = (
        f"{low}\\le x<{high}",
        f"x\\in[{low},{high})",
        f"\\left[{low}, {high}\\right)",
        f"\\{{x\\mid {low}\\le x<{high}\\}}",
        f"{low}\\leq x<{high}",
        f"\\{{x\\in\\mathbb{{R}} : {low}\\le x<{high}\\}}",
        f"x\\ge {low} \\text{{ and }} x<{high}",
        f"{high}>x\\ge {low}",
        f"{low} \\leqslant x < {high}",
    )
    wrong = (
        f"({low},{high})",
        f"[{low},{high}]",
        f"({low},{high}]",
        f"[{low},{high + 1})",
        f"{low}<x<{high}",
        f"{low}\\le x\\le {high}",
        f"[{low},\\infty)",
    )
    prompt = f"Which real $x$ are at least ${low}$ and below ${high}$?"
    return Drawn(prompt, f"[{low},{high})", right, wrong, single=False)


@subject
def _union(rng: random.Random) -> Drawn:
    low, high = sorted(rng.sample(range(-15, 16), 2))
    right = (
        f"({high},\\infty)\\cup(-\\infty,{low})",
        f"x<{low}\\text{{ or }}x>{high}",
        f"x\\in(-\\infty,{low})\\cup({high},\\infty)",
        f"\\left(-\\infty, {low}\\right) \\cup \\left({high}, \\infty\\right)",
        f"(-\\infty,{low})\\cup({high},+\\infty)",
        f"\\mathbb{{R}}\\setminus[{low},{high}]",
        f"\\{{x\\in\\mathbb{{R}}\\mid x<{low}\\text{{ or }}x>{high}\\}}",
        f"x>{high} \\text{{ or }} x<{low}",
        f"x<{low} \\lor x>{high}",
        f"\\{{x : x<{low}\\}}\\cup\\{{x : x>{high}\\}}",
    )
    wrong = (
        f"(-\\infty,{low}]\\cup[{high},\\infty)",
        f"(-\\infty,{low})",
        f"({high},\\infty)",
        f"({low},{high})",
        f"(-\\infty,{low})\\cup({high + 1},\\infty)",
        f"(-\\infty,{low})\\cup[{high},\\infty)",
    )
    prompt = f"For which real $x$ is ${quadratic(1, -low - high, low * high)}>0$?"
    return Drawn(prompt, f"(-\\infty,{low})\\cup({high},\\infty)", right, wrong, single=False)


@subject
def _family(rng: random.Random) -> Drawn:
    k = rng.choice([3, 4, 5, 6, 8, 12])
    of = "\\in\\mathbb{Z}"
    right = (
        f"x=\\frac{{\\pi}}{{{k}}}+k\\pi, k{of}",
        f"x=n\\pi+\\frac{{\\pi}}{{{k}}}, n{of}",
        f"x=\\frac{{{1 + k}\\pi}}{{{k}}}+n\\pi, n{of}",
        f"x=\\frac{{\\pi}}{{{k}}}-n\\pi, n{of}",
        f"x=\\frac{{\\pi}}{{{k}}}+\\pi m, m{of}",
        f"x=\\frac{{\\pi}}{{{k}}}+n\\pi \\text{{ for }} n{of}",
        f"\\left\\{{\\frac{{\\pi}}{{{k}}}+n\\pi : n{of}\\right\\}}",
        f"x=\\frac{{\\pi}}{{{k}}}+n\\pi \\quad (n{of})",
        f"x=\\frac{{\\pi}}{{{k}}}+n\\pi, \\text{{ where }} n \\text{{ is an integer}}",
        f"x=\\frac{{(1+{k}n)\\pi}}{{{k}}}, n{of}",
    )
    wrong = (
        f"x=\\frac{{\\pi}}{{{k}}}+2n\\pi, n{of}",
        f"x=\\frac{{\\pi}}{{{k}}}",
        f"x=\\frac{{\\pi}}{{{k + 1}}}+n\\pi, n{of}",
        f"x=\\frac{{2\\pi}}{{{k}}}+n\\pi, n{of}",
        f"x=\\frac{{\\pi}}{{{k}}}+\\frac{{n\\pi}}{{2}}, n{of}",
    )
    prompt = f"Give all real $x$ with $\\tan x=\\tan\\frac{{\\pi}}{{{k}}}$."
    return Drawn(prompt, f"x=\\frac{{\\pi}}{{{k}}}+n\\pi, n{of}", right, wrong, single=False)


# Words

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@subject
def _word(rng: random.Random) -> Drawn:
    start, days = rng.randrange(7), rng.randint(8, 60)
    gold, *others = (_DAYS[(start + days + k) % 7] for k in range(7))
    right = (
        gold,
        f"\\textbf{{{gold}}}",
        f"\\mathrm{{{gold}}}",
        f"\\text{{ {gold} }}",
        f"\\text{{{gold}.}}",
        f"\\text{{a {gold}}}",
    )
    wrong = (f"\\text{{{others[0]}}}", others[-1], f"\\text{{not {gold}}}", f"\\text{{{others[2]}}}")
    return Drawn(f"Which day is {days} days after a {_DAYS[start]}?", f"\\text{{{gold}}}", right, wrong)


@subject
def _choice(rng: random.Random) -> Drawn:
    base, options = rng.randint(11, 99), rng.sample(range(-9, 10), 4)
    value = base * base
    options[rng.randrange(4)] = 0
    if options.count(0) > 1:
        options = [0, 1, 2, 3]
    letters = dict(zip("ABCD", options, strict=True))
    gold, *others = sorted(letters, key=lambda letter: bool(letters[letter]))
    listed = "\n".join(f"({letter}) {value + by}" for letter, by in letters.items())
    right = (
        f"({gold})",
        f"\\text{{{gold}}}",
        f"\\textbf{{({gold})}}",
        f"\\text{{({gold})}}",
        f"\\text{{{gold}.}}",
        f"\\mathbf{{{gold}}}",
        f"\\text{{({gold}) }} {value}",
        f"\\text{{{gold}) {value}}}",
    )
    wrong = (others[0], f"({others[1]})", f"\\text{{{others[2]}}}", f"\\text{{not {gold}}}")
    return Drawn(f"What is the square of {base}?\n{listed}", gold, right, wrong)
