"""MATH: competition problems in seven subjects and five levels (Hendrycks et al. 2021, arXiv:2103.03874)."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import Row, Source
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task
from rlvr_envs.prompts import Exemplar, TextPrompt, register_prompt
from verifiers import Problem
from verifiers.completion import boxed_answer


def _to_problem(row: Row, default_id: str) -> Problem:
    solution = row.text("solution")
    answer = boxed_answer(solution)
    if not answer:
        raise row.error(f"column 'solution' should hold its final answer in \\boxed{{}}, got: …{solution[-60:]!r}")
    metadata = row.without("problem", "solution")
    return Problem(default_id, row.text("problem"), answer, metadata | {"gold_completion": solution})


SOURCE = Source(
    name="math",
    hub_id="DigitalLearningGmbH/MATH-lighteval",
    hub_config="default",
    sizes={"train": 7500, "test": 5000},
    to_problem=_to_problem,
)
r"""The prompt is the problem. The reference is the content of the solution's last `\boxed{}`, in LaTeX; where a
solution boxes several answers one after the other, it is all of them, joined by commas or `or`. The gold completion is
the solution. The metadata has `level` (`"Level 1"` to `"Level 5"`) and `type`, the subject.
"""

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
"""Four competition problems with worked solutions, written for this package in the form of Minerva's MATH prompt."""

PROMPT = register_prompt(
    TextPrompt(
        name="minerva_math_4shot",
        template="Problem:\n{problem}\n\nSolution:",
        exemplars=EXEMPLARS,
        before_answer="\n",
        stop=("Problem:",),
        source="The four-shot layout for MATH of Minerva (Lewkowycz et al. 2022, arXiv:2206.14858), whose solutions "
        "end in a 'Final Answer:' line. Examples of our own.",
    )
)


class MATHEnv(TaskEnv):
    """Competition mathematics.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Competition problems in seven subjects and five levels (Hendrycks et al. 2021, arXiv:2103.03874): 7500 for training, 5000
    for testing. Gold answers are LaTeX: numbers, expressions, sets, intervals, matrices, words.

    ## Starting State
    A problem. Default prompt `minerva_math_4shot`: four worked examples that end in a final-answer line.

    ## Reward
    1 when the final answer equals the gold answer mathematically, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="test"`,
    `max_new_tokens=1024`, `verifier="math"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        SOURCE,
        default_split="test",
        verifier=("math", {}),
        prompt=PROMPT,
        max_new_tokens=1024,
    )
