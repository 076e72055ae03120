"""Beam search for the likeliest completion, or nearly so (Lowerre 1976; Graves 2012, arXiv:1211.3711, section 2.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from gymnasium.vector import VectorEnv

import rlvr_envs
from agents.policies.trainable import TrainablePolicy
from agents.rollouts.loop import Episode
from agents.rollouts.search import SearchResult
from agents.rollouts.states import own_streams
from agents.search.guides import manifest_of
from agents.search.prefixes import next_logprobs, played, rating_policy
from agents.types import Policy
from verifiers import AtLeast, Between, check_types


@dataclass(frozen=True)
class _Prefix:
    """Tokens of the policy, and the state that they lead to."""

    state: rlvr_envs.StreamState
    tokens: tuple[int, ...] = ()
    logprob: float = 0.0


@dataclass
class _Beams:
    """A running search."""

    live: list[_Prefix]
    ended: list[_Prefix] = field(default_factory=list)
    rated: int = 0


@dataclass(frozen=True)
class Beam:
    """Keeps the likeliest prefixes of each length, and chooses the likeliest finished completion.

    The guide is the policy's own probabilities, at the policy's temperature (1 for a greedy policy). If the beam is wide enough
    for all prefixes, the result is the likeliest completion; with a width of 1, the result is the greedy completion. Nothing is
    drawn.

    Raises:
        InvalidArgumentError: If the width is less than 1, or the exponent is not from 0 to 1.
    """

    width: Annotated[int, AtLeast(1)] = 4
    """Number of prefixes to keep."""
    length_exponent: Annotated[float, Between(0, 1)] = 0.0
    """Exponent of the length. To compare completions, the log-probability is divided by the number of tokens to this power: 0
    compares probabilities, which favours short completions; 1 compares the mean over tokens."""

    oracle: ClassVar[bool] = False
    draws: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_types(self)

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The settings as plain data."""
        return {**manifest_of("beam", self), "guide": "likelihood"}

    def find(
        self, env: VectorEnv[Any, Any, Any], policy: Policy, episodes: Sequence[Episode]
    ) -> Iterator[tuple[int, SearchResult]]:
        """Search for each episode in turn, and yield its index and the likeliest completion.

        Raises:
            InvalidArgumentError: If the policy gives no probabilities, or the environment has no states.
        """
        rating = rating_policy(policy)
        for index, episode in enumerate(episodes):
            with own_streams(env, self.width, judged=False) as streams:
                streams.reset([0], [None], [episode.problem], states=[episode.state])
                beams = _Beams([_Prefix(streams.get_state(0))])
                while beams.live:
                    self._grow(beams, streams, rating)
            best = max(beams.ended, key=self._worth)
            yield index, SearchResult(played(env, episode, best.tokens), self._worth(best), beams.rated)

    def _worth(self, prefix: _Prefix) -> float:
        return prefix.logprob / float(len(prefix.tokens) ** self.length_exponent)

    def _grow(self, beams: _Beams, streams: rlvr_envs.TokenStreams, policy: TrainablePolicy) -> None:
        """Append a token to the live prefixes, and keep the likeliest prefixes."""
        live = beams.live
        _place(streams, [prefix.state for prefix in live])
        masks = streams.legal_masks()
        rated = next_logprobs(
            policy, [prefix.state.tokens for prefix in live], None if masks is None else masks[: len(live)]
        )
        beams.rated += len(live)
        totals = rated + np.array([prefix.logprob for prefix in live])[:, None]
        order = np.argsort(-totals, axis=None, kind="stable")[: self.width]
        chosen = [divmod(int(flat), totals.shape[1]) for flat in order if np.isfinite(totals.flat[flat])]
        _place(streams, [live[parent].state for parent, _ in chosen])
        tokens = np.zeros((streams.num_streams, 1), dtype=np.int64)
        tokens[: len(chosen), 0] = [token for _, token in chosen]
        streams.advance(tokens, (np.arange(streams.num_streams) < len(chosen)).astype(np.int64))
        grown = [
            _Prefix(streams.get_state(row), (*live[parent].tokens, token), float(totals[parent, token]))
            for row, (parent, token) in enumerate(chosen)
        ]
        beams.ended += [prefix for prefix in grown if not prefix.state.live]
        beams.live = [prefix for prefix in grown if prefix.state.live]
        if self.length_exponent == 0 and beams.ended:  # a longer prefix is never likelier
            bound = max(prefix.logprob for prefix in beams.ended)
            beams.live = [prefix for prefix in beams.live if prefix.logprob > bound]


def _place(streams: rlvr_envs.TokenStreams, states: Sequence[rlvr_envs.StreamState]) -> None:
    for row, state in enumerate(states):
        streams.set_state(row, state)
