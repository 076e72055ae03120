"""TRL's `environment_factory`: episodes of several turns with `GRPOTrainer`, in which all turns but the last are tool calls.

TRL continues an episode until the model stops calling tools. The tools are the environment's own tools; an environment that
answers text, such as a game, has the tool `say`. Each call is a turn of the episode, and a text without a call is the last
turn. Then the episode is judged in its current state, even if one of TRL's limits has ended it (`max_completion_length` and
`max_tool_calling_iterations`).
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import rlvr_envs
from agents.adapters.episodes import answered, has_turns, judge, opening, streams_of
from agents.adapters.problems import number_of_problems, text_of
from verifiers import InvalidArgumentError, MadeCall

if TYPE_CHECKING:
    import datasets  # type: ignore[import-untyped]  # ships no types

_OVER = "The episode is over."
_TAKEN = ("reset", "get_reward")
"""Method names that TRL uses itself."""
_TYPES = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}


class Played:
    """An environment for TRL. TRL calls `reset`, and uses the public methods that `episodes` adds as tools."""

    _world: rlvr_envs.MessageEnv

    def __init__(self) -> None:
        self._episode: rlvr_envs.MessageEpisode | None = None
        self._broken: Exception | None = None

    def reset(self, problem: int, **row: Any) -> None:
        """Start the episode of a row."""
        self._episode, self._broken = self._world.start(self._world.streams.dataset[problem]), None

    def _take(self, text: str, *calls: MadeCall) -> str:
        """Play a turn, and return the environment's answer."""
        episode = self._started
        if episode.over:
            return _OVER
        try:
            episode.take(rlvr_envs.TextCompletion(text, calls=calls))
        except Exception as error:
            self._broken = error  # TRL turns the exception into an answer and continues
            raise
        said = [message.content.strip() for message in answered(episode)]
        return "\n".join([*said, _OVER] if self._started.over else said)

    @property
    def _started(self) -> rlvr_envs.MessageEpisode:
        if self._episode is None:
            raise InvalidArgumentError("call reset with the problem of a row before an episode is played")
        return self._episode


def episodes(
    env: str, split: str | None = None, *, limit: int | None = None, tokenizer: Any = None, **arguments: Any
) -> tuple[datasets.Dataset, Callable[[], Played], Callable[..., list[float | None]]]:
    """Load an environment for `train_dataset`, `environment_factory` and `reward_funcs`.

    The reward is the same as in this package: the rewards of the turns plus the verifier's score at the end. An episode that
    could not be judged has the reward None.

    Args:
        env: As for `rlvr_envs.environment_class`.
        split: None for the environment's own default.
        limit: Number of problems; None for all.
        tokenizer: The model's tokenizer, or the model's folder or Hugging Face name. The tokenizer's tokens determine where
            long answers are cut; None counts bytes.
        **arguments: Arguments of the environment, such as `tools`.

    Raises:
        InvalidArgumentError: If there are no problems, dialogues are shortened, or a tool can't be a method.
    """
    import datasets

    streams = streams_of(env, split, tokenizer, arguments)
    world = rlvr_envs.MessageEnv(streams, "calls")
    count = number_of_problems(streams.dataset, env, limit)
    answers = not world.tools or has_turns(env, split, **{**arguments, "tools": None})
    methods = {_name(tool): _method(tool) for tool in world.tools}
    if answers:
        methods["say"] = _method(_SAY, says=True)
    title = env.removeprefix("rlvr/").partition("-v")[0]
    factory = type(title, (Played,), {**methods, "_world": world})
    rows = [{"prompt": opening(world, streams.dataset[index]), "problem": index} for index in range(count)]

    def reward(
        completions: Sequence[Any], environments: Sequence[Played], log_metric: Any = None, **columns: Any
    ) -> list[float | None]:
        scores = [_ended(played, said) for played, said in zip(environments, completions, strict=True)]
        if log_metric is not None:
            log_metric(f"verifier_errors/{title}", scores.count(None) / len(scores))
        return scores

    reward.__name__ = title
    return datasets.Dataset.from_list(rows), factory, reward


def _ended(played: Played, completion: Any) -> float | None:
    """The score of an episode. The last message is played as the last turn, unless it calls a tool.

    Raises:
        Exception: Any exception that a turn raised, such as the exception of a faulty interaction; it stops the run.
    """
    if played._broken is not None:
        raise played._broken
    last = completion[-1] if completion and not isinstance(completion, str) else {}
    if last.get("role") == "assistant" and not last.get("tool_calls"):
        played._take(text_of(completion))
    return judge(played._started)[0]


_SAY = {
    "function": {
        "name": "say",
        "description": "Say something to the environment, such as a move. It sees nothing else that you write.",
        "parameters": {
            "properties": {
                "text": {"type": "string", "description": "The text to say, in the form that the task asks for."}
            },
            "required": ["text"],
        },
    }
}


def _name(tool: Mapping[str, Any]) -> str:
    name: str = tool["function"]["name"]
    if not name.isidentifier() or name.startswith("_") or name in _TAKEN:
        raise InvalidArgumentError(
            f"TRL calls a tool as a method, which can't be called {name!r}: choose a name that is an identifier, begins with "
            f"no underscore, and is not among {', '.join(_TAKEN)}"
        )
    return name


def _method(tool: Mapping[str, Any], *, says: bool = False) -> Callable[..., str]:
    """Make a method for a tool. From its signature and docstring, `transformers` derives the tool's schema.

    Args:
        tool: Schema of the tool.
        says: Whether the method's argument is the text of a turn, instead of an argument of a tool call.
    """
    name, schema = _name(tool), tool["function"]["parameters"]
    needed = schema.get("required", ())

    def call(self: Played, **arguments: Any) -> str:
        return self._take(**arguments) if says else self._take("", MadeCall(name, json.dumps(arguments), ""))

    parameters = [
        inspect.Parameter(
            parameter,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if parameter in needed else None,
            annotation=_type(described),
        )
        for parameter, described in schema.get("properties", {}).items()
    ]
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    call.__signature__ = inspect.Signature([own, *parameters], return_annotation=str)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {"return": str}
    about = schema.get("properties", {}).items()
    lines = [f"    {parameter}: {described.get('description', 'see above')}" for parameter, described in about]
    arguments = ["", "Args:", *lines] if lines else []
    call.__doc__ = "\n".join([tool["function"]["description"], *arguments, "", "Returns:", "    The answer."])
    call.__name__ = call.__qualname__ = name
    return call


def _type(schema: Mapping[str, Any]) -> Any:
    """The Python type with the nearest schema.

    If arguments do not fit the tool's own schema, the tool answers with an error.
    """
    if choices := schema.get("enum"):
        return Literal[tuple(choices)]
    return _TYPES.get(schema.get("type", "string"), str)
