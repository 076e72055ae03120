"""MCTS: Monte Carlo tree search over tokens, with PUCT and the policy's own probabilities as priors.

This is the PUCT of AlphaGo Zero (Silver et al. 2017, Nature 550, "Search algorithm"; Rosin 2011). From a state s, the search
tries the token a with the largest

    Q(s, a) + c P(a | s) sqrt(sum_b N(s, b)) / (1 + N(s, a))

where N counts visits, Q is the mean score of the visits, and P are the policy's probabilities. When a token is tried for the
first time, the policy goes on to the end of the episode, and the guide's score of this episode is passed up to the root. As in
Coulom 2006, the rest of the episode replaces a value network.

Departures from the paper: Q is scaled to 0 to 1 by the least and greatest score so far (as in MuZero, arXiv:1911.08265,
equation 5), so that c fits any rewards. The Q of a token that has not been tried is its parent's mean. Several tokens are tried
at once: an unfinished try counts as a visit with the least score so far ("virtual loss", Chaslot et al. 2008), so that the next
simulations choose other tokens. Since environments are deterministic, the result is the best episode that was tried, not the
most visited episode.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

import rlvr_envs
from agents.policies.trainable import TrainablePolicy
from agents.rollouts.loop import Episode, rollout
from agents.rollouts.search import SearchResult
from agents.rollouts.states import own_streams
from agents.search.guides import ORACLE, Guide, check_guide, guide_scores, manifest_of
from agents.search.prefixes import Scripted, next_logprobs, played, rating_policy
from agents.seeding import mix
from agents.types import Policy, Trajectory
from verifiers import AtLeast, check_types


@dataclass(frozen=True)
class MCTS:
    """Tree search with a budget of simulations.

    Raises:
        InvalidArgumentError: If a number is out of range, or the guide is invalid.
    """

    simulations: Annotated[int, AtLeast(1)]
    """Number of simulations. Each simulation tries a token at the end of a path from the root."""
    guide: Guide
    """The guide, which scores an episode: `"oracle"`, or a verifier such as a reward model."""
    batch: Annotated[int, AtLeast(1)] = 8
    """Number of simulations that run at once."""
    exploration: Annotated[float, AtLeast(0)] = 1.25
    """The factor c of the exploration term."""
    children: Annotated[int, AtLeast(1)] = 16
    """Number of tokens to consider after each prefix, which are the likeliest tokens."""

    def __post_init__(self) -> None:
        check_types(self)
        check_guide(self.guide, [ORACLE])

    @property
    def oracle(self) -> bool:
        """Whether the guide is the verifier that scores the result."""
        return self.guide == ORACLE

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The settings as plain data."""
        return manifest_of("mcts", self)

    def find(
        self, env: VectorEnv[Any, Any, Any], policy: Policy, episodes: Sequence[Episode]
    ) -> Iterator[tuple[int, SearchResult]]:
        """Search for each episode in turn, and yield its index and the best episode that was tried.

        Raises:
            InvalidArgumentError: If the policy gives no probabilities, the environment has no states, or the guide breaks.
        """
        rating = rating_policy(policy)
        for index, episode in enumerate(episodes):
            with own_streams(env, self.batch, judged=False) as streams:
                tree = _Tree(self, env, policy, rating, streams, episode)
                while tree.simulations < self.simulations:
                    tree.simulate(min(self.batch, self.simulations - tree.simulations))
            yield index, SearchResult(played(env, episode, tree.best_tokens), tree.best, tree.tokens)


@dataclass(eq=False)
class _Edge:
    """A token after a state."""

    parent: _Node
    token: int
    prior: float
    visits: int = 0
    total: float = 0.0
    """The sum of the scores of the token's visits."""
    pending: int = 0
    """Number of unfinished simulations that pass through the token."""
    child: _Node | None = None
    final: float | None = None
    """The score if the token ends the episode; otherwise None."""


@dataclass(eq=False)
class _Node:
    """A state that was reached."""

    state: rlvr_envs.StreamState
    tokens: tuple[int, ...]
    """The policy's own tokens since the start of the search."""
    earned: float
    """The environment's rewards for these tokens before the episode's end."""
    above: _Edge | None
    edges: list[_Edge] = field(default_factory=list)


class _Tree:
    """One running search."""

    def __init__(
        self,
        settings: MCTS,
        env: VectorEnv[Any, Any, Any],
        policy: Policy,
        rating: TrainablePolicy,
        streams: rlvr_envs.TokenStreams,
        episode: Episode,
    ) -> None:
        self._settings, self._env, self._policy, self._rating = settings, env, policy, rating
        self._streams, self._episode = streams, episode
        self._numbers = itertools.count()
        self.simulations = 0
        self.tokens = 0
        self.best, self.best_tokens = -math.inf, ()
        self._least, self._greatest = math.inf, -math.inf
        streams.reset([0], [None], [episode.problem], states=[episode.state])
        self._root = _Node(streams.get_state(0), (), 0.0, None)
        self._expand([self._root])

    best_tokens: tuple[int, ...]

    def simulate(self, count: int) -> None:
        """Choose some paths from the root, try the last token of each path, and add the states after these tokens."""
        chosen = [self._select() for _ in range(count)]
        self.simulations += count
        known = [edge.final for edge in chosen]
        fresh = [edge for edge, score in zip(chosen, known, strict=True) if score is None]
        scores = iter(self._try(fresh) if fresh else [])
        for edge, score in zip(chosen, known, strict=True):
            self._pass_up(edge, next(scores) if score is None else score)
        self._grow([edge for edge in dict.fromkeys(fresh) if edge.final is None])

    # Choosing

    def _select(self) -> _Edge:
        """Follow PUCT from the root to a token that ends the episode, or that no finished simulation has tried."""
        node = self._root
        while True:
            edge = self._best_edge(node)
            edge.pending += 1
            if edge.child is None:
                return edge
            node = edge.child

    def _best_edge(self, node: _Node) -> _Edge:
        edges = node.edges
        visits = np.array([edge.visits + edge.pending for edge in edges])
        done, totals = np.array([edge.visits for edge in edges]), np.array([edge.total for edge in edges])
        if not done.any():
            values = np.zeros(len(edges))
        else:
            mean = totals.sum() / done.sum()
            low = self._least
            pending = totals + (visits - done) * low
            values = self._scaled(np.where(visits > 0, pending / np.maximum(visits, 1), mean))
        priors = np.array([edge.prior for edge in edges])
        bonus = self._settings.exploration * priors * math.sqrt(max(int(visits.sum()), 1)) / (1 + visits)
        return edges[int(np.argmax(values + bonus))]

    def _scaled(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        spread = self._greatest - self._least
        return (values - self._least) / spread if spread > 0 else np.zeros(len(values))

    # Trying

    def _try(self, edges: Sequence[_Edge]) -> list[float]:
        """Score an episode for each token: the episode continues with this token, and then the policy chooses."""
        seeds = [self._next_seed() for _ in edges]
        scripts = {seed: [edge.token] for seed, edge in zip(seeds, edges, strict=True)}
        episodes = [
            Episode(self._episode.problem, 0, seed, state=edge.parent.state)
            for seed, edge in zip(seeds, edges, strict=True)
        ]
        trajectories = rollout(self._env, Scripted(scripts, self._policy), episodes)
        self.tokens += sum(int(one.policy_mask.sum()) for one in trajectories)
        scores = self._scores(edges, trajectories)
        for edge, trajectory, score in zip(edges, trajectories, scores, strict=True):
            own = trajectory.tokens[trajectory.policy_mask].tolist()
            if len(own) == 1:
                edge.final = score
            if score > self.best or not self.best_tokens:
                self.best, self.best_tokens = score, (*edge.parent.tokens, *own)
        return scores

    def _scores(self, edges: Sequence[_Edge], trajectories: Sequence[Trajectory]) -> list[float]:
        """The guide's score of each episode; the least score so far if the episode's verifier broke."""
        scores = guide_scores(self._env, self._settings.guide, trajectories)
        if self._settings.oracle:
            scores = [score + edge.parent.earned for score, edge in zip(scores, edges, strict=True)]
        least = min([self._least, *filter(math.isfinite, scores)])
        scores = [score if math.isfinite(score) else least if math.isfinite(least) else 0.0 for score in scores]
        self._least, self._greatest = min([self._least, *scores]), max([self._greatest, *scores])
        return scores

    def _next_seed(self) -> int:
        """The sampling seed of the next episode to try."""
        words = np.array([self._episode.seed], dtype=np.uint64), np.array([next(self._numbers)], dtype=np.uint64)
        return int(mix(mix(words[0]) ^ mix(words[1]))[0])

    @staticmethod
    def _pass_up(edge: _Edge | None, score: float) -> None:
        """Count a visit of a token and of all tokens on the path to the root."""
        while edge is not None:
            edge.visits, edge.total, edge.pending = edge.visits + 1, edge.total + score, edge.pending - 1
            edge = edge.parent.above

    # Growing

    def _grow(self, edges: Sequence[_Edge]) -> None:
        """Add the states after some tokens."""
        streams = self._streams
        for row, edge in enumerate(edges):
            streams.set_state(row, edge.parent.state)
        tokens = np.zeros((streams.num_streams, 1), dtype=np.int64)
        tokens[: len(edges), 0] = [edge.token for edge in edges]
        transition = streams.advance(tokens, (np.arange(streams.num_streams) < len(edges)).astype(np.int64))
        for row, edge in enumerate(edges):
            earned = edge.parent.earned + float(transition.reward[row])
            edge.child = _Node(streams.get_state(row), (*edge.parent.tokens, edge.token), earned, edge)
        self._expand([edge.child for edge in edges if edge.child is not None])

    def _expand(self, nodes: Sequence[_Node]) -> None:
        """Give nodes an edge for each of the likeliest next tokens, whose probabilities are normalised to sum to 1."""
        streams = self._streams
        for row, node in enumerate(nodes):
            streams.set_state(row, node.state)
        masks = streams.legal_masks()
        legal = None if masks is None else masks[: len(nodes)]
        rated = next_logprobs(self._rating, [node.state.tokens for node in nodes], legal)
        self.tokens += len(nodes)
        for node, logprobs in zip(nodes, rated, strict=True):
            likeliest = np.argsort(-logprobs, kind="stable")[: self._settings.children]
            likeliest = likeliest[np.isfinite(logprobs[likeliest])]
            priors = np.exp(logprobs[likeliest] - np.logaddexp.reduce(logprobs[likeliest]))
            node.edges = [
                _Edge(node, token, prior) for token, prior in zip(likeliest.tolist(), priors.tolist(), strict=True)
            ]
