"""The environment for problems from anywhere. `rlvr_envs.data.text` finds and reads the problems."""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import text
from rlvr_envs.envs import TaskEnv, TaskSpec


class TextEnv(TaskEnv):
    """Any data set with any verifier.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Problems from anywhere: a list of `Problem` objects, a local JSON Lines or Parquet file or folder, or a data set on the hub.
    The default is a small built-in set of arithmetic questions (24 for training, 8 for testing).

    ## Starting State
    A problem's prompt. Default prompt `plain`: the text alone.

    ## Reward
    The verifier's score. Default verifier `math`: 1 if the final answer equals the reference, else 0. The verifier `choice`
    judges multiple choice. If `convert` makes tests, the verifier is `unit_tests`; if `convert` makes instructions, it is
    `ifeval`.

    ## Arguments
    All of `rlvr_envs.Settings` and of `rlvr_envs.data.text.load`: `dataset`, `columns` (the columns of the `prompt` and the
    `reference`), `convert` (the converter from a column to the reference), `layout` and `verifiers` (for verl's rows, each
    judged by its `data_source`), `config`, `data_dir` and `contracts`. Defaults: `split="train"`, `max_new_tokens=256`.
    """

    task: ClassVar[TaskSpec] = TaskSpec(
        load=text.load,
        sizes=text.SIZES,
        source="built in, or any data set",
        other_splits=True,
        data_options=("dataset", "columns", "convert", "layout", "verifiers", "config", "data_dir", "contracts"),
        max_new_tokens=256,
    )
