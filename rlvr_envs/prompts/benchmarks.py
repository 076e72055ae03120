"""The prompts of published benchmarks, in their usual layout with our own examples."""

from __future__ import annotations

from collections.abc import Sequence

from rlvr_envs.prompts.prompt import Exemplar, TextPrompt

_GSM8K_EXAMPLES = (
    Exemplar(
        "A bakery bakes 48 rolls every morning. On Monday it sold 31 of them before noon and 9 more in the afternoon. "
        "How many of Monday's rolls were left in the evening?",
        "The bakery sold 31 + 9 = 40 rolls on Monday. So 48 - 40 = 8 rolls were left.\n#### 8",
    ),
    Exemplar(
        "Nadia reads 15 pages on every day from Monday to Friday and 30 pages on each day of the weekend. How many "
        "pages does she read in 3 weeks?",
        "From Monday to Friday she reads 5 * 15 = 75 pages. On the weekend she reads 2 * 30 = 60 pages. That makes "
        "75 + 60 = 135 pages a week. In 3 weeks she reads 3 * 135 = 405 pages.\n#### 405",
    ),
    Exemplar(
        "A jacket at $80 is reduced by 25%. Omar buys the jacket and a scarf for $14. How many dollars does he pay?",
        "The price of the jacket goes down by 80 * 25 / 100 = 20 dollars. The jacket then costs 80 - 20 = 60 dollars. "
        "With the scarf he pays 60 + 14 = 74 dollars.\n#### 74",
    ),
    Exemplar(
        "A tank that can hold 900 litres of water is one third full. A pump adds 25 litres every minute. After how "
        "many minutes is the tank full?",
        "There are 900 / 3 = 300 litres in the tank. To fill it, 900 - 300 = 600 litres are missing. The pump needs "
        "600 / 25 = 24 minutes.\n#### 24",
    ),
    Exemplar(
        "Lena's brother is 9 years old. Lena's age is 4 more than twice her brother's. How old will she be in 5 years?",
        "Twice the brother's age is 2 * 9 = 18. Lena is 18 + 4 = 22 years old. In 5 years she will be 22 + 5 = 27."
        "\n#### 27",
    ),
    Exemplar(
        "A school orders 7 boxes with 24 pencils in each and shares all of the pencils equally among 6 classes. How "
        "many pencils does each class get?",
        "The boxes hold 7 * 24 = 168 pencils. Each class gets 168 / 6 = 28 pencils.\n#### 28",
    ),
    Exemplar(
        "Two cyclists leave the same village in opposite directions, one at 14 km per hour and the other at 18 km per "
        "hour. How many kilometres apart are they after 3 hours?",
        "Every hour the distance between them grows by 14 + 18 = 32 kilometres. After 3 hours they are 3 * 32 = 96 "
        "kilometres apart.\n#### 96",
    ),
    Exemplar(
        "Tom has $150. He buys 3 books for $12 each and 2 records for $19 each, and saves half of what is left. How "
        "many dollars does he save?",
        "The books cost 3 * 12 = 36 dollars and the records 2 * 19 = 38 dollars. Together that is 36 + 38 = 74 "
        "dollars. He has 150 - 74 = 76 dollars left and saves 76 / 2 = 38 dollars.\n#### 38",
    ),
)
"""Eight word problems with worked solutions, written for this package in the form of GSM8K's problems."""

GSM8K = TextPrompt(
    name="gsm8k_cot_8shot",
    template="Question: {problem}\nAnswer:",
    exemplars=_GSM8K_EXAMPLES,
    answer_format="#### {answer}",
    stop=("Question:", "</s>", "<|im_end|>"),
    source="Eight chains of thought (Wei et al. 2022, arXiv:2201.11903) in GSM8K's own answer format, which ends "
    "with '#### ' and the number; layout and stop strings as usual in evaluation harnesses. Examples of our own.",
)

HUMANEVAL = TextPrompt(
    name="humaneval_completion",
    stop=("\nclass", "\ndef", "\n#", "\nif", "\nprint"),
    source="HumanEval's prompt as it is, for a base model to continue up to the next top-level statement, with the "
    "stop strings of Chen et al. 2021 (arXiv:2107.03374).",
)

_MATH_EXAMPLES = (
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

MATH = TextPrompt(
    name="minerva_math_4shot",
    template="Problem:\n{problem}\n\nSolution:",
    exemplars=_MATH_EXAMPLES,
    before_answer="\n",
    stop=("Problem:",),
    source="The four-shot layout for MATH of Minerva (Lewkowycz et al. 2022, arXiv:2206.14858), whose solutions "
    "end in a 'Final Answer:' line. Examples of our own.",
)


def mbpp_text(text: str, asserts: Sequence[str], setup: str = "") -> str:
    """The prompt of an MBPP problem: first the description, then any set-up code, and then the tests."""
    tests = "\n".join([setup.replace("\r\n", "\n"), *asserts] if setup else asserts)
    return f"{text}\nYour code should pass these tests:\n\n{tests}"


def _exemplar(text: str, asserts: list[str], program: str) -> Exemplar:
    return Exemplar(mbpp_text(text, asserts), f"{program}\n[DONE]")


_MBPP_EXAMPLES = (
    _exemplar(
        "Write a function that returns the length of the longest run of equal neighbours in a list.",
        [
            "assert longest_run([4, 4, 1, 1, 1, 4]) == 3",
            "assert longest_run(['a', 'b', 'c']) == 1",
            "assert longest_run([]) == 0",
        ],
        "from itertools import groupby\n"
        "\n"
        "def longest_run(items):\n"
        "    return max((len(list(run)) for _, run in groupby(items)), default=0)",
    ),
    _exemplar(
        "Write a function to count the words of a sentence that begin with a vowel, in either case.",
        [
            "assert count_vowel_words('An owl sat in the old tree') == 4",
            "assert count_vowel_words('Bees buzz') == 0",
            "assert count_vowel_words('') == 0",
        ],
        "def count_vowel_words(sentence):\n    return sum(word[0].lower() in 'aeiou' for word in sentence.split())",
    ),
    _exemplar(
        "Write a function to merge two dictionaries of counts, adding the counts of keys that are in both.",
        [
            "assert merge_counts({'a': 1, 'b': 2}, {'b': 3}) == {'a': 1, 'b': 5}",
            "assert merge_counts({}, {'x': 7}) == {'x': 7}",
            "assert merge_counts({'p': 4}, {}) == {'p': 4}",
        ],
        "def merge_counts(first, second):\n"
        "    merged = dict(first)\n"
        "    for key, count in second.items():\n"
        "        merged[key] = merged.get(key, 0) + count\n"
        "    return merged",
    ),
)
"""Three programming tasks with tests and solutions, written for this package in the form of MBPP's tasks."""

MBPP = TextPrompt(
    name="mbpp_3shot",
    template="Here is a task for a Python programmer: {problem}\n[BEGIN]\n",
    exemplars=_MBPP_EXAMPLES,
    before_answer="",
    stop=("[DONE]",),
    source="The three-shot layout of Austin et al. 2021 (arXiv:2108.07732), with programs between [BEGIN] and "
    "[DONE]. Examples of our own.",
)

PROMPTS = (GSM8K, HUMANEVAL, MATH, MBPP)
