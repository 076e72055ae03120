"""`Bandit`: choose one of several arms."""

from __future__ import annotations

import dataclasses
import functools
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated, Any, ClassVar, Literal

from rlvr_envs.envs import StateEnv, TaskEnv, TaskSpec, process_task
from rlvr_envs.worlds.process import Branch, Process, uniforms
from rlvr_envs.worlds.process_data import ProcessDataset
from verifiers import FINITE, AtLeast, Between, InvalidArgumentError, Problem

Rewards = Literal["bernoulli", "normal"]
MOST_ARMS = len(string.ascii_lowercase)
BEST, OTHER = "best", "other"


MOST_PULLS = 100


def bandit_process(
    contexts: Sequence[str], means: Sequence[Sequence[float]], rewards: Rewards, noise: float, pulls: int
) -> Process:
    """The decision process of episodes of one or several pulls of the same bandit.

    The first states are the contexts, in which no arm has been pulled yet. After pull t, the state shows t and, if rewards are
    0 and 1, the pull's reward, such as `"0110 2=1"`. The last two states mean that the episode is over: in one the last pull
    was of a best arm, in the other of another arm.
    """
    earned = ("",) if rewards == "normal" else ("=0", "=1")
    names, table = list(contexts), []
    names += [f"{context} {t}{r}".strip() for t in range(1, pulls) for context in contexts for r in earned]
    end, starts = len(names), range(len(contexts))

    def branches(made: int, context: int, arm: int) -> tuple[Branch, ...]:
        mean, last = means[context][arm], made == pulls - 1
        first = (
            end + (mean < max(means[context]))
            if last
            else len(contexts) * (1 + made * len(earned)) + context * len(earned)
        )
        if rewards == "normal":
            return (Branch(1.0, first, mean, noise),)
        return (Branch(mean, first + (not last), 1.0), Branch(1 - mean, first, 0.0))

    for made in range(pulls):
        for context in starts:
            row = tuple(branches(made, context, arm) for arm in range(len(means[context])))
            table += [row] * (1 if made == 0 else len(earned))
    arms = string.ascii_lowercase[: len(means[0])]
    return Process((*names, BEST, OTHER), arms, (*table, (), ()), frozenset({end}), bandit=True)


def check_rewards(rewards: str, noise: float) -> None:
    """Check the distribution of rewards.

    Raises:
        InvalidArgumentError: If `noise` is given for rewards that have no noise.
    """
    if rewards == "bernoulli" and noise != 1:
        raise InvalidArgumentError(
            f"noise={noise} has no effect on rewards 0 and 1: set rewards='normal', or leave it out"
        )


PULLS_IN_WORDS = (
    "Each arm pays at random, and some pay more on average than others. Number of pulls: {}. Each of your turns is the letter "
    "of an arm, alone. Which arm do you pull?"
)
"""The description of a bandit for a chat, in which the number of pulls is to be filled in."""


@dataclass(frozen=True)
class Bandit(ProcessDataset):
    """Pulls of one bandit. A problem is one or several pulls with the problem's own chance events.

    Args:
        split: `"train"` or `"test"`: the same bandit, with different chance events.
        seed: Seed of the chance events.
        size: Number of problems; by default 100 000 for train and 1 000 for test.
        arms: Number of arms, 2 to 26.
        instance: Number of the bandit, which is the seed for drawing the means.
        means: The mean of each arm, given instead of `instance`.
        rewards: `"bernoulli"` for rewards 1 and 0, with means drawn uniformly from [0, 1], or `"normal"` for normally
            distributed rewards, with means drawn from N(0, 1) (the testbed of Sutton & Barto 2018, section 2.3).
        noise: Standard deviation of normal rewards.
        pulls: Number of pulls in an episode, 1 to 100.
    """

    name: ClassVar[str] = "bandit"

    arms: Annotated[int, Between(2, MOST_ARMS)] = 5
    instance: Annotated[int, AtLeast(0)] = 0
    means: Annotated[tuple[float, ...] | None, FINITE] = None
    rewards: Rewards = "bernoulli"
    noise: Annotated[float, AtLeast(0)] = 1.0
    pulls: Annotated[int, Between(1, MOST_PULLS)] = 1

    @functools.cached_property
    def process(self) -> Process:
        """A state before the first pull, states between two pulls, and two final states; see `bandit_process`."""
        return bandit_process([""], [self.arm_means], self.rewards, self.noise, self.pulls)

    @functools.cached_property
    def arm_means(self) -> tuple[float, ...]:
        """The mean reward of each arm."""
        check_rewards(self.rewards, self.noise)
        if self.means is None:
            drawn = (uniforms(self.instance, 0, arm)[0] for arm in range(self.arms))
            return tuple(NormalDist().inv_cdf(number) if self.rewards == "normal" else number for number in drawn)
        if not 2 <= len(self.means) <= MOST_ARMS:
            raise InvalidArgumentError(f"means must be 2 to {MOST_ARMS} finite numbers, got {self.means}")
        if self.arms not in (type(self).arms, len(self.means)):
            raise _other_arms(self.means, self.arms)
        if self.instance != type(self).instance:
            raise InvalidArgumentError(
                f"instance={self.instance} has no effect, since means are drawn from it, and means are given: leave one of "
                "them out"
            )
        if self.rewards == "bernoulli" and not all(0 <= mean <= 1 for mean in self.means):
            raise InvalidArgumentError(
                f"means of rewards 0 and 1 must be from 0 to 1, got {self.means}: or set rewards='normal'"
            )
        return tuple(map(float, self.means))

    def in_words(self, problem: Problem) -> str:
        """The rules in words, and the start of the episode."""
        return f"Pull one of the arms {', '.join(self.process.actions)}. {PULLS_IN_WORDS.format(self.pulls)}"

    @property
    def starts(self) -> Mapping[int, float]:
        """The state before the first pull."""
        return {0: 1.0}

    @property
    def max_new_tokens(self) -> int:
        """The number of pulls."""
        return self.pulls

    @property
    def needed_actions(self) -> int:
        """The number of pulls in every episode."""
        return self.pulls

    def gold(self, state: int) -> str:
        """The best arm, once for every pull; if several arms are best, the first best arm."""
        means = self.arm_means
        return self.process.actions[means.index(max(means))] * self.pulls


def _other_arms(means: Sequence[float], arms: object) -> InvalidArgumentError:
    return InvalidArgumentError(f"means has {len(means)} arms and arms is {arms}: leave arms out")


def _check_arms(options: Mapping[str, Any]) -> None:
    """Check that the number of arms fits the means.

    The data set itself can't check this, since to it the default number means that the number was omitted.
    """
    means = options.get("means")
    if isinstance(means, tuple) and options.get("arms", len(means)) != len(means):
        raise _other_arms(means, options["arms"])


def load_bandit(**options: Any) -> Bandit:
    """Make the data set from the arguments of an environment.

    Raises:
        InvalidArgumentError: If arguments are out of range, or contradict each other.
    """
    _check_arms(options)
    return Bandit(**options)


class BanditEnv(TaskEnv):
    """Pulls of a bandit with several arms.

    Observation space, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Choose an arm. A problem is one pull, or several pulls if `pulls` is set. All problems are pulls of the same bandit, so that
    learning from one problem helps with the next problem.
    `gymnasium.make("rlvr/Bandit-v0").unwrapped.streams.dataset.arm_means` holds the arms' means; the best expected return is
    the highest mean times the number of pulls.

    If there are several pulls, the answer to a pull is the pull's number and, if rewards are 0 and 1, the reward, such as
    `2=1:`. Normal rewards are given but not shown.

    ## Action Space
    The tokens of the arms `a`, `b`, `c` and so on; no other token is legal. With the default tokenizer `"char"` these are the
    tokens from 1 on.

    ## Starting State
    Always `:`, since there is no visible difference between the arms.

    ## Reward
    The arm's reward: 1 with a probability equal to the arm's mean, else 0; or normally distributed around the mean. The reward
    is drawn from the problem's seed, independently for each arm and pull. The verdict is `CORRECT` if the last arm pulled is
    one of the best, whatever its reward was.

    ## Episode End
    Termination: `pulls` arms were pulled.

    ## Information
    `info["verdict"].detail["regret"]` is the best arm's mean minus the pulled arm's mean, summed over the episode's pulls.

    ## Arguments
    All of `rlvr_envs.Settings`, `pulls` (1; from 1 to 100), `arms` (5; from 2 to 26), `instance` (0; seeds the drawing of the
    means), `means` (such as `(0.2, 0.8)`, instead of `arms` and `instance`), `rewards` (`"bernoulli"` or `"normal"`), `noise`
    (1; for normal rewards), `seed` (of the chance events) and `size` of the data set. Defaults: `split="train"`,
    `tokenizer="char"`, `max_new_tokens=pulls`, which is also the minimum.

    Agents with a table (`rlvr train ucb1`, `q-learning`, ...) play `rlvr/BanditState-v0`, which has numbers instead of tokens.
    `rlvr/BanditState-v0` takes the arguments of the data set (`pulls`, `arms`, `instance`, `means`, `rewards`, `noise`, `seed`,
    `size`), `split`, and `max_steps` instead of `max_new_tokens`, but no argument of `rlvr_envs.Settings`.
    """

    task: ClassVar[TaskSpec] = dataclasses.replace(process_task(Bandit), load=load_bandit)


class BanditStateEnv(StateEnv):
    """`rlvr/Bandit-v0` with numbers instead of tokens.

    Spaces, information and version history are those of `rlvr_envs.StateEnv`.

    ## Description
    The problems and rewards of `rlvr/Bandit-v0`. In state 0 no arm has been pulled yet, and the last two states show whether
    the last arm was a best arm. If an episode has several pulls, `process.states` describes the states between them.

    ## Action Space
    0 to `arms` - 1.

    ## Information
    `step` gives `regret`: the best arm's mean minus the mean of the arm just pulled.

    ## Arguments
    The arguments of the data set of `rlvr/Bandit-v0`, `split`, and `max_steps` (`pulls`, which is also the minimum).
    """

    problems: ClassVar[type[Bandit]] = Bandit

    def __init__(self, **options: Any) -> None:
        _check_arms(options)
        super().__init__(**options)
