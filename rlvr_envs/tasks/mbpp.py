"""MBPP: short Python programs from a description and three tests (Austin et al. 2021, arXiv:2108.07732)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rlvr_envs.data import Row, Source
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task
from rlvr_envs.prompts import Exemplar, TextPrompt, register_prompt
from verifiers import Problem

_TASKS = {"train": range(601, 975), "validation": range(511, 601), "test": range(11, 511), "prompt": range(1, 11)}


def _to_problem(row: Row, default_id: str) -> Problem:
    from verifiers.unit_tests import AssertTests

    setup, asserts = row.text("test_setup_code"), row.texts("test_list")
    metadata = row.without("test_setup_code", "test_list", "challenge_test_list")
    return Problem(
        id=f"mbpp/{row.integer('task_id')}",
        prompt=prompt_text(row.text("text"), asserts, setup),
        reference=AssertTests(asserts=asserts, setup=setup),
        metadata=metadata
        | {
            "challenge_test_list": row.texts("challenge_test_list"),
            "gold_completion": f"```python\n{row.text('code')}\n```",
        },
    )


def prompt_text(text: str, asserts: Sequence[str], setup: str = "") -> str:
    """The prompt of an MBPP problem: its description, then its set-up code if there is any, then its tests."""
    tests = "\n".join([setup.replace("\r\n", "\n"), *asserts] if setup else asserts)
    return f"{text}\nYour code should pass these tests:\n\n{tests}"


def _belongs(row: Row, split: str) -> bool:
    return row.integer("task_id") in _TASKS[split]


SOURCE = Source(
    name="mbpp",
    hub_id="google-research-datasets/mbpp",
    hub_config="full",
    sizes={split: len(tasks) for split, tasks in _TASKS.items()},
    to_problem=_to_problem,
    combined_split="test",
    belongs=_belongs,
)
"""The prompt is the task's description followed by its tests, because only they show the function's name and
arguments; the two problems with set-up code show that before the tests. The reference is an `AssertTests` of those
tests. The gold completion is the source's program in a fenced block. Ids are `"mbpp/<task_id>"`. The metadata has
`task_id`, `text` (the description alone), `code` and `challenge_test_list` (harder tests, where there are any).

Splits follow `task_id`: 601-974 train, 511-600 validation, 11-510 test, 1-10 prompt. Locally a split is read from
its own file, or from `test.jsonl`, which may hold the rows of all four.
"""


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
"""Three programming tasks with tests and solutions, written for this package in the form of MBPP's."""

PROMPT = register_prompt(
    TextPrompt(
        name="mbpp_3shot",
        template="Here is a task for a Python programmer: {problem}\n[BEGIN]\n",
        exemplars=EXEMPLARS,
        before_answer="",
        stop=("[DONE]",),
        source="The three-shot layout of Austin et al. 2021 (arXiv:2108.07732), with programs between [BEGIN] and "
        "[DONE]. Examples of our own.",
    )
)


class MBPPEnv(TaskEnv):
    """Mostly basic Python problems.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    974 short programming tasks (Austin et al. 2021, arXiv:2108.07732) with three assertions each: 374 for training, 90 for
    validation, 500 for testing, and 10 (`prompt`) for few-shot examples.

    ## Starting State
    A task and its assertions. Default prompt `mbpp_3shot`: three worked examples between `[BEGIN]` and `[DONE]`.

    ## Reward
    1 when the program passes every assertion in the sandbox, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="train"`,
    `max_new_tokens=512`, `verifier="unit_tests"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        SOURCE,
        default_split="train",
        verifier=("unit_tests", {}),
        prompt=PROMPT,
        max_new_tokens=512,
    )
