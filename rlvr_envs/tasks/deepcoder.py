"""DeepCoder: the programming problems on which DeepCoder-14B was trained, of three sources with a form each.

The columns are those that rLLM reads from `agentica-org/DeepCoder-Preview-Dataset` (https://github.com/rllm-org/rllm,
`cookbooks/deepcoder/prepare_deepcoder_data.py`: `problem`, `tests`, `starter_code`, `metadata`; for training the
configurations `primeintellect`, `taco` and `lcbv5`, for testing `codeforces` and `lcbv5`). Its forms of tests are those of
`rllm/rewards/code_reward.py`. The three for training have 24.3k rows together.
"""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import Row, Source
from rlvr_envs.data.programs import first_text, function_name, optional_text, program_problem
from rlvr_envs.data.stored import stored_tests
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task
from verifiers import Problem

_USED = ("problem", "tests", "starter_code", "metadata", "solutions")


def _to_problem(row: Row, default_id: str) -> Problem:
    return program_problem(
        default_id,
        row.text("problem"),
        stored_tests(row, "test_list", "tests", "metadata"),
        row.without(*_USED),
        starter_code=optional_text(row, "starter_code"),
        function=function_name(row.value("tests")),
        solution=first_text(row, "solutions"),
    )


SOURCE = Source(
    name="deepcoder",
    hub_id="agentica-org/DeepCoder-Preview-Dataset",
    hub_config=None,
    sizes={"train": 24287, "test": 687},
    to_problem=_to_problem,
    hub_parts={
        "train": (("primeintellect", "train"), ("taco", "train"), ("lcbv5", "train")),
        "test": (("codeforces", "test"), ("lcbv5", "test")),
    },
)
"""The prompt is the problem's text, with its starter code if there is some. The reference is the row's tests, decoded when a
program is judged: those of PrimeIntellect and LiveCodeBench each say their kind, those of TACO are inputs and outputs. The
gold completion is the first of the source's solutions, where it has any. Ids count rows.
"""


class DeepCoderEnv(TaskEnv):
    """The training problems of DeepCoder.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    24,287 problems for training, of PrimeIntellect's SYNTHETIC-1, TACO and LiveCodeBench until July 2024, and 687 for
    testing, of Codeforces and of LiveCodeBench from then on.

    ## Starting State
    A problem's text and its starter code, if it has some. Default prompt `code_chat`: one user message that asks for a fenced
    program.

    ## Reward
    1 when the program passes every test in the sandbox, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="train"`,
    `max_new_tokens=8192`, `verifier="unit_tests"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        SOURCE,
        default_split="train",
        verifier=("unit_tests", {}),
        prompt="code_chat",
        max_new_tokens=8192,
    )
