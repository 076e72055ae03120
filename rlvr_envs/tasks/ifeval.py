"""IFEval: prompts with instructions that can be verified (Zhou et al. 2023, arXiv:2311.07911).

The columns are those that lighteval and lm-eval read from `google/IFEval` (`key`, `prompt`, `instruction_id_list`, `kwargs`;
split `train`). Each mapping of `kwargs` has a key for every parameter of any instruction, most of them None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rlvr_envs.data import Row, Source
from rlvr_envs.data.converters import convert, find_converter
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task
from verifiers import Problem

_COLUMNS = ("key", "prompt", "instruction_id_list", "kwargs")


@dataclass(frozen=True)
class InstructionRows:
    """Makes problems of rows with a prompt and its instructions; the other columns are metadata."""

    name: str
    """The benchmark's name, with which ids begin."""

    def __call__(self, row: Row, default_id: str) -> Problem:
        """Make the problem; see `ToProblem`."""
        key = row.value("key")
        if isinstance(key, bool) or not isinstance(key, str | int):
            raise row.wrong_type("a string or an integer", key, "key")
        row.value("kwargs")
        reference = convert(find_converter("ifeval"), row, "instruction_id_list")
        return Problem(f"{self.name}/{key}", row.text("prompt"), reference, row.without(*_COLUMNS))


SOURCE = Source(
    name="ifeval",
    hub_id="google/IFEval",
    hub_config=None,
    sizes={"test": 541},
    to_problem=InstructionRows("ifeval"),
    hub_splits={"test": "train"},
)
"""The prompt is the source's, the reference its instructions with their parameters. There are no gold completions. Ids are the
source's own, `"ifeval/<key>"`.
"""


class IFEvalEnv(TaskEnv):
    """Prompts with instructions that can be verified.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    541 prompts with one to three of 25 kinds of instructions, such as "in at least 300 words" or "do not use any commas" (Zhou
    et al. 2023, arXiv:2311.07911).

    ## Starting State
    A prompt. Default prompt `chat`: one user message with the prompt alone.

    ## Reward
    1 when the response follows all instructions, strictly, else 0. With `verifier=("ifeval", {"mode": "loose"})` it is the
    paper's loose accuracy, with `{"partial_credit": True}` the share of instructions, and with
    `{"preset": "published"}` the instructions are judged as the published checkers judge them.

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
