"""Problems as requests to an endpoint, and its answers as judged samples."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from typing import Any

from gymnasium.vector import VectorEnv

import rlvr_envs
import verifiers
from agents.rollouts.endpoint.client import Endpoint, EndpointResult, RequestFailure, TextCompletion, TextRequest
from agents.runs.evaluation_record import Sample, SampledRow
from verifiers import InvalidArgumentError, Message, Problem, Verdict

_TOKEN_RULES = ("legal_actions", "process_scorer", "end_condition", "interaction")
"""Rules that ask for the tokens of an episode, or for several turns."""


def endpoint_env(env: VectorEnv[Any, Any, Any]) -> rlvr_envs.TokenVectorEnv:
    """Check that an environment's problems can be put to an endpoint.

    Raises:
        InvalidArgumentError: If it exposes no problems, has no verifier, or has rules about tokens or several turns.
    """
    world = env.unwrapped
    if not isinstance(world, rlvr_envs.TokenVectorEnv):
        raise InvalidArgumentError(
            f"an endpoint answers the problems of a TokenVectorEnv, but this is a {type(world).__name__}: make the environment "
            "a subclass of rlvr_envs.TaskEnv"
        )
    rules = world.streams.rules
    for name in _TOKEN_RULES:
        if getattr(rules, name) is not None:
            raise InvalidArgumentError(
                f"an endpoint returns whole completions as text, but this environment has {name}: sample with the engine "
                "'torch'"
            )
    if rules.verifier is None or not all(isinstance(stop, str) for stop in rules.stop):
        raise InvalidArgumentError(
            "an endpoint needs an environment with a verifier, and with stop strings, not tokens"
        )
    return world


def endpoint_prompt(env: rlvr_envs.TokenVectorEnv, endpoint: Endpoint, problem: Problem) -> str | tuple[Message, ...]:
    """What is sent for a problem: messages, or for the route `"completions"` the text that a policy would continue."""
    rules = env.streams.rules
    if endpoint.config.route == "completions":
        return rules.render_prompt(problem)
    render = rules.render_prompt
    return (
        render.messages(problem)
        if isinstance(render, rlvr_envs.PromptRenderer)
        else (Message("user", render(problem)),)
    )


def sample_endpoint(
    env: rlvr_envs.TokenVectorEnv, endpoint: Endpoint, keys: Sequence[tuple[int, int]], seeds: Sequence[int]
) -> Generator[SampledRow]:
    """Ask for the samples given by problem and number, and judge each as it comes.

    Raises:
        EngineError: As for `Endpoint.complete`.
    """
    rules, dataset = env.streams.rules, env.streams.dataset
    stop = tuple(stop for stop in rules.stop if isinstance(stop, str))
    requests = [
        TextRequest(endpoint_prompt(env, endpoint, dataset[index]), seed, rules.max_new_tokens, stop)
        for (index, _), seed in zip(keys, seeds, strict=True)
    ]
    with contextlib.closing(endpoint.complete(requests)) as answers:
        for chunk in answers:
            verdicts = _judge(rules, [(answer, dataset[keys[number][0]]) for number, answer in chunk])
            for (number, answer), verdict in zip(chunk, verdicts, strict=True):
                index, sample = keys[number]
                named = {"problem": index, "problem_id": dataset[index].id, "sample": sample, "seed": seeds[number]}
                yield _sampled(answer, verdict, named)


def _sampled(answer: EndpointResult, verdict: Verdict | None, named: dict[str, Any]) -> SampledRow:
    if isinstance(answer, RequestFailure):
        return SampledRow(Sample.failed(answer.cause, **named), "", None)
    assert verdict is not None
    sample = Sample.judged(verdict, score=verdict.score, tokens=answer.tokens, truncated=answer.truncated, **named)
    return SampledRow(sample, answer.text, verdict)


def _judge(rules: rlvr_envs.Rules, answers: Sequence[tuple[EndpointResult, Problem]]) -> list[Verdict | None]:
    """The verdicts of those answers that are completions; None for the others."""
    assert rules.verifier is not None
    asked = [(answer.text, problem) for answer, problem in answers if isinstance(answer, TextCompletion)]
    verdicts = iter(verifiers.verify_batch(rules.verifier, [text for text, _ in asked], [of for _, of in asked]))
    return [next(verdicts) if isinstance(answer, TextCompletion) else None for answer, _ in answers]
