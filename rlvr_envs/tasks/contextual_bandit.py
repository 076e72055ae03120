"""`ContextualBandit`: choose one of several arms, whose means depend on the context in the prompt."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from rlvr_envs.envs import StateEnv, TaskEnv, TaskSpec, process_task
from rlvr_envs.tasks.bandit import MOST_ARMS, MOST_PULLS, PULLS_IN_WORDS, Rewards, bandit_process, check_rewards
from rlvr_envs.worlds.process import Process, uniforms
from rlvr_envs.worlds.process_data import ProcessDataset
from verifiers import AtLeast, Between, Problem

_MOST_BITS = 8


@dataclass(frozen=True)
class ContextualBandit(ProcessDataset):
    """Pulls of a bandit in which an arm's mean is linear in the bits of a context. A problem has a context and chance events.

    With x = (1, ±1, ..., ±1) for the bits of the context, arm a has the mean (1 + w_a · x / (d + 1)) / 2, where w_a is in [-1,
    1]^(d + 1). So the mean is in [0, 1].

    Args:
        split: `"train"` or `"test"`: the same bandit, with different chance events.
        seed: Seed of contexts and chance events.
        size: Number of problems; by default 100 000 for train and 1 000 for test.
        bits: Number of bits d of a context, 1 to 8.
        arms: Number of arms, 2 to 26.
        instance: Number of the bandit, which is the seed for drawing the weights.
        rewards: `"bernoulli"` for rewards 1 and 0, or `"normal"` for normally distributed rewards.
        noise: Standard deviation of normal rewards.
        pulls: Number of pulls in an episode, all in the same context, 1 to 100.
    """

    name: ClassVar[str] = "contextual_bandit"

    bits: Annotated[int, Between(1, _MOST_BITS)] = 4
    arms: Annotated[int, Between(2, MOST_ARMS)] = 4
    instance: Annotated[int, AtLeast(0)] = 0
    rewards: Rewards = "bernoulli"
    noise: Annotated[float, AtLeast(0)] = 1.0
    pulls: Annotated[int, Between(1, MOST_PULLS)] = 1

    @functools.cached_property
    def process(self) -> Process:
        """A state for each context, states between two pulls, and two final states; see `bandit_process`."""
        check_rewards(self.rewards, self.noise)
        names = ["".join(bits) for bits in itertools.product("01", repeat=self.bits)]
        return bandit_process(names, self.arm_means.tolist(), self.rewards, self.noise, self.pulls)

    @property
    def features(self) -> NDArray[np.float64]:
        """The features x of each state, f64[s d + 1]. States in which the episode is over have features 0."""
        contexts = self._context_features
        between = (len(self.process.states) - 2) // len(contexts) - 1
        again = contexts if self.rewards == "normal" else np.repeat(contexts, 2, axis=0)
        copies = [again] * (between * len(contexts) // len(again))
        return np.concatenate([contexts, *copies, np.zeros((2, self.bits + 1))])

    @property
    def _context_features(self) -> NDArray[np.float64]:
        bits = np.array(list(itertools.product((-1.0, 1.0), repeat=self.bits)))
        return np.concatenate([np.ones((len(bits), 1)), bits], axis=1)

    @functools.cached_property
    def weights(self) -> NDArray[np.float64]:
        """The weights w_a of each arm, f64[a d + 1]."""
        drawn = [[uniforms(self.instance, arm, at)[0] for at in range(self.bits + 1)] for arm in range(self.arms)]
        return 2 * np.array(drawn) - 1

    @functools.cached_property
    def arm_means(self) -> NDArray[np.float64]:
        """The mean reward of each arm in each context, f64[2**d a]."""
        means: NDArray[np.float64] = (1 + self._context_features @ self.weights.T / (self.bits + 1)) / 2
        return means

    def in_words(self, problem: Problem) -> str:
        """The rules in words, and the start of the episode."""
        context = str(problem.prompt).removesuffix(":")
        return (
            f"The context is {context}. Pull one of the arms {', '.join(self.process.actions)}; how much an arm pays depends "
            f"on the context. {PULLS_IN_WORDS.format(self.pulls)}"
        )

    @property
    def starts(self) -> Mapping[int, float]:
        """All contexts, with the same probability."""
        return dict.fromkeys(range(2**self.bits), 2.0**-self.bits)

    @property
    def max_new_tokens(self) -> int:
        """The number of pulls."""
        return self.pulls

    @property
    def needed_actions(self) -> int:
        """The number of pulls in every episode."""
        return self.pulls

    def gold(self, state: int) -> str:
        """The best arm of a context, once for every pull; if several arms are best, the first best arm."""
        return self.process.actions[int(self.arm_means[state].argmax())] * self.pulls


class ContextualBanditEnv(TaskEnv):
    """Pulls of a bandit whose best arm depends on the prompt.

    Observation space, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    The prompt is a context of some bits; choose an arm for this context. Each arm's mean reward is a linear function of the
    bits, and the function is the same in all problems. If there are several `pulls`, the answer to a pull is the context, the
    pull's number and, if rewards are 0 and 1, the reward, such as `0110 2=1:`. The means are in
    `gymnasium.make("rlvr/ContextualBandit-v0").unwrapped.streams.dataset.arm_means`; the best expected return is the highest
    mean, averaged over contexts, times the number of pulls.

    ## Action Space
    The tokens of the arms `a`, `b`, `c` and so on; no other token is legal. With the default tokenizer `"char"` these are the
    tokens from 1 on.

    ## Starting State
    `0110:`: the context, drawn uniformly.

    ## Reward
    The arm's reward: 1 with a probability equal to the arm's mean in the context, else 0; or normally distributed around this
    mean. The reward is drawn from the problem's seed, independently for each arm and pull. The verdict is `CORRECT` if the last
    arm pulled is one of the best, whatever its reward was.

    ## Episode End
    Termination: `pulls` arms were pulled.

    ## Information
    `info["verdict"].detail["regret"]` is the mean of the context's best arm minus the mean of the pulled arm, summed over the
    episode's pulls.

    ## Arguments
    All of `rlvr_envs.Settings`, `pulls` (1; from 1 to 100, all in one context), `bits` (4; from 1 to 8), `arms` (4; from 2 to
    26), `instance` (0; seeds the drawing of the weights), `rewards` (`"bernoulli"` or `"normal"`), `noise` (1; for normal
    rewards), `seed` (of contexts and chance events) and `size` of the data set. Defaults: `split="train"`, `tokenizer="char"`,
    `max_new_tokens=pulls`, which is also the minimum.

    Agents with a table (`rlvr train linucb`, `q-learning`, ...) play `rlvr/ContextualBanditState-v0`, which has numbers instead
    of tokens. `rlvr/ContextualBanditState-v0` takes the arguments of the data set (`pulls`, `bits`, `arms`, `instance`,
    `rewards`, `noise`, `seed`, `size`), `split`, and `max_steps` instead of `max_new_tokens`, but no argument of
    `rlvr_envs.Settings`.
    """

    task: ClassVar[TaskSpec] = process_task(ContextualBandit)


class ContextualBanditStateEnv(StateEnv):
    """`rlvr/ContextualBandit-v0` with numbers instead of tokens: each state is a context with the last pull.

    Spaces, information and version history are those of `rlvr_envs.StateEnv`.

    ## Description
    The problems and rewards of `rlvr/ContextualBandit-v0`. Before the first pull, the state is the context read as a binary
    number; the last two states show whether the last arm was a best arm. The means are linear in `features`, f64[s d + 1]: 1,
    and then 1 or -1 for each bit.

    ## Action Space
    0 to `arms` - 1.

    ## Information
    `step` gives `regret`: the mean of the context's best arm minus the mean of the arm just pulled.

    ## Arguments
    The arguments of the data set of `rlvr/ContextualBandit-v0`, `split`, and `max_steps` (`pulls`, which is also the minimum).
    """

    problems: ClassVar[type[ContextualBandit]] = ContextualBandit

    @property
    def features(self) -> NDArray[np.float64]:
        """The features of each state, f64[s d + 1]."""
        assert isinstance(self.dataset, ContextualBandit)
        return self.dataset.features
