"""A small data set of arithmetic questions, written for this package; it needs no download."""

from __future__ import annotations

_TRAIN = (
    ("What is 17 + 25?", 42),
    ("What is 90 - 34?", 56),
    ("What is 8 * 7?", 56),
    ("What is 96 / 6?", 16),
    ("What is 3 + 4 * 5?", 23),
    ("What is (3 + 4) * 5?", 35),
    ("What is 2 to the power of 6?", 64),
    ("What is the remainder when 47 is divided by 9?", 2),
    ("What number is 12 less than 5?", -7),
    ("What is half of 58?", 29),
    ("What is a quarter of 132?", 33),
    ("What is 15% of 80?", 12),
    ("Add 19, 23 and 8.", 50),
    ("Double 36, then subtract 7.", 65),
    ("Subtract 45 from 100, then divide by 5.", 11),
    ("What is the sum of the whole numbers from 1 to 10?", 55),
    ("What is the largest of 31, 13 and 29?", 31),
    ("What is the average of 4, 9 and 11?", 8),
    ("A shelf has 6 boards with 14 books on each. How many books are on the shelf?", 84),
    ("Mira had 53 stamps and gave 18 away. How many stamps has she left?", 35),
    ("A film starts 25 minutes past 7 and lasts 95 minutes. At how many minutes past 7 does it end?", 120),
    ("Four friends share 72 grapes equally. How many grapes does each of them get?", 18),
    ("A rope of 45 metres is cut into pieces of 5 metres. How many pieces are there?", 9),
    ("A rectangle is 12 cm long and 9 cm wide. What is its area in square centimetres?", 108),
)
_TEST = (
    ("What is 38 + 46?", 84),
    ("What is 71 - 29?", 42),
    ("What is 9 * 12?", 108),
    ("What is 144 / 8?", 18),
    ("What is 20 - 2 * 6?", 8),
    ("What is the remainder when 59 is divided by 7?", 3),
    ("Triple 21, then add 4.", 67),
    ("A bus has 11 rows with 4 seats in each. How many seats does it have?", 44),
)

ROWS = {
    split: tuple({"question": question, "answer": str(answer)} for question, answer in pairs)
    for split, pairs in (("train", _TRAIN), ("test", _TEST))
}
"""The rows of each split, in the default columns of `rlvr_envs.data.text.load`."""
