"""GSM8K: grade-school word problems (Cobbe et al. 2021, arXiv:2110.14168), with worked solutions."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import Row, Source
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task
from rlvr_envs.prompts import benchmarks
from verifiers import Problem

_MARK = "#### "


def _to_problem(row: Row, default_id: str) -> Problem:
    solution = row.text("answer")
    _, mark, answer = solution.rpartition(_MARK)
    if not mark or not answer.strip():
        raise row.error(f"column 'answer' should end with the final answer after {_MARK!r}, got: …{solution[-60:]!r}")
    metadata = row.without("question", "answer")
    return Problem(default_id, row.text("question"), answer.strip(), metadata | {"gold_completion": solution})


SOURCE = Source(
    name="gsm8k",
    hub_id="openai/gsm8k",
    hub_config="main",
    sizes={"train": 7473, "test": 1319},
    to_problem=_to_problem,
)
"""The prompt is the question. The reference is the text after the last `"#### "`, as it is written in the data, with
thousands separators (`"1,080"`). The gold completion is the worked solution, calculator annotations included.
"""


class GSM8KEnv(TaskEnv):
    """Grade-school word problems.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Word problems that take two to eight steps of arithmetic (Cobbe et al. 2021, arXiv:2110.14168): 7473 for training, 1319
    for testing. Gold answers are whole numbers.

    ## Starting State
    A question. Default prompt `gsm8k_cot_8shot`: eight worked examples, each ending `#### n`.

    ## Reward
    1 when the final answer equals the gold number, else 0.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="train"`,
    `max_new_tokens=512`, `verifier="math"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        SOURCE,
        default_split="train",
        verifier=("math", {}),
        prompt=benchmarks.GSM8K,
        max_new_tokens=512,
    )
