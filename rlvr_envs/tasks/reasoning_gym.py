"""The data sets of reasoning-gym: about a hundred families of generated problems, from algebra to puzzles."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Annotated, ClassVar

from rlvr_envs.envs import TaskEnv, TaskSpec
from rlvr_envs.procedural.base import DEFAULT_SIZES, SeededDataset
from verifiers import AtLeast, Problem
from verifiers.reasoning_gym import (
    MAX_SEED,
    VERSION,
    ReasoningGymReference,
    check_choice,
    make_problem,
    require_reasoning_gym,
)

_KEPT = 4096
"""Maximum number of generated problems that a data set caches."""


@dataclass(frozen=True)
class ReasoningGym(SeededDataset):
    """Problems of one data set of reasoning-gym. Each problem is a pure function of task, level, config, split, seed and index.

    Each problem comes from a data set of reasoning-gym with a separate seed. The problem is made in the sandbox, since some
    data sets run programs. The splits are disjoint by construction: a stable hash of the question determines the split, and one
    question in four belongs to `"test"`. Questions that are too long are skipped. Problems that can't be judged are skipped,
    too: their right answer does not get the full score, or a meaningless answer gets it.

    Args:
        split: `"train"` or `"test"`.
        task: Name of the data set. `"composite"` mixes the data sets in `config={"datasets": [{"name": "chain_sum"}, ...]}`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems; by default 100 000 for train and 1 000 for test.
        level: Level of the task's curriculum, from 0; None for the defaults of the task's config.
        config: Fields of the task's config, such as `{"min_terms": 3}`, in addition to or instead of a level.
        max_prompt_bytes: Maximum length of a question, in UTF-8 bytes.
        isolation: Isolation that the sandbox must provide, as for the verifier `unit_tests`.

    Raises:
        MissingDependencyError: If reasoning-gym is not installed.
        UnknownNameError: If there is no such split or task, or the config has no such field.
        InvalidArgumentError: If another argument is out of range, or no problem of this config can be used.
        SandboxUnavailableError: If the system provides less isolation than requested.
    """

    name: ClassVar[str] = "reasoning_gym"

    task: str = "chain_sum"
    seed: int = 0
    size: int | None = None
    level: int | None = None
    config: Mapping[str, object] = field(default_factory=dict)
    max_prompt_bytes: Annotated[int, AtLeast(1)] = 8192
    isolation: str = "auto"

    def __post_init__(self) -> None:
        require_reasoning_gym("rlvr/ReasoningGym-v0")
        super().__post_init__()
        check_choice(self.task, self.level, self.config)
        self._made(0)

    @property
    def distinct(self) -> int | None:
        """The number of different problems is unknown (None), since several seeds may give the same question."""
        return None

    def _problem_at(self, index: int) -> Problem:
        return self._made(index)

    @functools.cached_property
    def _made(self) -> Callable[[int], Problem]:
        # Streams ask for a row's problem at every token, so problems are cached.
        return functools.lru_cache(maxsize=_KEPT)(self._make)

    def _make(self, index: int) -> Problem:
        dataset = ReasoningGymReference(self.task, self._seed(index), 0, self.level, self.config)
        made = make_problem(dataset, split=self.split, max_prompt_bytes=self.max_prompt_bytes, isolation=self.isolation)
        reference = ReasoningGymReference(self.task, dataset.seed, made.index, self.level, self.config)
        gold = {} if made.answer is None else {"gold_completion": f"<answer>{made.answer}</answer>"}
        problem_id = f"reasoning_gym/{self.task}/{self.split}/{self.seed}/{index}"
        return Problem(problem_id, made.question, reference, {"task": self.task, **gold})

    def _seed(self, index: int) -> int:
        origin = repr((self.task, self.level, sorted(self.config.items()), self.split, self.seed, index))
        return int.from_bytes(blake2b(origin.encode(), digest_size=8).digest(), "little") % MAX_SEED


class ReasoningGymEnv(TaskEnv):
    """The data sets of reasoning-gym.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    About a hundred families of generated problems: algebra, arithmetic, algorithms, puzzles, games, graphs, logic, code and
    induction. `task` names a family of reasoning-gym 0.1.25, which `pip install 'rlvr-envs[reasoning-gym]'` installs; `level`
    and `config` set the difficulty. Nothing is downloaded, and the train and test splits are disjoint.

    ## Starting State
    The question. Default prompt `tagged_chat`: one user message that asks for the answer between `<answer>` and `</answer>`.

    ## Reward
    The score of the answer by reasoning-gym's own scorer, which runs in the sandbox: 1 for a right answer, and less than 1 for
    partial credit. `verifier=("reasoning_gym", {"partial_credit": False})` rewards only right answers.

    ## Arguments
    All of `rlvr_envs.Settings`, and `task="chain_sum"`, `level=None` (of the task's curriculum, from 0), `config={}` (fields
    of the task's config), `seed=0`, `size`, `max_prompt_bytes=8192` (longer questions are skipped) and `isolation="auto"` (of
    the sandbox). Defaults: `split="train"`, `max_new_tokens=1024`, `verifier="reasoning_gym"`.
    """

    task: ClassVar[TaskSpec] = TaskSpec(
        load=ReasoningGym,
        sizes=DEFAULT_SIZES,
        source=f"generated by reasoning-gym {VERSION}",
        data_options=("task", "seed", "size", "level", "config", "max_prompt_bytes", "isolation"),
        verifier=("reasoning_gym", {}),
        prompt="tagged_chat",
        max_new_tokens=1024,
    )
