"""Problems for an audit without a data set: golds of the kinds that reward functions meet most often."""

from __future__ import annotations

from verifiers.types import Problem

_GOLDS = {
    "A train has 6 coaches with 7 seats in each row. How many seats are in the front rows together?": "42",
    "Ada owes 3 friends 4 coins each and has none. What is her balance?": "-12",
    "A city of 1,200 people grows by 34 people. How many people live there?": "1234",
    "What is half of 7?": "3.5",
    "A coin is tossed twice. How probable are two heads?": "\\frac{1}{4}",
    "Which fraction of a year are 8 months?": "2/3",
    "What is the length of the diagonal of a square of side 3?": "3\\sqrt{2}",
    "Expand the product of x + 1 and x + 2.": "x^2+3x+2",
    "Which point is 3 steps right of and 5 steps above the origin?": "(3,5)",
    "For which numbers is the square at most 4?": "[-2,2]",
    "What is the capital of Japan?": "Tokyo",
}


def example_problems() -> list[Problem]:
    """Give one problem for each of several kinds of gold, from integers to intervals and words."""
    return [Problem(f"example/{index}", prompt, gold) for index, (prompt, gold) in enumerate(_GOLDS.items())]
