"""From a task to an environment: `build` makes streams from a `TaskSpec`, and a `TaskEnv` wraps the streams.

The registered ids are in `rlvr_envs.tasks`.
"""

from rlvr_envs.envs.build import OWN_VERIFIER, PromptRenderer, Settings
from rlvr_envs.envs.checking import CheckedTask, check_task
from rlvr_envs.envs.questions import question_in
from rlvr_envs.envs.spec import TaskSpec, benchmark_task, procedural_task, process_task, world_task
from rlvr_envs.envs.state_env import StateDataset, StateEnv
from rlvr_envs.envs.task_env import TaskEnv

__all__ = [
    "OWN_VERIFIER",
    "CheckedTask",
    "PromptRenderer",
    "Settings",
    "StateDataset",
    "StateEnv",
    "TaskEnv",
    "TaskSpec",
    "benchmark_task",
    "check_task",
    "procedural_task",
    "process_task",
    "question_in",
    "world_task",
]
