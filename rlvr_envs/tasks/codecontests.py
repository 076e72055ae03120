"""CodeContests: the contest problems of AlphaCode, with tests made for them (Li et al. 2022, arXiv:2203.07814).

Columns and sizes are those of the card of `deepmind/code_contests` (https://huggingface.co/datasets/deepmind/code_contests:
`description`, `public_tests`, `private_tests`, `generated_tests`, `solutions`, `time_limit`, `input_file` and more).
"""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import Row, Source
from rlvr_envs.data.programs import optional_text, program_problem
from rlvr_envs.data.stored import stored_tests
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task
from verifiers import Problem

_TESTS = ("public_tests", "private_tests", "generated_tests")
_USED = (*_TESTS, "description", "solutions", "incorrect_solutions", "untranslated_description")
_PYTHON3 = 3


def _to_problem(row: Row, default_id: str) -> Problem:
    for column in _TESTS:
        row.value(column)
    return program_problem(
        default_id,
        row.text("description"),
        stored_tests(row, "codecontests", *_TESTS, "time_limit"),
        row.without(*_USED),
        solution=_first_solution(row),
    )


def _first_solution(row: Row) -> str | None:
    """The first solution in Python 3; None if there is none."""
    if row.values.get("solutions") is None:
        return None
    languages, programs = row.value("solutions.language"), row.texts("solutions.solution")
    if not isinstance(languages, list) or len(languages) != len(programs):
        raise row.wrong_type("a language for each of its solutions", languages, "solutions")
    return next((text for language, text in zip(languages, programs, strict=True) if language == _PYTHON3), None)


def _reads_stdin(row: Row, split: str) -> bool:
    return optional_text(row, "input_file").strip() == ""


SOURCE = Source(
    name="codecontests",
    hub_id="deepmind/code_contests",
    hub_config=None,
    sizes={"train": 13328, "validation": 117, "test": 165},
    hub_splits={"validation": "valid"},
    to_problem=_to_problem,
    belongs=_reads_stdin,
    used="reads standard input",
)
"""The prompt is the problem's text. The reference is the row's public, private and generated tests of standard input and
output, decoded when a program is judged, each within the row's `time_limit`. The gold completion is the first of the source's
solutions in Python 3, where it has any. Rows whose programs read a file (`input_file`) are left out. Ids count rows, since
names repeat. The metadata has `name`, `source`, `difficulty`, `cf_rating` and `cf_tags`.
"""


class CodeContestsEnv(TaskEnv):
    """Problems of programming contests, with time limits.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    13,328 problems for training, 117 for validation and 165 for testing, of Codeforces and four other sites (Li et al. 2022,
    arXiv:2203.07814), with tests made by mutation besides their own. Those whose programs read a named file are left out.

    ## Starting State
    A problem's text. Default prompt `code_chat`: one user message that asks for a fenced program.

    ## Reward
    1 when the program passes every test in the sandbox, each within the problem's own time limit if it has one, else 0. Where a
    problem has several right answers only the one that is written down passes.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="train"`,
    `max_new_tokens=4096`, `verifier="unit_tests"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        SOURCE,
        default_split="train",
        verifier=("unit_tests", {}),
        prompt="code_chat",
        max_new_tokens=4096,
    )
