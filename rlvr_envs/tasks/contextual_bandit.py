"""`ContextualBandit`: choose one of several arms, whose means depend on what the prompt shows."""

from __future__ import annotations

import functools
import itertools
import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rlvr_envs.envs import StateEnv, TaskEnv, TaskSpec, process_task
from rlvr_envs.procedural.base import require_whole
from rlvr_envs.tasks.bandit import BEST, MOST_ARMS, OTHER, Rewards, check_rewards, pull
from rlvr_envs.worlds.process import Process, uniforms
from rlvr_envs.worlds.process_data import ProcessDataset
from verifiers import check_types

_MOST_BITS = 8


@dataclass(frozen=True)
class ContextualBandit(ProcessDataset):
    """Pulls of a bandit whose arms' means are linear in the bits of a context; a problem is a context and luck of its own.

    With x = (1, ±1, ..., ±1) for the bits of the context, arm a has the mean (1 + w_a · x / (d + 1)) / 2 with w_a in
    [-1, 1]^(d + 1), which lies in [0, 1].

    Args:
        split: `"train"` or `"test"`: the same bandit, other luck.
        seed: Seed of contexts and luck.
        size: Number of problems; by default 100 000 for train and 1 000 for test.
        bits: Number of bits d of a context, 1 to 8.
        arms: Number of arms, 2 to 26.
        instance: Which bandit: its weights are drawn from this number.
        rewards: `"bernoulli"` for rewards 1 and 0, or `"normal"` for normally distributed ones.
        noise: Standard deviation of normal rewards.
    """

    name: ClassVar[str] = "contextual_bandit"

    bits: int = 4
    arms: int = 4
    instance: int = 0
    rewards: Rewards = "bernoulli"
    noise: float = 1.0

    @functools.cached_property
    def process(self) -> Process:
        """One state for each context, and two at which the pull is made: of a best arm, or of another."""
        check_types(self)
        check_rewards(self.rewards, self.noise)
        require_whole("bits", self.bits, 1, _MOST_BITS)
        require_whole("arms", self.arms, 2, MOST_ARMS)
        require_whole("instance", self.instance, 0)
        end = 2**self.bits
        table = [
            tuple(pull(mean, self.rewards, self.noise, end + (mean < max(means))) for mean in means)
            for means in self.arm_means.tolist()
        ]
        names = ["".join(bits) for bits in itertools.product("01", repeat=self.bits)]
        arms = string.ascii_lowercase[: self.arms]
        return Process((*names, BEST, OTHER), arms, (*table, (), ()), frozenset({end}))

    @property
    def features(self) -> NDArray[np.float64]:
        """X of each state, f64[s d + 1]; 0 for those at which the pull is made."""
        bits = np.array(list(itertools.product((-1.0, 1.0), repeat=self.bits)))
        contexts = np.concatenate([np.ones((len(bits), 1)), bits], axis=1)
        return np.concatenate([contexts, np.zeros((2, self.bits + 1))])

    @functools.cached_property
    def weights(self) -> NDArray[np.float64]:
        """W of each arm, f64[a d + 1]."""
        drawn = [[uniforms(self.instance, arm, at)[0] for at in range(self.bits + 1)] for arm in range(self.arms)]
        return 2 * np.array(drawn) - 1

    @functools.cached_property
    def arm_means(self) -> NDArray[np.float64]:
        """The mean reward of each arm in each context, f64[2**d a]."""
        means: NDArray[np.float64] = (1 + self.features[:-2] @ self.weights.T / (self.bits + 1)) / 2
        return means

    @property
    def starts(self) -> Mapping[int, float]:
        """Every context alike."""
        return dict.fromkeys(range(2**self.bits), 2.0**-self.bits)

    @property
    def max_new_tokens(self) -> int:
        """One pull."""
        return 1

    def gold(self, state: int) -> str:
        """The best arm of a context; of several the first."""
        return self.process.actions[int(self.arm_means[state].argmax())]


class ContextualBanditEnv(TaskEnv):
    """One pull of a bandit whose best arm depends on the prompt.

    Observation space, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    The prompt is a context of some bits; choose an arm for it. Each arm's mean reward is a linear function of the bits, the
    same in all problems. `gymnasium.make("rlvr/ContextualBandit-v0").unwrapped.streams.dataset.arm_means` has the means; the
    best expected return is the mean over contexts of the highest.

    ## Action Space
    The tokens of the arms `a`, `b`, `c` and so on; no other is legal. With the default tokenizer `"char"` these are the tokens
    from 1 on.

    ## Starting State
    `0110:`: the context, drawn uniformly.

    ## Reward
    That of the arm: 1 with the probability that is its mean in the context, else 0; or normally distributed around it. It is
    drawn from the problem's seed, independently for each arm. The verdict is `CORRECT` when the arm is one of the best,
    whatever it earned.

    ## Episode End
    Termination: an arm was pulled.

    ## Information
    `info["verdict"].detail["regret"]` is the mean of the context's best arm less that of the arm pulled.

    ## Arguments
    Those of `rlvr_envs.Settings`, `bits` (4), `arms` (4), `instance` (0: which weights are drawn), `rewards` (`"bernoulli"` or
    `"normal"`), `noise` (1, of normal rewards), `seed` (of contexts and luck) and `size` of the data set. Defaults:
    `split="train"`, `tokenizer="char"`, `max_new_tokens=1`.
    """

    task: ClassVar[TaskSpec] = process_task(ContextualBandit)


class ContextualBanditStateEnv(StateEnv):
    """`rlvr/ContextualBandit-v0` with the context as the number of a state.

    Spaces, information and version history are those of `rlvr_envs.StateEnv`.

    ## Description
    The problems and rewards of `rlvr/ContextualBandit-v0`. A state is the number that the bits of the context write, the last
    two say after the pull whether it was of a best arm. `features`, f64[s d + 1], are the features in which the means are
    linear: 1, and then 1 or -1 for each bit.

    ## Action Space
    0 to `arms` - 1.

    ## Information
    `step` gives `regret`: the mean of the context's best arm less that of the arm pulled.

    ## Arguments
    Those of the data set of `rlvr/ContextualBandit-v0`, and `split`.
    """

    problems: ClassVar[type[ContextualBandit]] = ContextualBandit

    @property
    def features(self) -> NDArray[np.float64]:
        """The features of each state, f64[s d + 1]."""
        assert isinstance(self.dataset, ContextualBandit)
        return self.dataset.features
