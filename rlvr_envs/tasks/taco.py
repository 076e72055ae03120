"""TACO: twenty-six thousand programming problems with tags, levels and limits (Li et al. 2023, arXiv:2312.14852).

Columns and sizes are those of the card of `BAAI/TACO` (https://huggingface.co/datasets/BAAI/TACO: `question`, `solutions`,
`input_output`, `starter_code`, `time_limit`, `difficulty` and more). Its script no longer runs; the Parquet files in the
folder `ALL` are what verl's preparation reads (https://github.com/volcengine/verl, `examples/data_preprocess/taco.py`).
"""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import Source
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task
from rlvr_envs.tasks.apps import to_problem

SOURCE = Source(
    name="taco",
    hub_id="BAAI/TACO",
    hub_config=None,
    sizes={"train": 25443, "test": 1000},
    to_problem=to_problem,
    hub_files={split: f"ALL/{split}-*.parquet" for split in ("train", "test")},
)
"""As for APPS: the prompt is the problem's text, the reference the row's tests, decoded when a program is judged, and the gold
completion the first of the source's solutions. A `time_limit` limits each test with standard input. Ids count rows. The
metadata has `difficulty`, `tags`, `skill_types` and the limits.
"""


class TACOEnv(TaskEnv):
    """Programming problems with tags, levels and time limits.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    25,443 problems for training and 1,000 for testing, of contests and of sites that teach (Li et al. 2023, arXiv:2312.14852).
    `difficulty` in the metadata goes from `EASY` to `VERY_HARD`.

    ## Starting State
    A problem's text and its starter code, if it has some. Default prompt `code_chat`: one user message that asks for a fenced
    program.

    ## Reward
    1 when the program passes every test in the sandbox, each within the problem's own time limit if it has one, else 0.

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
