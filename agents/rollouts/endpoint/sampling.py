"""Episodes of messages, held as conversations with an endpoint, and the judged samples that result."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

import rlvr_envs
import verifiers
from agents.rollouts.endpoint.client import Endpoint, EndpointConfig, RequestFailure, TextRequest
from agents.runs.evaluation_record import Sample, SampledRow
from verifiers import InvalidArgumentError, Outcome, Verdict


def endpoint_env(env: VectorEnv[Any, Any, Any], endpoint: Endpoint) -> rlvr_envs.MessageEnv:
    """The episodes of an environment in the form that an endpoint takes."""
    world = env.unwrapped
    if not isinstance(world, rlvr_envs.TokenVectorEnv):
        raise InvalidArgumentError(
            f"an endpoint answers the problems of a TokenVectorEnv, but this is a {type(world).__name__}: make the environment "
            "a subclass of rlvr_envs.TaskEnv"
        )
    if world.streams.rules.verifier is None and world.streams.rules.interaction is None:
        raise InvalidArgumentError("an endpoint needs an environment with a verifier, or with rewards for its turns")
    return message_env(world.streams, endpoint.config)


def message_env(streams: rlvr_envs.TokenStreams, config: EndpointConfig) -> rlvr_envs.MessageEnv:
    """The episodes of some streams in the form that an endpoint takes.

    Raises:
        InvalidArgumentError: If the streams have rules about tokens.
    """
    if config.route == "completions":
        return rlvr_envs.MessageEnv(streams, "text")
    return rlvr_envs.MessageEnv(streams, "calls" if config.tools == "protocol" else "messages")


class Conversation:
    """An episode as requests, each with a seed derived from the sample's; the episode begins with the first request."""

    def __init__(self, env: rlvr_envs.MessageEnv, problem: int, seed: int) -> None:
        self._env = env
        self._problem = problem
        self._seed = seed
        self._episode: rlvr_envs.MessageEpisode | None = None

    @property
    def episode(self) -> rlvr_envs.MessageEpisode:
        """The episode so far."""
        if self._episode is None:
            self._episode = self._env.start(self._env.streams.dataset[self._problem])
        return self._episode

    def request(self) -> TextRequest | None:
        """Ask for the next turn; None if the episode is over."""
        episode, env = self.episode, self._env
        if episode.over:
            return None
        turn = len(episode.turns)
        seeds = np.random.SeedSequence([self._seed, turn]).generate_state(1, np.uint64)
        return TextRequest(
            episode.prompt,
            int(seeds[0]) if turn else self._seed,
            episode.max_tokens,
            env.stop,
            env.tools,
            counted=env.rules.interaction is not None,
        )

    def take(self, answer: rlvr_envs.TextCompletion) -> None:
        """Add a turn of the model, and reply to it."""
        self.episode.take(answer)

    def close(self) -> None:
        """Forget the episode."""
        self._episode = None


def sample_endpoint(
    env: rlvr_envs.MessageEnv,
    endpoint: Endpoint,
    keys: Sequence[tuple[int, int]],
    seeds: Sequence[int],
    begin: Callable[[rlvr_envs.MessageEnv, int, int], Conversation] = Conversation,
) -> Generator[SampledRow]:
    """Play the samples given by problem and number, and judge each as it ends.

    Args:
        env: The episodes.
        endpoint: The server.
        keys: The problem and the number of each sample.
        seeds: The seed of each sample.
        begin: Makes a conversation from the episodes, the index of a problem, and a seed.

    Raises:
        EngineError: As for `Endpoint.converse`.
    """
    conversations = [begin(env, index, seed) for (index, _), seed in zip(keys, seeds, strict=True)]
    with contextlib.closing(endpoint.converse(conversations)) as ended:
        for chunk in ended:
            episodes = [conversations[number].episode for number, _ in chunk]
            verdicts = _judge(env.rules, episodes)
            for (number, failure), episode, verdict in zip(chunk, episodes, verdicts, strict=True):
                index, count = keys[number]
                named = {"problem": index, "problem_id": episode.problem.id, "sample": count, "seed": seeds[number]}
                conversations[number].close()
                made = _sampled(episode, failure, verdict, named)
                counted = bool(episode.prompt_tokens) or failure is not None
                sample = dataclasses.replace(
                    made.sample,
                    prompt_tokens=episode.prompt_tokens if counted else None,
                    cost=endpoint.config.cost(episode.prompt_tokens, episode.tokens) if counted else None,
                    tokens=episode.tokens,  # an episode that failed after some turns has tokens too
                )
                yield made._replace(sample=sample)


def _sampled(
    episode: rlvr_envs.MessageEpisode, failure: RequestFailure | None, verdict: Verdict | None, named: dict[str, Any]
) -> SampledRow:
    if failure is not None:
        return SampledRow(Sample.failed(failure.cause, **named), episode.completion, None)
    errored = verdict is not None and verdict.outcome is Outcome.VERIFIER_ERROR
    score = episode.reward + (0.0 if verdict is None else verdict.score)
    truncated = episode.truncated or errored
    sample = Sample.judged(verdict, score=score, truncated=truncated, **named)
    return SampledRow(sample, episode.completion, verdict)


def _judge(rules: rlvr_envs.Rules, episodes: Sequence[rlvr_envs.MessageEpisode]) -> list[Verdict | None]:
    """The verdict on each episode; for an unfinished episode or without a verifier, the episode's error or None."""
    if rules.verifier is None:
        return [episode.error for episode in episodes]
    asked = [episode for episode in episodes if episode.over and episode.error is None]
    verdicts = iter(
        verifiers.verify_batch(
            rules.verifier, [episode.completion for episode in asked], [episode.problem for episode in asked]
        )
    )
    return [next(verdicts) if episode in asked else episode.error for episode in episodes]
