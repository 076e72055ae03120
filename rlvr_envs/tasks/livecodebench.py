"""LiveCodeBench: problems of programming contests, by the date of the contest (Jain et al. 2024, arXiv:2403.07974).

The columns are those that lighteval reads from `lighteval/code_generation_lite`
(https://github.com/huggingface/lighteval, `src/lighteval/tasks/tasks/lcb/main.py`: `question_content`, `starter_code`,
`public_test_cases`, `private_test_cases`, `metadata`; a configuration for each version) and LiveCodeBench itself
(https://github.com/LiveCodeBench/LiveCodeBench, `lcb_runner/benchmarks/code_generation.py`: besides `question_id`,
`question_title`, `platform`, `contest_id`, `contest_date` and `difficulty`). Sizes follow the data card's list of versions.
"""

from __future__ import annotations

import datetime
from typing import ClassVar

from rlvr_envs.data import Row, Source
from rlvr_envs.data.programs import optional_text, program_problem
from rlvr_envs.data.stored import stored_tests
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task
from verifiers import Problem

_USED = ("question_id", "question_content", "starter_code", "public_test_cases", "private_test_cases", "metadata")


def _to_problem(row: Row, default_id: str) -> Problem:
    row.value("private_test_cases")
    tests = stored_tests(row, "livecodebench", "public_test_cases", "private_test_cases", "metadata")
    metadata = {name: _plain(value) for name, value in row.without(*_USED).items()}
    starter_code = optional_text(row, "starter_code")
    identifier = f"livecodebench/{row.text('question_id')}"
    return program_problem(identifier, row.text("question_content"), tests, metadata, starter_code=starter_code)


def _plain(value: object) -> object:
    """A date as text: JSON Lines have no other, and the hub's table has a type for it."""
    return value.isoformat() if isinstance(value, datetime.datetime) else value


_VERSIONS = {"v1": 400, "v2": 111, "v3": 101, "v4": 101, "v5": 167, "v6": 175}

SOURCE = Source(
    name="livecodebench",
    hub_id="lighteval/code_generation_lite",
    hub_config=None,
    sizes={"test": sum(_VERSIONS.values()), **_VERSIONS},
    to_problem=_to_problem,
    hub_parts={"test": (("release_v6", "test"),), **{version: ((version, "test"),) for version in _VERSIONS}},
)
"""The prompt is the problem's text, with its starter code if there is some. The reference is the row's public and private
tests, decoded when a program is judged: of standard input and output, or calls of the function that `metadata` names. There
are no gold completions. Ids are the source's own, `"livecodebench/<question_id>"`. The metadata has `difficulty`, `platform`
and `contest_date`, by which problems that a model may have seen can be left out.
"""


class LiveCodeBenchEnv(TaskEnv):
    """Problems of programming contests since May 2023.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    1,055 problems of LeetCode, AtCoder and Codeforces (Jain et al. 2024, arXiv:2403.07974): the split `test` is release 6,
    and `v1` to `v6` are what each release added (400, 111, 101, 101, 167 and 175).

    ## Starting State
    A problem's text and, where its tests call a function, its starter code. Default prompt `code_chat`: one user message that
    asks for a fenced program.

    ## Reward
    1 when the program passes every public and private test in the sandbox, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="test"`,
    `max_new_tokens=8192`, `verifier="unit_tests"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        SOURCE,
        default_split="test",
        verifier=("unit_tests", {}),
        prompt="code_chat",
        max_new_tokens=8192,
    )
