"""Four competition problems with worked solutions, written for this package in the form of Minerva's MATH prompt."""

from __future__ import annotations

from rlvr_envs.prompts.prompt import Exemplar

EXEMPLARS = (
    Exemplar(
        "Let $r$ and $s$ be the solutions of $2x^2 - 5x - 12 = 0$. What is $r^2 + s^2$? Give your answer as a common "
        "fraction.",
        r"By Vieta's formulas, $r + s = \frac{5}{2}$ and $rs = -6$. Therefore "
        r"\[r^2 + s^2 = (r + s)^2 - 2rs = \frac{25}{4} + 12 = \frac{73}{4}.\]"
        "\nFinal Answer: The final answer is $\\frac{73}{4}$.",
    ),
    Exemplar(
        "In how many different ways can the five letters of the word LEVEL be arranged in a row?",
        "If all five letters were different, there would be $5! = 120$ arrangements. Exchanging the two L's, or the "
        r"two E's, changes nothing, so each arrangement is counted $2! \cdot 2! = 4$ times. There are "
        r"$\frac{120}{4} = 30$ different arrangements."
        "\nFinal Answer: The final answer is $30$.",
    ),
    Exemplar(
        "A right triangle has legs of length $8$ and $15$. What is the area of its inscribed circle?",
        r"The hypotenuse is $\sqrt{8^2 + 15^2} = \sqrt{289} = 17$. The tangents from a vertex to the inscribed circle "
        r"are equally long, so its radius in a right triangle is $\frac{8 + 15 - 17}{2} = 3$. Its area is "
        r"$\pi \cdot 3^2 = 9\pi$."
        "\nFinal Answer: The final answer is $9\\pi$.",
    ),
    Exemplar(
        r"What is the domain of the function $f(x) = \sqrt{9 - x^2} + \frac{1}{x - 1}$ over the real numbers? Give "
        "your answer in interval notation.",
        r"The square root is defined where $9 - x^2 \ge 0$, that is, for $-3 \le x \le 3$. The fraction is defined "
        r"where $x \ne 1$. Both hold on $[-3, 1) \cup (1, 3]$."
        "\nFinal Answer: The final answer is $[-3, 1) \\cup (1, 3]$.",
    ),
)
