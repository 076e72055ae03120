"""Functions shared by several commands."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar

import gymnasium
import tyro
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from rich.console import Console

import rlvr_envs
from agents.console.terminal import TerminalConsole
from agents.runs.files.json_files import plain
from verifiers import DataError, InvalidArgumentError, redacted, secret, unknown_argument
from verifiers.devices import using_device

if TYPE_CHECKING:
    from agents.settings.endpoint import EndpointConfig

P = ParamSpec("P")
Env = TypeVar("Env", bound="rlvr_envs.TaskEnv | rlvr_envs.TokenVectorEnv")


def check_is_saved(model: str) -> None:
    """Refuse the name "tiny", for which `rlvr train` and `rlvr sft` create an untrained model."""
    if model == "tiny" and not Path(model).exists():
        raise InvalidArgumentError(
            'the "tiny" model of rlvr train and rlvr sft is untrained: name a model that one of them saved, such as '
            "--model runs/grpo-Addition-v0"
        )


DEVICE = "auto"
"""The default of the option --device."""
Device = Annotated[
    str,
    tyro.conf.arg(
        help='Device for models: cpu, cuda, xpu, mps, or a numbered device, such as cuda:1; "auto" is the device in the '
        "variable RLVR_DEVICE, or else the first available one of cuda, xpu and mps."
    ),
]
"""The type of the option --device."""


def on_device(run: Callable[Concatenate[Any, P], int]) -> Callable[Concatenate[Any, P], int]:
    """Decorate the method `run` of a command, so that its models are on the device of the option --device."""

    @functools.wraps(run)
    def run_there(command: Any, /, *args: P.args, **options: P.kwargs) -> int:
        with using_device(command.device):
            return run(command, *args, **options)

    return run_there


def say_stops(console: Console, env: object) -> None:
    """In an environment with tokens, print the stop tokens of turns if the tokenizer's end token is not the only one."""
    tokenizer = getattr(getattr(env, "unwrapped", env), "tokenizer", None)
    if tokenizer is not None and len(stops := rlvr_envs.stop_tokens(tokenizer)) > 1:
        marks = {token: rlvr_envs.dialogue.spell(tokenizer, [token]) for token in stops}
        shown = [f"{mark if mark.isprintable() else repr(mark)} ({stops[token]})" for token, mark in marks.items()]
        console.print(f"turns end with {' or '.join(reversed(shown))}")


VerifierChoice = tuple[str, dict[str, Any]]
"""A verifier's name or module:attribute, and the verifier's arguments, for `verifiers.make`."""


def verifier_arguments(pairs: Sequence[str]) -> dict[str, Any]:
    """The arguments of a verifier; see `named_arguments`."""
    return named_arguments(pairs, "a verifier")


def folder_name(environment: str) -> str:
    """The name of an environment as part of a folder's name."""
    parts = (part.removeprefix("rlvr/").replace(":", ".").replace("/", ".") for part in environment.split(","))
    return "+".join(parts)


def env_arguments(pairs: Sequence[str]) -> dict[str, Any]:
    """The arguments of an environment; see `named_arguments`."""
    return named_arguments(pairs, "an environment")


def pairs_of_part(pairs: Sequence[str], part: str, parts: Sequence[str]) -> tuple[str, ...]:
    """The `name=value` pairs for one of several environments: the common pairs, and pairs such as `GSM8K.max_new_tokens=64`."""
    owners, kept = {rlvr_envs.short_name(name) for name in parts}, list[str]()
    for pair in pairs:
        owner, dot, rest = pair.partition(".")
        if not dot or owner not in owners:
            kept.append(pair)
        elif owner == rlvr_envs.short_name(part):
            kept.append(rest)
    return tuple(kept)


def named_arguments(pairs: Sequence[str], whose: str) -> dict[str, Any]:
    """Read `name=value` pairs; a value that is a Python literal is evaluated, any other value is text.

    A text `env:NAME`, even inside a literal, is replaced by the value of that environment variable: see `verifiers.secret`.
    """
    arguments: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InvalidArgumentError(f"{whose} argument is name=value, such as digits=3, got {pair!r}")
        if name in arguments:
            raise InvalidArgumentError(f"{whose} argument {name!r} was given twice; give it once")
        arguments[name] = secret(literal(value))
    return arguments


def redacted_pairs(pairs: Sequence[str]) -> list[str]:
    """Return `name=value` pairs without secrets, for records."""
    shown: list[str] = []
    for pair in pairs:
        name, equals, text = pair.partition("=")
        value = literal(text)
        safe = redacted({name: value})[name]
        shown.append(pair if plain(safe) == plain(value) else f"{name}{equals}{safe}")
    return shown


def literal(text: str) -> Any:
    """The value of a Python literal; any other text stays text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def verifier_spec(verifier: str | None, pairs: Sequence[str], reward_model: str | None) -> VerifierChoice | None:
    """The verifier that a command's options select; None if they select no verifier."""
    if verifier is not None and reward_model is not None:
        raise InvalidArgumentError(
            f"two verifiers: {verifier!r} and the reward model {reward_model!r}; give one of them"
        )
    arguments = verifier_arguments(pairs)
    if reward_model is not None:
        return "reward_model", {"model": reward_model, **arguments}
    if verifier is None and arguments:
        raise InvalidArgumentError(
            f"--verifier-args gives the arguments {sorted(arguments)} of no verifier: name it with --verifier"
        )
    return None if verifier is None else (verifier, arguments)


def endpoint_config(options: Mapping[str, Any], pairs: Sequence[str]) -> EndpointConfig:
    """The settings of an endpoint, from the command's own options and from `name=value` arguments of the engine."""
    from agents.settings.endpoint import EndpointConfig

    names = [setting.name for setting in dataclasses.fields(EndpointConfig)]
    arguments = named_arguments(pairs, "an engine")
    for name in arguments:
        if name in options:
            raise InvalidArgumentError(
                f"the engine argument {name!r} has an option of its own: use --base-url, --model, --num-envs and --price"
            )
        if name not in names:
            raise unknown_argument("an endpoint", name, [name for name in names if name not in options])
    return EndpointConfig(**options, **arguments)


def env_for_endpoint(make: Callable[[dict[str, Any]], Env], config: EndpointConfig, arguments: dict[str, Any]) -> Env:
    """Make an environment for a server. On the chat route the server's template renders the prompt and ends the answers."""
    chat = {"prompt": "auto_chat", "stop": ()} if config.route == "chat" else {}
    try:
        return make({**chat, **arguments})
    except DataError:
        # An alphabet that can't spell a chat means that actions are tokens; without a chat, the error says so.
        rlvr_envs.MessageEnv(make(arguments).streams)
        raise


def check_engine(engine: str, pairs: Sequence[str]) -> None:
    """Check that an engine for sampling with local weights is installed, and that it takes these arguments."""
    if engine == "torch" and pairs:
        raise InvalidArgumentError(f"engine 'torch' takes no arguments, got {list(pairs)}: set engine to 'vllm'")
    arguments = named_arguments(pairs, "an engine")
    if engine == "vllm" and not (arguments.get("server") or arguments.get("python")):
        from agents.policies.vllm.engine import require_vllm

        require_vllm()


def make_any_vec(
    name: str, num_envs: int, arguments: dict[str, Any], task_arguments: Mapping[str, Any]
) -> VectorEnv[Any, Any, Any]:
    """Build the native vector environment for a name, or vectorise any other Gymnasium environment."""
    environment: Any = rlvr_envs.find_environment(name)
    if isinstance(environment, type) and issubclass(environment, rlvr_envs.TaskEnv):
        return make_vec(name, num_envs, with_options(task_arguments, arguments))
    return SyncVectorEnv(
        [functools.partial(make_one, name, environment, arguments)] * num_envs, autoreset_mode=DISABLED
    )


DISABLED = AutoresetMode.DISABLED


def make_one(name: str, make: Callable[..., object], arguments: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    """Build one user-defined environment."""
    try:
        inspect.signature(make).bind(**arguments)
    except TypeError as error:
        raise InvalidArgumentError(f"the environment {name!r} does not accept these arguments: {error}") from error
    except ValueError:  # some callables written in C have no signature
        pass
    made = make(**arguments)
    spaces = (getattr(made, "observation_space", None), getattr(made, "action_space", None))
    if not isinstance(made, gymnasium.Env) or None in spaces:
        raise InvalidArgumentError(
            f"the environment {name!r} returned {made!r}: expected a gymnasium.Env with an observation_space and an "
            "action_space"
        )
    return made


def with_options(options: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the environment arguments in `--env-args` with the arguments that have their own options."""
    twice = sorted(options.keys() & arguments.keys())
    if twice:
        raise InvalidArgumentError(f"the environment argument {twice[0]!r} has an option of its own: use --{twice[0]}")
    return {**options, **arguments}


def check_reserved(arguments: Mapping[str, Any]) -> None:
    """Refuse arguments of an environment that commands set themselves."""
    taken = arguments.keys() & {"num_envs", "copy"}
    if taken:
        raise InvalidArgumentError(f"{sorted(taken)} can't be environment arguments: num_envs is an option of its own")


def make_vec(name: str, num_envs: int, arguments: dict[str, Any]) -> rlvr_envs.TokenVectorEnv:
    """Build the native vector environment for a name, without copies of the observation buffers."""
    check_reserved(arguments)
    options, cls = {**PROMPT, **arguments}, rlvr_envs.environment_class(name)
    if LEVELS in options:
        cls = rlvr_envs.with_levels(cls, *options.pop(LEVELS))
    return cls.make_vec(num_envs, copy=False, **options)


LEVELS = "adaptive"
"""Key in an environment's arguments; its value has the name of the argument that makes the environment harder, and that
argument's values."""


def at_hardest(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an environment; if it has several levels, the arguments of the hardest level."""
    others = {name: value for name, value in arguments.items() if name != LEVELS}
    return others if LEVELS not in arguments else others | {arguments[LEVELS][0]: arguments[LEVELS][1][-1]}


PROMPT = {"prompt": "auto"}
"""The default of commands: a chat prompt if the tokenizer has a chat template."""


def say_prompt(console: Console, env: object, *, as_messages: bool = False) -> None:
    """Print which prompt is used, and whether a chat template is used, unless there is neither a chat nor a template.

    Args:
        console: Where to print.
        env: The environment.
        as_messages: Whether the prompt is sent as messages, to an endpoint that has the template.
    """
    if not isinstance(env, rlvr_envs.TokenVectorEnv) or not isinstance(
        env.streams.rules.render_prompt, rlvr_envs.PromptRenderer
    ):
        return
    render = env.streams.rules.render_prompt
    has_template = render.tokenizer.chat_template is not None
    opens_chat = env.streams.rules.opening is not None  # whatever the prompt, such as if a template lists tools
    is_chat = (
        opens_chat
        or isinstance(render.prompt, rlvr_envs.ChatPrompt)
        or not isinstance(env.streams.dataset[0].prompt, str)
    )
    if as_messages:
        how = "as the messages of a chat" if is_chat else "as one message; prompt=auto is the prompt of a chat"
    elif is_chat:
        how = "in the model's chat template" if has_template else f"as plain text ({_PLAIN}), without a chat template"
    elif has_template:
        how = "without the model's chat template; prompt=auto uses it"
    else:
        return
    console.print(f"prompt: {render.prompt.name}, {how}")


_PLAIN = "User: ... Assistant:"


@contextlib.contextmanager
def shown_warnings(*, quiet: bool = False) -> Iterator[None]:
    """Within the block, print only the text of user warnings, on standard error; with `quiet`, print nothing."""
    plainly = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if quiet:
            return
        if category is UserWarning:
            print_warning(message)
        else:
            plainly(message, category, *where, **more)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def print_warning(message: object) -> None:
    """Print a warning in one line on standard error."""
    TerminalConsole(stderr=True).print(f"warning: {message}")
