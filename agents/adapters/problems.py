"""Code that the adapters share: problems of an environment, and texts and messages in the form of other libraries."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, cast

import rlvr_envs
import verifiers
from agents.runs.files.json_files import to_json
from agents.runs.verdicts import error_cause
from verifiers import (
    DataError,
    InvalidArgumentError,
    Message,
    Outcome,
    Problem,
    Verdict,
    Verifier,
    VerifierFailureError,
)


@dataclass(frozen=True)
class LoadedTask:
    """The problems of an environment, its verifier and its prompt."""

    problems: rlvr_envs.Dataset
    verifier: Verifier
    prompt: rlvr_envs.Prompt
    verifier_spec: tuple[str, Mapping[str, object]]
    """Name and arguments of the verifier, from which other programs can make the verifier."""
    split: str

    def text(self, index: int) -> str:
        """The text that a model without a chat template continues."""
        return self.prompt.render(self._asked(index))

    def messages(self, index: int) -> list[dict[str, str]]:
        """The messages of a chat that asks a problem."""
        if not isinstance(self.prompt, rlvr_envs.ChatPrompt):
            return [{"role": "user", "content": self.text(index)}]
        messages = self.prompt.messages(self._asked(index))
        return [{"role": message.role, "content": message.content} for message in messages]

    def _asked(self, index: int) -> Problem:
        question = rlvr_envs.question_in(self.problems, self.prompt)
        return self.problems[index] if question is None else question(self.problems[index])


def load_task(env: str, split: str | None = None, *, chat: bool = True, **arguments: Any) -> LoadedTask:
    """Load an environment's problems, its verifier and its prompt.

    Args:
        env: As for `rlvr_envs.environment_class`.
        split: None for the environment's own default.
        chat: Whether to ask problems as a chat, instead of with the environment's default prompt.
        **arguments: Arguments of the data set, such as `data_dir`.

    Raises:
        InvalidArgumentError: If the environment answers the model's turns.
    """
    task = rlvr_envs.environment_class(env).task
    split = task.default_split if split is None else split
    problems = task.problems(split, **arguments)
    if answers_turns(task, problems):
        raise InvalidArgumentError(
            f"an episode of {env} has several turns with answers of the environment, which this adapter can't play: choose an "
            "environment of one turn, or the adapters for TRL or verl, which play several turns"
        )
    prompt = task.prompt_for(problems, chat=chat)
    name, verifier_arguments = task.verifier_of(problems, chat=isinstance(prompt, rlvr_envs.ChatPrompt))
    made = verifiers.make(name, **verifier_arguments)
    return LoadedTask(problems, made, prompt, (name, verifier_arguments), split)


def answers_turns(task: rlvr_envs.TaskSpec, problems: rlvr_envs.Dataset) -> bool:
    """Whether the episodes of a task have several turns even without tools."""
    tokenizer = rlvr_envs.get_tokenizer(task.tokenizer, alphabet=getattr(problems, "alphabet", None))
    return task.rules is not None and "interaction" in task.rules(problems, tokenizer)


def number_of_problems(problems: rlvr_envs.Dataset, env: str, limit: int | None) -> int:
    """The number of an environment's problems to use, at most `limit`.

    Raises:
        InvalidArgumentError: If the environment has no problems.
    """
    count = len(problems) if limit is None else min(limit, len(problems))
    if count < 1:
        raise InvalidArgumentError(f"{env} has no problems to write")
    return count


def text_of(completion: object) -> str:
    """A completion as text: the completion itself, or the content of its last chat message.

    Raises:
        InvalidArgumentError: If the completion is neither text nor chat messages.
    """
    if isinstance(completion, str):
        return completion
    if isinstance(completion, Sequence) and completion and isinstance(completion[-1], Mapping):
        return _content(completion[-1].get("content"))
    raise InvalidArgumentError(f"a completion must be text or a list of chat messages, got {completion!r}")


def before_stop(text: str, stop: Sequence[str]) -> str:
    """The text before the first stop string. An environment judges no text after a stop string."""
    return text[: min((at for string in stop if (at := text.find(string)) >= 0), default=len(text))]


def prompt_of(prompt: object) -> str | tuple[Message, ...]:
    """A prompt in the form that problems use: text, or chat messages."""
    if isinstance(prompt, str):
        return prompt
    if isinstance(prompt, Sequence) and all(isinstance(message, Mapping) for message in prompt):
        return tuple(Message(str(message.get("role")), _content(message.get("content"))) for message in prompt)
    raise InvalidArgumentError(f"a prompt must be text or a list of chat messages, got {prompt!r}")


def _content(content: object) -> str:
    """The text of a message, without pictures; empty if the message only calls a tool."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, Sequence):
        raise InvalidArgumentError(f"the content of a message must be text or a list of parts, got {content!r}")
    return "".join(str(part["text"]) for part in content if isinstance(part, Mapping) and part.get("type") == "text")


def json_row(problem: Problem, prompt: object) -> str:
    """A problem as one line of an exported data set.

    Reference and metadata are written as texts of JSON, so that all rows have the same columns.

    Raises:
        DataError: If the reference can't be written as JSON and read again.
    """
    reference = to_json(problem.reference)
    if json.loads(reference) != problem.reference:
        raise DataError(
            f"the reference of problem {problem.id!r} can't be written as JSON: it is a {type(problem.reference).__name__}"
        )
    metadata = to_json(problem.metadata)
    return to_json({"id": problem.id, "prompt": prompt, "reference": reference, "metadata": metadata})


def as_python(owner: str, arguments: Mapping[str, object]) -> str:
    """Write arguments as Python source for a file.

    Raises:
        InvalidArgumentError: If the arguments are not plain data.
    """
    written = repr(dict(arguments))
    try:
        same = ast.literal_eval(written) == arguments
    except (ValueError, SyntaxError):
        same = False
    if not same:
        raise InvalidArgumentError(
            f"the arguments of {owner} must be plain data, to be written into a file, got {written}"
        )
    return written


def data_as_python(arguments: Mapping[str, object]) -> str:
    """Write a data set's arguments as Python source for a file.

    Paths become absolute, since the file may run in another folder.

    Raises:
        InvalidArgumentError: If the arguments are not plain data.
    """

    def whole(value: object) -> object:
        is_path = isinstance(value, str | PathLike) and Path(value).expanduser().exists()
        return str(Path(cast("str", value)).expanduser().resolve()) if is_path else value

    paths = {name: whole(arguments[name]) for name in ("dataset", "data_dir") if name in arguments}
    return as_python("the data set", {**arguments, **paths})


def judged(verifier: Verifier, completion: str, problem: Problem, library: str) -> Verdict:
    """Judge one completion for a library that can't leave a sample out.

    Raises:
        VerifierFailureError: If the verifier could not judge; the message gives the cause.
    """
    (verdict,) = verifiers.verify_batch(verifier, [completion], [problem])
    if verdict.outcome is Outcome.VERIFIER_ERROR:
        raise VerifierFailureError(
            f"the verifier could not judge a completion of problem {problem.id!r}, and {library} can't leave one out: "
            f"{error_cause(verdict.detail)}"
        )
    return verdict
