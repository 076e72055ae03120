"""`Sampling`: plays the episodes of training steps, and counts them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from gymnasium.vector import VectorEnv

from agents.distributed.ranks import MOST_GATHERING, Ranks
from agents.distributed.rollouts import play_divided
from agents.learn.algorithm import Algorithm
from agents.learn.carried import CarriedGroup, Unfinished, collect_carried, num_policy_tokens
from agents.learn.checks import objection_to_rows
from agents.learn.sampled import Sampled
from agents.learn.verifier_errors import SeenEpisodes
from agents.rollouts.loop import Episode, PartialEpisode, play_on, rollout
from agents.rollouts.problem_order import episodes_of_step
from agents.rollouts.problem_parts import GroupOutcome, group_outcomes, problem_parts
from agents.rollouts.problem_samplers import ProblemSampler
from agents.types import Action, Policy, Sampler, Trajectory


class SamplingStopped(Exception):
    """Raised in the sampling thread if the thread has to stop within a batch."""


class Sampling:
    """Plays episodes with one sampler; with several ranks, each rank plays its own groups.

    Args:
        algorithm: Determines which episodes a step has, and which can be trained on.
        sampler: The policy that samples.
        ranks: The processes that play together.
        problems: Returns the sampler that chooses problems, which has the observations up to the sampled step.
        on_errored: Called with each episode on which the verifier broke, as soon as it ends.
        stopped: An event that makes the sampler raise `SamplingStopped` once it is set.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        sampler: Sampler,
        ranks: Ranks,
        problems: Callable[[], ProblemSampler],
        *,
        on_errored: Callable[[Trajectory], None] | None = None,
        stopped: threading.Event | None = None,
    ) -> None:
        self.algorithm, self.sampler, self.ranks = algorithm, sampler, ranks
        self._problems, self._outcomes = problems, list[GroupOutcome]()
        self._on_errored, self._stopped = on_errored, stopped
        self._seen, self._tokens = SeenEpisodes(), 0  # of the current step

    def sample(self, env: VectorEnv[Any, Any, Any], first_round: int, carried: Sequence[CarriedGroup] = ()) -> Sampled:
        """Sample a batch with the sampler's current weights, and measure it."""
        started, verified, config = time.perf_counter(), _verification_seconds(env), self.algorithm.config
        self._seen, self._tokens, self._outcomes = SeenEpisodes(), 0, []
        with self.sampler.sampling() as metrics:
            if config.carried_groups:
                collected = collect_carried(self, config, env, first_round, carried)
                trajectories, rounds, rest = collected.trajectories, 1, collected.carried
                metrics = {**metrics, **collected.metrics}
                self._outcomes = group_outcomes(trajectories)
            else:
                (trajectories, rounds), rest = self.algorithm.sample_batch(self, env, first_round), ()
        return Sampled(
            trajectories,
            rounds,
            self._tokens,
            self._seen,
            dict(metrics),
            time.perf_counter() - started,
            None if verified is None else (_verification_seconds(env) or 0.0) - verified,
            rest,
            tuple(self._outcomes),
        )

    def episodes(self, env: VectorEnv[Any, Any, Any], number: int) -> list[Episode]:
        """Return the episodes of round `number`, which depend only on the number, the seed and the observations of problems."""
        config = self.algorithm.config
        problems = self._problems().choose(problem_parts(env), number, config.problems_per_step)
        return episodes_of_step(env, number, config.problems_per_step, config.group_size, config.seed, problems)

    def play(
        self, env: VectorEnv[Any, Any, Any], episodes: Sequence[Episode], policy: Policy | None = None
    ) -> list[Trajectory]:
        """Play episodes with the sampler, or with another policy that uses its weights; check them and count their tokens.

        Each rank plays its own groups, and all return all trajectories, in the order of `episodes`.
        """
        acting = self._stoppable(policy or self.sampler)

        def play_own(mine: Sequence[Episode]) -> list[Trajectory]:
            return rollout(env, acting, mine, on_episode=self._ended)

        played = play_divided(self.ranks, episodes, play_own, seen=self._see, rows=self._gathers_rows)
        self._tokens += num_policy_tokens(played)
        if policy is None and all(episode.state is None for episode in episodes):
            self._outcomes += group_outcomes(played)
        return played

    def play_on(
        self, env: VectorEnv[Any, Any, Any], episodes: Sequence[Unfinished], policy: Policy, tokens: int
    ) -> list[Trajectory | PartialEpisode]:
        """Play episodes as `play` does, and interrupt each after `tokens` further tokens of the policy."""
        acting = self._stoppable(policy)

        def play_own(mine: Sequence[Unfinished]) -> list[Trajectory | PartialEpisode]:
            done: dict[int, Trajectory | PartialEpisode] = {}
            for index, played in play_on(env, acting, mine, tokens):
                done[index] = played
                if isinstance(played, Trajectory):
                    self._ended(played)
            return [done[index] for index in range(len(mine))]

        played = play_divided(self.ranks, episodes, play_own, seen=self._see)
        self._tokens += num_policy_tokens(played) - num_policy_tokens(episodes)
        return played

    @property
    def _gathers_rows(self) -> bool:
        """Whether each rank trains on the episodes that it played, and gets other ranks' episodes without tokens."""
        wanted = self.ranks.gathers
        if wanted == "auto":
            return self.ranks.size > MOST_GATHERING and objection_to_rows(self.algorithm) is None
        return wanted == "rows" and self.ranks.size > 1

    def _stoppable(self, policy: Policy) -> Policy:
        return policy if self._stopped is None else _StoppablePolicy(policy, self._stopped)

    def _ended(self, trajectory: Trajectory) -> None:
        """Count and check an episode that this rank has played."""
        self._see(trajectory)
        self.algorithm.check_episode(trajectory)

    def _see(self, played: Trajectory | PartialEpisode) -> None:
        if isinstance(played, Trajectory):
            self._seen.see(played)
            if played.errored and self._on_errored is not None:
                self._on_errored(played)


class _StoppablePolicy:
    """Wraps a policy so that it refuses to act once an event is set; all other members are those of the policy."""

    def __init__(self, policy: Policy, stopped: threading.Event) -> None:
        self._policy, self._stopped = policy, stopped

    def act(self, *arguments: Any, **keywords: Any) -> Action:
        if self._stopped.is_set():
            raise SamplingStopped
        return self._policy.act(*arguments, **keywords)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)


def _verification_seconds(env: VectorEnv[Any, Any, Any]) -> float | None:
    """The seconds that an environment reports for verification; None if it reports none."""
    seconds = getattr(env.unwrapped, "verification_seconds", None)
    return None if seconds is None else float(seconds)
