"""Combine several environments into one; each problem keeps the prompt, verifier, limits and turns of its own environment.

```
mixed = rlvr_envs.mix({"GSM8K": gsm8k, "MBPP": mbpp, "GuessNumber": guess}, weights=(3, 1, 1))
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn, TypeVar, cast

from rlvr_envs.envs import TaskEnv
from rlvr_envs.mixed_streams import MixBy, MixedDataset, MixedStreams
from rlvr_envs.token_env import TokenEnv
from rlvr_envs.vector_env import TokenVectorEnv
from verifiers import InvalidArgumentError, UnknownArgumentError, unknown_name

_Result = TypeVar("_Result")
_Env = TypeVar("_Env", TokenEnv, TokenVectorEnv)


def mix(parts: Mapping[str, _Env], weights: Sequence[float] | None = None, *, by: MixBy = "problems") -> _Env:
    """Combine several environments into one mixture; from then on, the mixture owns the environments.

    Args:
        parts: The environments, by their names in ids, metrics and reports. Either all are `TokenEnv`, or all are
            `TokenVectorEnv` with the same `num_envs`.
        weights: The weight of each environment; equal weights by default.
        by: The unit of the weights; see `MixBy`. Problems drawn by `reset` always follow the weights.

    Raises:
        InvalidArgumentError: If the environments can't be mixed because their tokenizers, action spaces or numbers of rows
            differ, or the weights are not one positive number for each.
    """
    envs = list(parts.values())
    kind: type[Any] = TokenVectorEnv if isinstance(cast("Any", envs[0]), TokenVectorEnv) else TokenEnv
    for name, env in parts.items():
        if not isinstance(env, kind):
            raise InvalidArgumentError(
                f"a mixture consists of TokenEnv alone or of TokenVectorEnv alone, without wrappers; {name} is a "
                f"{type(env).__name__} beside a {kind.__name__}"
            )
    streams = MixedStreams({name: env.streams for name, env in parts.items()}, weights, by)
    manifest = _manifest(streams.dataset, {name: getattr(env, "manifest", {}) for name, env in parts.items()})
    first: Any = envs[0]
    made: Any
    if kind is TokenVectorEnv:
        made = TokenVectorEnv(streams, copy=first.copy, manifest=manifest)
    else:
        made = TokenEnv(streams, render_mode=first.render_mode)
        made.manifest = manifest
    return cast("_Env", made)


def _manifest(data: MixedDataset, parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {"mixture": {"parts": dict(parts), "weights": list(data.weights), "by": data.by}}


class _NoTask:
    """Placeholder for the attribute `task`, which a mixture does not have."""

    def __get__(self, instance: object, owner: type[MixtureEnv]) -> NoReturn:
        raise InvalidArgumentError(
            f"{', '.join(owner.parts)} are several environments, and one is needed here: name one of them"
        )


class MixtureEnv(TaskEnv):
    """Several environments as one, from a name with commas, such as `GSM8K,MBPP`; see `mix`.

    An argument applies to all parts, or to one part if the argument's name begins with the part's, as in
    `**{"MBPP.max_new_tokens": 512}`. The argument `mix` gives the weights, and `mix_by` gives their unit.
    """

    parts: ClassVar[Mapping[str, type[TaskEnv]]]
    own: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Arguments that define a part, such as a level of a task."""
    task = _NoTask()  # so that code that needs a single task raises an error

    def __init__(self, *, render_mode: str | None = None, **options: Any) -> None:
        made = self._mixed(options, lambda cls, own: cls(render_mode=render_mode, **own))
        TokenEnv.__init__(self, made.streams, render_mode=render_mode)
        self.manifest = made.manifest

    @classmethod
    def make_vec(cls, num_envs: int = 1, *, copy: bool = True, **options: Any) -> TokenVectorEnv:
        """Build `num_envs` streams as one native vector environment."""
        made: TokenVectorEnv = cls._mixed(options, lambda part, own: part.make_vec(num_envs, copy=copy, **own))
        return made

    @classmethod
    def _mixed(cls, options: Mapping[str, Any], make: Callable[[type[TaskEnv], dict[str, Any]], Any]) -> Any:
        parts = cls.each_part(options, make)
        return mix(parts, options.get("mix"), by="levels" if cls.own else options.get("mix_by", "problems"))

    @classmethod
    def each_part(
        cls, options: Mapping[str, Any], use: Callable[[type[TaskEnv], dict[str, Any]], _Result]
    ) -> dict[str, _Result]:
        """Call a function with the class and the arguments of each part; return the results by the part's name.

        Raises:
            UnknownNameError: If an argument's name begins with the name of an unknown part.
            UnknownArgumentError: If a part does not accept one of its arguments; the message names the part.
        """
        for name in {name.partition(".")[0] for name in options if "." in name} - cls.parts.keys():
            raise unknown_name("part", name, cls.parts)
        results = {}
        for name, part in cls.parts.items():
            arguments = {**part_arguments(options, name), **cls.own.get(name, {})}
            try:
                results[name] = use(part, arguments)
            except UnknownArgumentError as error:
                said = next(
                    (f"{key}={arguments[key]!r}" for key in arguments if f"argument {key!r}" in str(error)), "x=1"
                )
                others = " or ".join(f"{other}.{said}" for other in cls.parts if other != name)
                raise UnknownArgumentError(
                    f"{name}: {error} An argument of one environment alone begins with its name: {others}"
                ) from error
        return results


def with_levels(cls: type[TaskEnv], argument: str, values: Sequence[Any]) -> type[MixtureEnv]:
    """Make the class of a task at several levels of difficulty, from the easiest to the hardest.

    Args:
        cls: The class of the task.
        argument: The argument that makes the task harder, such as `digits`.
        values: The argument's values, in order of difficulty.
    """
    own = {f"{argument}-{value}": {argument: value} for value in values}
    return type("MixtureEnv", (MixtureEnv,), {"parts": dict.fromkeys(own, cls), "own": own, "__doc__": cls.__doc__})


def part_arguments(options: Mapping[str, Any], part: str) -> dict[str, Any]:
    """The arguments of one part of a mixture: the common arguments, and the part's own, such as `MBPP.max_new_tokens`."""
    shared = {name: value for name, value in options.items() if "." not in name and name not in ("mix", "mix_by")}
    own = {name.partition(".")[2]: value for name, value in options.items() if name.startswith(f"{part}.")}
    return shared | own
