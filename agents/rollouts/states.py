"""States within played episodes, to start other episodes from; a state is reached by playing the tokens before it again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

import rlvr_envs
from agents.types import Trajectory
from verifiers import InvalidArgumentError


def states_before(
    env: VectorEnv[Any, Any, Any], played: Sequence[tuple[Trajectory, Sequence[int]]]
) -> list[list[rlvr_envs.StreamState]]:
    """Capture the states before some tokens of episodes, without disturbing the episodes that the environment is playing.

    No verifier is called. Tools and other interactions answer again, and have to answer as before.

    Args:
        env: The environment in which the episodes were played.
        played: Episodes, each with positions of tokens that its policy chose, in ascending order.

    Raises:
        InvalidArgumentError: If the environment is not a `TokenVectorEnv`, or an episode does not belong to it.
    """
    with own_streams(env, 1) as streams:
        return [list(_states(streams, trajectory, positions)) for trajectory, positions in played]


def require_states(env: VectorEnv[Any, Any, Any]) -> rlvr_envs.TokenVectorEnv:
    """Return the environment below its wrappers if episodes can start from its states.

    Raises:
        InvalidArgumentError: If the environment is not a `TokenVectorEnv`, since no other environment has states.
    """
    world = env.unwrapped
    if isinstance(world, rlvr_envs.TokenVectorEnv):
        return world
    raise InvalidArgumentError(
        f"episodes start from captured states in a TokenVectorEnv alone, which {type(world).__name__} is not"
    )


def own_streams(
    env: VectorEnv[Any, Any, Any], num_streams: int, *, judged: bool = True
) -> contextlib.closing[rlvr_envs.TokenStreams]:
    """Further streams over the problems of an environment, with its rules; `with` closes them.

    Args:
        env: The environment, which is not changed.
        num_streams: Number of streams.
        judged: False to call no verifier when an episode ends.
    """
    return contextlib.closing(require_states(env).streams.again(num_streams, judged=judged))


def _states(
    streams: rlvr_envs.TokenStreams, trajectory: Trajectory, positions: Sequence[int]
) -> Iterator[rlvr_envs.StreamState]:
    streams.reset([0], [None], [trajectory.problem])
    context = 0  # where the context in view begins
    _check_same(streams, trajectory)
    for position in positions:
        while context + streams.length[0] < position:
            start = context + int(streams.length[0])
            inserted = np.flatnonzero(~trajectory.policy_mask[start:position])
            end = start + int(inserted[0]) if len(inserted) else position
            transition = streams.advance(trajectory.tokens[None, start:end].astype(np.int64))
            if transition.new_context[0]:
                context = start + int(transition.consumed[0])
            _check_same(streams, trajectory, context, least=start + 1)
        yield streams.get_state(0)


def _check_same(streams: rlvr_envs.TokenStreams, trajectory: Trajectory, context: int = 0, least: int = 1) -> None:
    """Check that the tokens in view are the episode's from position `context` on, and reach position `least`."""
    tokens: NDArray[np.int32] = streams.tokens[0, : streams.length[0]]
    end = context + len(tokens)
    if end < least or not np.array_equal(tokens, trajectory.tokens[context:end]):
        raise InvalidArgumentError(
            f"the episode of problem {trajectory.problem_id!r} goes another way when its tokens are played again: it must be "
            "one of this environment, from the prompt on, whose interactions are pure functions of the dialogue"
        )
