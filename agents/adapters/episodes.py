"""Code that the adapters for episodes of several turns share: environments, streams and scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import rlvr_envs
import verifiers
from agents.adapters.problems import answers_turns
from verifiers import InvalidArgumentError, Message, Outcome, Problem, Verdict, dialogue_of

_SHORTENED = ("summarize_after", "drop_results_after")


def has_turns(env: str, split: str | None = None, **arguments: Any) -> bool:
    """Whether an environment with these arguments answers the model's turns, so that episodes have several turns.

    Args:
        env: As for `rlvr_envs.environment_class`.
        split: None for the environment's own default.
        **arguments: Arguments of the environment, such as `tools`.
    """
    if arguments.get("tools") is not None or arguments.get("interaction") is not None:
        return True
    task = rlvr_envs.environment_class(env).task
    data = {name: value for name, value in arguments.items() if name in task.data_options}
    return answers_turns(task, task.problems(split, **data))


def streams_of(
    env: str, split: str | None, tokenizer: Any, arguments: Mapping[str, Any], *, whole: bool = True
) -> rlvr_envs.TokenStreams:
    """Build one stream of an environment. Problems are asked as a chat, unless the arguments contain a prompt.

    Args:
        env: As for `rlvr_envs.environment_class`.
        split: None for the environment's own default.
        tokenizer: As for the environment; None for the environment's default.
        arguments: Arguments of the environment.
        whole: Whether the player keeps the whole dialogue in view.

    Raises:
        InvalidArgumentError: If the arguments shorten dialogues, but the player keeps the whole dialogue in view.
    """
    for name in _SHORTENED:
        if whole and arguments.get(name) is not None:
            raise InvalidArgumentError(f"other trainers keep the whole dialogue in view: leave {name} out")
    options = {"prompt": "auto_chat"} | dict(arguments)
    if split is not None:
        options["split"] = split
    if tokenizer is not None:
        options["tokenizer"] = tokenizer
    return rlvr_envs.environment_class(env).make_vec(1, **options).streams


def opening(world: rlvr_envs.MessageEnv, problem: Problem) -> list[dict[str, str]]:
    """The messages that ask a model a problem."""
    return [{"role": message.role, "content": message.content} for message in world.opening(problem)]


def answered(episode: rlvr_envs.MessageEpisode) -> list[Message]:
    """The messages that answer the last turn of an episode."""
    said: list[Message] = []
    for message in dialogue_of(episode.completion):
        said = [] if message.role == "assistant" else [*said, message]
    return said


def judge(episode: rlvr_envs.MessageEpisode) -> tuple[float | None, Verdict | None]:
    """The current score of an episode, and the verdict.

    The score is the rewards of the turns plus the verifier's score; None if the episode could not be judged.
    """
    verdict = episode.error
    if verdict is None and (verifier := episode.env.rules.verifier) is not None:
        (verdict,) = verifiers.verify_batch(verifier, [episode.completion], [episode.problem])
    if verdict is None:
        return episode.reward, None
    errored = verdict.outcome is Outcome.VERIFIER_ERROR
    return None if errored else episode.reward + verdict.score, verdict
