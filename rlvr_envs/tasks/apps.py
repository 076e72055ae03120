"""APPS: ten thousand programming problems of three levels (Hendrycks et al. 2021, arXiv:2105.09938).

Columns and sizes are those of the card of `codeparrot/apps` (https://huggingface.co/datasets/codeparrot/apps: `question`,
`solutions`, `input_output`, `starter_code`, `difficulty`, `url`; 195 rows of `train` have no tests, 1,235 of `test` no
solution). On the hub it is a script, so the rows come from the hub's Parquet copy of its configuration `all`.
"""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import Row, Source
from rlvr_envs.data.hub import PARQUET
from rlvr_envs.data.programs import first_text, function_name, optional_text, program_problem
from rlvr_envs.data.stored import stored_tests
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task
from verifiers import Problem

_USED = ("question", "solutions", "input_output", "starter_code")


def to_problem(row: Row, default_id: str) -> Problem:
    """Make a problem of a row of APPS or TACO; see `ToProblem`."""
    return program_problem(
        default_id,
        row.text("question"),
        stored_tests(row, "input_output", "input_output", "starter_code", "time_limit"),
        row.without(*_USED),
        starter_code=optional_text(row, "starter_code"),
        function=function_name(row.value("input_output")),
        solution=first_text(row, "solutions"),
    )


def _has_tests(row: Row, split: str) -> bool:
    value = row.value("input_output")
    return value is not None and str(value).strip() != ""


SOURCE = Source(
    name="apps",
    hub_id=f"codeparrot/apps@{PARQUET}",
    hub_config="all",
    sizes={"train": 5000, "test": 5000},
    to_problem=to_problem,
    belongs=_has_tests,
    used="has tests",
)
"""The prompt is the problem's text, with its starter code if there is some. The reference is the row's tests, decoded when a
program is judged: of standard input and output, or calls of the function `fn_name`. The gold completion is the first of the
source's solutions, where it has any. Rows whose `input_output` is empty are left out. Ids count rows. The metadata has
`difficulty` and `url`.
"""


class APPSEnv(TaskEnv):
    """Programming problems of three levels.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    5,000 problems for training and 5,000 for testing, of Codewars, AtCoder, Kattis and Codeforces (Hendrycks et al. 2021,
    arXiv:2105.09938). `difficulty` in the metadata is `introductory`, `interview` or `competition`. 195 problems for training
    have no tests and are left out.

    ## Starting State
    A problem's text and its starter code, if it has some. Default prompt `code_chat`: one user message that asks for a fenced
    program.

    ## Reward
    1 when the program passes every test in the sandbox, else 0. The tests of many problems are few.

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
