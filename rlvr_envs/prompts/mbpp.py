"""Three programming tasks with tests and solutions, written for this package in the form of MBPP's."""

from __future__ import annotations

from rlvr_envs.prompts.prompt import Exemplar
from rlvr_envs.tasks.mbpp import prompt_text


def _exemplar(text: str, asserts: list[str], program: str) -> Exemplar:
    return Exemplar(prompt_text(text, asserts), f"{program}\n[DONE]")


EXEMPLARS = (
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
