"""IFBench: instructions of kinds that models were not trained on (Pyatkin et al. 2025, arXiv:2507.02833).

The columns of `allenai/IFBench_test` are those of IFEval (`key`, `prompt`, `instruction_id_list`, `kwargs`; split `train`), as
the benchmark's own code reads them.
"""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import Source
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task
from rlvr_envs.tasks.ifeval import InstructionRows

SOURCE = Source(
    name="ifbench",
    hub_id="allenai/IFBench_test",
    hub_config=None,
    sizes={"test": 294},
    to_problem=InstructionRows("ifbench"),
    hub_splits={"test": "train"},
)
"""The prompt is the source's, the reference its instructions with their parameters. There are no gold completions. Ids are the
source's own, `"ifbench/<key>"`.
"""


class IFBenchEnv(TaskEnv):
    """Prompts with instructions of kinds that models were not trained on.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    294 prompts with one or two of 57 kinds of instructions, such as "use only words with lengths that are prime numbers"
    (Pyatkin et al. 2025, arXiv:2507.02833).

    ## Starting State
    A prompt. Default prompt `chat`: one user message with the prompt alone.

    ## Reward
    1 when the response follows all instructions, strictly, else 0. The paper reports loose accuracy:
    `verifier=("ifeval", {"mode": "loose"})`.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="test"`,
    `max_new_tokens=2048`, `verifier="ifeval"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        SOURCE,
        default_split="test",
        verifier=("ifeval", {}),
        prompt="chat",
        max_new_tokens=2048,
    )
