"""Build token streams (data set, tokenizer, prompt, verifier, limits) from a `TaskSpec` and the arguments of `gym.make`."""

from __future__ import annotations

import dataclasses
import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

import verifiers
from rlvr_envs.contexts import DropResults, Summarize, SummaryRequest
from rlvr_envs.dialogue import (
    DescribedDialogue,
    DescribeTools,
    Dialogue,
    DialogueArgument,
    PlainDialogue,
    TemplateDialogue,
    ToolDescription,
    check_dialogue_name,
    encode_parts,
    get_dialogue,
    split_marks,
)
from rlvr_envs.envs.fitting import check_installed, check_pair, check_references, check_spelling, gold_answer
from rlvr_envs.envs.limits import TOOL_TOKENS, check_calls, check_drops, check_summaries
from rlvr_envs.envs.questions import longest_problem, question_in
from rlvr_envs.envs.spec import TaskSpec
from rlvr_envs.prompts import ChatPrompt, Prompt, TextPrompt, asked_form, get_prompt, render_chat, written_answer
from rlvr_envs.rules import Rules, Verification
from rlvr_envs.streams import TokenStreams, empty_prompt
from rlvr_envs.tokenizers import ByteTokenizer, Tokenizer, get_tokenizer, stop_tokens, turn_end, utf8
from rlvr_envs.tools import Tool, ToolArgument, ToolInteraction, get_tools, tool_schema
from rlvr_envs.types import Dataset, EndCondition, FixedActions, Interaction, LegalActions, ProcessScorer
from rlvr_envs.worlds.process_data import check_budget
from verifiers import (
    DataError,
    InvalidArgumentError,
    Message,
    Problem,
    ToolMessage,
    Verifier,
    check_types,
    convention_of,
    import_attribute,
    is_verifier_file,
    preferring,
    redacted,
    unknown_argument,
    verifier_record,
)
from verifiers.completion import READER

VerifierArgument = str | type | Callable[[str, Problem], object] | tuple[str, Mapping[str, object]]


@dataclass(frozen=True)
class Settings:
    """The arguments that every environment takes; None means the default of the environment's id."""

    split: str | None = None
    """Split of the data set."""
    tokenizer: object = None
    """The tokenizer: `"byte"`, `"char"` (generated data), a Hugging Face name or folder, a GGUF file, or a tokenizer object."""
    max_new_tokens: int | None = None
    """Maximum number of tokens that the policy may produce in an episode. The default is the environment id's own number; with
    tools, it is at least 128."""
    max_prompt_tokens: int | None = None
    """Maximum number of tokens of a prompt; by default, just enough for every problem of the data set."""
    stop: str | int | Sequence[str | int] | None = None
    """One or several stop strings or tokens in addition to the end tokens. The default is the prompt's own stops, or no stops
    if the tokenizer's chat template renders the prompt."""
    prompt: str | Prompt | None = None
    """The prompt: name of a preset, a template with `{problem}`, or a `Prompt` or its `module:attribute`. With `"auto"`, a
    tokenizer with a chat template gets a chat prompt, and any other tokenizer gets the default prompt of the environment's id.
    With `"auto_chat"`, every tokenizer gets this chat prompt."""
    system: str | None = None
    """System message of a chat prompt; by default the prompt's own system message, if it has one."""
    verifier: VerifierArgument | None = None
    """The verifier: a specification as for `verifiers.make`, or a pair of a verifier's name and its arguments."""
    verification: Verification = "sync"
    """When verdicts arrive: `"sync"`, with the transition that ends an episode; `"deferred"`, with a later transition."""
    verification_workers: int = 16
    """Number of threads for deferred verdicts; the verifier must allow this number of concurrent calls."""
    restrict_actions: bool = False
    """Whether to allow only tokens made of the characters in answers. The data set must define these characters."""
    legal_actions: LegalActions | None = None
    process_scorer: ProcessScorer | None = None
    end_condition: EndCondition | None = None
    interaction: Interaction | str | None = None
    """Answers the policy in episodes of several turns: a function of the turns and the problem, or its `module:attribute`. If
    there are tools, the interaction answers only the turns without calls.
    """
    tools: str | Sequence[ToolArgument] | None = None
    """The tools that the policy may call: names such as `"calculator"`, tools, or functions with type hints; None for no
    tools."""
    dialogue: DialogueArgument = "auto"
    """How turns and replies become tokens; `"auto"` is the tokenizer's chat template, or plain text if there is no template."""
    describe_tools: DescribeTools = "auto"
    """How the prompt describes tools: `"template"`, in the chat template's own list; `"text"`, in words; `"none"`, not at all.
    `"auto"` uses the template if it can list tools, and otherwise words; but a text prompt for a tokenizer without a template
    gets no description."""
    max_turns: int | None = None
    """Maximum number of the policy's turns, at least 2 with tools. By default, only `max_new_tokens` limits the turns."""
    max_inserted_tokens: int | None = None
    """Maximum number of tokens that the environment may append over a whole episode. The default with tools or an interaction
    is 1024, or 4096 if the tokens are the bytes of a chat; otherwise it is 0."""
    max_context_tokens: int | None = None
    """Maximum number of tokens that the policy sees at once; by default, the maximum length of an episode."""
    summarize_after: int | None = None
    """Number of tokens in view above which the policy must write a summary. The policy then continues with the problem and the
    summary alone."""
    drop_results_after: int | None = None
    """Number of tokens in view above which the results of earlier tool calls are dropped from the dialogue."""


SETTINGS = tuple(field.name for field in dataclasses.fields(Settings))


def build(task: TaskSpec, num_streams: int, options: Mapping[str, Any]) -> tuple[TokenStreams, dict[str, Any]]:
    """Build streams from an id's task and the arguments of `gym.make`.

    Returns:
        The streams, and the manifest: names and checksums of everything that determines an episode, as plain data.

    Raises:
        UnknownArgumentError: If an argument is unknown; this error is also a `TypeError`.
        UnknownNameError: If a split is unknown.
        InvalidArgumentError: If an argument does not fit.
        MissingDataError: If the data set is neither local nor on the hub.
    """
    settings, dataset = read_options(task, options)
    spec = task.tokenizer if settings.tokenizer is None else settings.tokenizer
    tokenizer = get_tokenizer(spec, alphabet=getattr(dataset, "alphabet", None))
    prompt = choose_prompt(task, dataset, settings, has_template=tokenizer.chat_template is not None)
    renderer = PromptRenderer(prompt, tokenizer, question_in(dataset, prompt))
    verifier_spec, verifier = chosen_verifier(task, settings, dataset, prompt)
    own = _task_rules(task, settings, dataset, tokenizer, prompt)
    room = own.pop("max_inserted_tokens", 0)
    enough = room(own["max_new_tokens"]) if callable(room) else room
    turns = _turn_rules(settings, own.pop("interaction", None), enough, tokenizer, renderer)
    if isinstance(turns.dialogue, PlainDialogue):  # the prompt is encoded as in an episode of one turn
        renderer = dataclasses.replace(renderer, tools=turns.dialogue.description)
    chat = _is_chat(dataset, renderer, turns)
    stops = _stops(settings.stop) if settings.stop is not None else () if chat else prompt.stop
    in_template = chat or not isinstance(turns.dialogue, PlainDialogue | None)
    rules = Rules(
        tokenizer=tokenizer,
        render_prompt=renderer,
        max_prompt_tokens=(
            longest_prompt(dataset, renderer, turns)
            if settings.max_prompt_tokens is None
            else settings.max_prompt_tokens
        ),
        verifier=verifier,
        stop=(*stops, *turns.dialogue.stop) if turns.dialogue else stops,
        end_token=turn_end(tokenizer) if in_template else None,
        interaction=turns.interaction,
        max_inserted_tokens=turns.max_inserted_tokens,
        max_turns=settings.max_turns,
        max_context_tokens=settings.max_context_tokens,
        dialogue=turns.dialogue,
        opening=turns.opening,
        tools=[tool_schema(tool) for tool in turns.tools],
        verification=settings.verification,
        verification_workers=settings.verification_workers,
        **own,
    )
    if settings.restrict_actions and (task.rules is None or rules.legal_actions is None):
        rules = dataclasses.replace(rules, legal_actions=_answer_characters(dataset, rules))
    check_spelling(rules, prompt)
    manifest = _manifest(dataset, rules, prompt, verifier_spec) | _turns_manifest(rules, turns, settings)
    if (convention := convention_of(verifier)) is not None:
        manifest["verifier_call"] = convention
    streams = TokenStreams(dataset, rules, num_streams)
    _check_turns(streams, turns)
    return streams, manifest


def read_options(task: TaskSpec, options: Mapping[str, Any]) -> tuple[Settings, Dataset]:
    """Read the settings and the data set from the arguments of `gym.make`, without a tokenizer or a verifier.

    Raises:
        RLVRError: As for `build`.
    """
    for name in options:
        if name not in SETTINGS and name not in task.data_options:
            raise unknown_argument("the environment", name, [*SETTINGS, *task.data_options, "render_mode"])
    settings = Settings(**{name: value for name, value in options.items() if name in SETTINGS})
    check_types(settings)
    if isinstance(settings.interaction, str):
        settings = dataclasses.replace(settings, interaction=_named_interaction(settings.interaction))
        check_types(settings)
    if settings.tools is None and settings.describe_tools != "auto":
        raise InvalidArgumentError("describe_tools says how the prompt tells of tools: give tools=, too")
    data_options = {name: value for name, value in options.items() if name in task.data_options}
    dataset = task.problems(settings.split, **data_options)
    return settings, dataset


def _is_chat(dataset: Dataset, renderer: PromptRenderer, turns: _Turns) -> bool:
    """Whether the tokenizer's chat template renders the prompts, judged by the first problem.

    A prompt's stop strings are for plain text. In a chat, answers end with a token, and a stop string may be part of an answer.
    """
    if renderer.tokenizer.chat_template is None or not len(dataset):
        return False
    return turns.opening is not None or renderer.is_chat(dataset[0])


def _check_turns(streams: TokenStreams, turns: _Turns) -> None:
    """Check that the limits allow calls of tools and shortened dialogues."""
    if turns.tools:
        check_calls(streams.rules, turns.tools)
    if isinstance(turns.interaction, Summarize) and turns.interaction is not turns.answers:
        check_summaries(streams, turns.interaction.after_tokens, turns.request_tokens)
    if isinstance(turns.interaction, DropResults) and turns.interaction is not turns.answers:
        check_drops(streams.rules, turns.interaction.after_tokens, turns.interaction.keep)


def choose_prompt(task: TaskSpec, dataset: Dataset, settings: Settings, *, has_template: bool) -> Prompt:
    """Choose the prompt of an environment.

    Raises:
        InvalidArgumentError: If there is a system message, but the prompt is not a chat.
    """
    if settings.prompt in ("auto", "auto_chat"):
        prompt = task.prompt_for(dataset, chat=has_template or settings.prompt == "auto_chat")
    else:
        prompt = get_prompt(task.prompt if settings.prompt is None else settings.prompt)
    if settings.system is None:
        return prompt
    if not isinstance(prompt, ChatPrompt):
        raise InvalidArgumentError(
            f"system= is the first message of a chat, but the prompt {prompt.name!r} is text: choose a chat prompt, such as "
            "prompt='chat'"
        )
    return dataclasses.replace(prompt, system=settings.system)


def chosen_verifier(
    task: TaskSpec, settings: Settings, dataset: Dataset, prompt: Prompt
) -> tuple[VerifierArgument, Verifier]:
    """Choose the verifier of an environment; return its specification and the verifier.

    Raises:
        InvalidArgumentError: If the given or default verifier can't use the problems' references, or can't read an answer in
            the form that the prompt asks for. This is checked if a verifier or a prompt is given.
        MissingDependencyError: If tests of programs need a language that is not installed.
    """
    default = task.verifier_of(dataset, chat=isinstance(prompt, ChatPrompt))
    spec = _with_own_gold(default if settings.verifier is None else settings.verifier, default)
    verifier = preferring(_verifier(spec), asked_form(prompt))
    check_installed(spec, verifier, dataset)
    if settings.verifier is not None:
        check_references(settings.verifier, verifier, default[0], dataset)
    if settings.verifier is not None or settings.prompt is not None:
        others = [other for other in (default, task.chat_verifier) if other is not None and other != spec]
        check_pair(spec, verifier, prompt, dataset, others)
    return spec, verifier


def _task_rules(
    task: TaskSpec, settings: Settings, dataset: Dataset, tokenizer: Tokenizer, prompt: Prompt
) -> dict[str, Any]:
    """The rules of an environment's id, with the given settings in place of the id's defaults."""
    own = {} if task.rules is None else task.rules(dataset, tokenizer)
    names = ("legal_actions", "process_scorer", "end_condition")
    given = {name: value for name in names if (value := getattr(settings, name)) is not None}
    check_budget(dataset, "max_new_tokens", settings.max_new_tokens)
    budget = _budget(task, settings, prompt, own.get("max_new_tokens", task.max_new_tokens))
    return {**own, **given, "max_new_tokens": budget}


def fewest_new_tokens(task: TaskSpec, settings: Settings, prompt: Prompt) -> int:
    """The number of tokens that the policy may produce.

    If the id's own number depends on the tokenizer, this is a lower bound.
    """
    return _budget(task, settings, prompt, task.max_new_tokens if task.rules is None else 0)


def _budget(task: TaskSpec, settings: Settings, prompt: Prompt, default: int) -> int:
    """The number of tokens that the policy may produce."""
    if settings.max_new_tokens is not None:
        return settings.max_new_tokens
    in_chat = task.chat_tokens if isinstance(prompt, ChatPrompt) else 0
    return max(default, in_chat, 0 if settings.tools is None else TOOL_TOKENS)


@dataclass(frozen=True)
class _Turns:
    """The settings of episodes of several turns; all fields are empty for episodes of one turn."""

    tools: Sequence[Tool] = ()
    interaction: Interaction | None = None
    answers: Interaction | None = None
    """The interaction without the wrapper that shortens dialogues."""
    dialogue: Dialogue | None = None
    opening: Callable[[Problem], tuple[Message, ...]] | None = None
    max_inserted_tokens: int = 0
    request_tokens: int = 0
    """Length in tokens of the shortest answer that requests a summary; 0 if summaries are never requested."""


def _turn_rules(
    settings: Settings, interaction: Interaction | None, room: int, tokenizer: Tokenizer, renderer: PromptRenderer
) -> _Turns:
    """Derive the rules for several turns from the settings and the id's interaction.

    In plain text, the replies of the id's interaction need `room` tokens.
    """
    check_dialogue_name(settings.dialogue)
    tools = [] if settings.tools is None else get_tools(settings.tools)
    if settings.tools is not None and not tools:
        raise InvalidArgumentError(
            f"tools names no tool, got {settings.tools!r}: leave it out, or give None, for no tools"
        )
    if settings.interaction is not None:
        interaction = cast("Interaction", settings.interaction)
    if not tools and interaction is None:
        for name in ("max_inserted_tokens", "max_turns", "summarize_after", "drop_results_after", "dialogue"):
            if getattr(settings, name) not in (None, 0, "auto"):
                raise InvalidArgumentError(f"{name} is for episodes of several turns: give tools= or interaction=, too")
        return _Turns()
    if settings.max_inserted_tokens is not None and settings.max_inserted_tokens < 1:
        given = [f"{name}=" for name in ("tools", "interaction") if getattr(settings, name)]
        raise InvalidArgumentError(
            f"max_inserted_tokens must be at least 1 with {' and '.join(given) or 'the interaction of this environment'}, "
            f"whose replies are inserted; got {settings.max_inserted_tokens}"
        )
    dialogue = get_dialogue(
        settings.dialogue, tokenizer, [tool_schema(tool) for tool in tools], _described(settings, tokenizer, renderer)
    )
    plain = isinstance(dialogue, PlainDialogue)
    as_needed = room and plain and not tools and settings.summarize_after is None
    in_bytes = isinstance(tokenizer, ByteTokenizer) and isinstance(renderer.prompt, ChatPrompt)
    enough = room if as_needed else max(room, _INSERTED_BYTES if in_bytes else _INSERTED_TOKENS)
    answers: Any = ToolInteraction(tools, interaction) if tools else interaction
    kept_short = _kept_short(settings, answers, dialogue, renderer, tools)
    return _Turns(
        tools,
        kept_short,
        answers,
        dialogue,
        # Plain text needs no opening, and a text prompt begins as in an episode of one turn. The first message of a chat needs
        # one, since the text of a game may contain a special token's text, which must stay ordinary text.
        renderer.messages if not plain and (tools or isinstance(renderer.prompt, ChatPrompt)) else None,
        enough if settings.max_inserted_tokens is None else settings.max_inserted_tokens,
        _request_tokens(kept_short, dialogue, tools if interaction is None else ()) if settings.summarize_after else 0,
    )


_INSERTED_TOKENS = 1024
_INSERTED_BYTES = 4 * _INSERTED_TOKENS
"""The number for a chat with a server, which is counted in bytes; a model's token is about four bytes."""


def _described(settings: Settings, tokenizer: Tokenizer, renderer: PromptRenderer) -> DescribeTools:
    """How tools are described. Without a template, a chat prompt still describes tools, but a text prompt does not."""
    bare_chat = tokenizer.chat_template is None and isinstance(renderer.prompt, ChatPrompt)
    asked = settings.describe_tools
    return "text" if asked == "auto" and bare_chat and isinstance(settings.dialogue, str) else asked


def _named_interaction(path: str) -> Interaction:
    """Import the interaction that `module:attribute` names. If it is a class, make an instance without arguments.

    Raises:
        InvalidArgumentError: If a class needs arguments.
    """
    named: Any = import_attribute(path, "interaction")
    if not isinstance(named, type):
        return cast("Interaction", named)
    try:
        inspect.signature(named).bind()
    except TypeError as error:
        raise InvalidArgumentError(
            f"the interaction {path!r} is a class that can't be made without arguments: {error}; name a function or an object"
        ) from error
    return cast("Interaction", named())


def _kept_short(
    settings: Settings, answers: Interaction, dialogue: Dialogue, renderer: PromptRenderer, tools: Sequence[Tool]
) -> Interaction:
    """Wrap an interaction so that dialogues stay short, if the settings require this.

    Raises:
        InvalidArgumentError: If the settings exclude each other, or the dialogue's format can't shorten dialogues.
    """
    summarize, drop = settings.summarize_after, settings.drop_results_after
    if summarize is None and drop is None:
        return answers
    if summarize is not None and drop is not None:
        raise InvalidArgumentError("summarize_after and drop_results_after exclude each other: give one of the two")
    if drop is not None and not tools:
        raise InvalidArgumentError(
            "drop_results_after drops the results of tools: give tools=, too. An interaction that answers with messages of the "
            "role 'tool' can be wrapped in rlvr_envs.contexts.DropResults"
        )
    _check_below_context("drop_results_after" if summarize is None else "summarize_after", settings)
    # The question before a summary is already in words, so the renderer must not put the question in words again.
    render = renderer if summarize is None else dataclasses.replace(renderer, question=None)
    opening = render.messages
    if isinstance(dialogue, PlainDialogue):
        if renderer.tokenizer.chat_template is not None:
            raise InvalidArgumentError(
                "dialogue='plain' can't put a problem again in the tokenizer's chat template, as summarize_after and "
                "drop_results_after do: use dialogue='auto'"
            )
        opening = render.message
    if summarize is None:
        assert drop is not None
        return DropResults(answers, drop, opening=opening)
    interaction = Summarize(answers, summarize, opening=opening, asked=renderer.asked)
    if tools:  # raises if the chat template refuses a user's message after a tool's
        said = (ToolMessage("tool", "x", tools[0].name), Message("user", interaction.request))
        dialogue.bridge(said, turn_end(renderer.tokenizer))
    return interaction


def _request_tokens(interaction: Any, dialogue: Dialogue, tools: Sequence[Tool]) -> int:
    """Length in tokens of the shortest answer that requests a summary.

    If every reply comes from a tool, this answer begins with a tool's result.
    """
    request = SummaryRequest("user", interaction.request)
    said = (*(ToolMessage("tool", "", tool.name) for tool in tools[:1]), request)
    return len(dialogue.bridge(said, turn_end(dialogue.tokenizer)))


def _check_below_context(name: str, settings: Settings) -> None:
    """Check that the length at which dialogues are shortened is positive and can be reached."""
    limit, most = getattr(settings, name), settings.max_context_tokens
    if type(limit) is not int or limit < 1:
        raise InvalidArgumentError(f"{name} must be a whole number of at least 1, got {limit!r}")
    if type(most) is int and limit >= most:
        raise InvalidArgumentError(
            f"{name} must be less than max_context_tokens={most}, since no more are ever in view; got {limit}"
        )


def _stops(stop: str | int | Sequence[str | int]) -> tuple[str | int, ...]:
    return (stop,) if isinstance(stop, str | int) else tuple(stop)


_CUT = "Zq7cut7qZ"
"""Marks the beginning of a part until the chat template is filled in. Templates keep its letters and digits."""


@dataclass(frozen=True)
class PromptRenderer:
    """Renders a prompt in a tokenizer's chat template. Environments with an id use it as `Rules.render_prompt`."""

    prompt: Prompt
    tokenizer: Tokenizer
    question: Callable[[Problem], Problem] | None = None
    """Puts a problem's question in the words of a chat; None if the question is already in words. See `question_in`."""
    tools: ToolDescription | None = None
    """The description of tools that the text contains; None for a text without one."""

    def __call__(self, problem: Problem) -> str:
        """Render the text that the policy continues."""
        return self._rendered(problem, [])

    def asked(self, problem: Problem) -> Problem:
        """Return the problem with the question that the prompt asks; see the attribute `question`."""
        return problem if self.question is None else self.question(problem)

    def answered(self, problem: Problem, gold: str) -> str:
        """Put a gold completion in the form that the prompt asks for; a bare answer gets the marks of this form."""
        is_bare = asked_form(self.prompt) is not None and gold == gold_answer(problem)
        return written_answer(self.prompt, gold) if is_bare else gold

    def parts(self, problem: Problem) -> list[str]:
        """Render the text in parts, which are encoded one by one.

        The content of chat messages is plain text, even if it spells a special token: a new part begins after the first
        character of such a token. Special tokens of the chat template or of a text prompt stay within one part.

        Raises:
            DataError: If a message contains the text of a special token of one character, which can't be split, or the text
                contains half of a surrogate pair.
        """
        marks, chats = self.tokenizer.special_tokens, list[tuple[Message, ...]]()
        text = self._rendered(problem, chats)
        utf8(text, f"the prompt of problem {problem.id!r}")
        said = [message.content for chat in chats for message in chat]
        said += [] if self.tools is None else [self.tools.text]
        spelled = [mark for mark in marks if any(mark in content for content in said)]
        if not spelled:
            return [text]
        if short := [mark for mark in spelled if len(mark) == 1]:
            raise DataError(
                f"the prompt of problem {problem.id!r} has {short[0]!r}, which the tokenizer reads as a special token: "
                "leave the problem out, or use another tokenizer"
            )
        cut = _CUT
        while any(cut in content for content in (text, *said)):
            cut += _CUT
        return self._rendered(problem, chats, lambda content: cut.join(split_marks(content, spelled))).split(cut)

    def is_chat(self, problem: Problem) -> bool:
        """Whether the prompt is a chat. A chat is rendered by the tokenizer's chat template, if there is one."""
        chats: list[tuple[Message, ...]] = []
        self._rendered(problem, chats)
        return bool(chats)

    def _rendered(
        self, problem: Problem, chats: list[tuple[Message, ...]], change: Callable[[str], str] | None = None
    ) -> str:
        """Render the text, with `change` applied to the content of messages, and append the rendered chats to `chats`."""
        problem = self.asked(problem)
        template = self.tokenizer.chat_template

        def render(messages: tuple[Message, ...]) -> str:
            if self.tools is not None and template is not None:
                messages = self.tools.put_into(messages)
            chats.append(messages)
            if change is not None:
                messages = tuple(dataclasses.replace(message, content=change(message.content)) for message in messages)
            return render_chat(messages, template)

        plain = template is None and not isinstance(self.prompt, ChatPrompt | TextPrompt)
        text = self.prompt.render(problem, None if plain else render)
        if self.tools is None or (chats and template is not None):
            return text
        return f"{self.tools.text if change is None else change(self.tools.text)}\n\n{text}"

    def messages(self, problem: Problem) -> tuple[Message, ...]:
        """Return the chat before any template is applied. A text prompt becomes one message of the user.

        Raises:
            DataError: If a message holds half of a surrogate pair.
        """
        chats: list[tuple[Message, ...]] = []

        def keep(messages: tuple[Message, ...]) -> str:
            chats.append(messages)
            return ""

        text = self.prompt.render(self.asked(problem), keep)
        messages = chats[0] if chats else (Message("user", text),)
        for message in messages:
            utf8(message.content, f"the prompt of problem {problem.id!r}")
        return messages

    def message(self, problem: Problem) -> tuple[Message, ...]:
        """The text that the policy continues, as one message."""
        return (Message("user", self(problem)),)


OWN_VERIFIER = "environment"
"""Name of the environment's own verifier in the argument `gold` of `with_gold`."""


def _with_own_gold(spec: VerifierArgument, default: tuple[str, Mapping[str, object]]) -> VerifierArgument:
    """In `with_gold`, replace `gold="environment"` by the environment's own verifier. Any other verifier stays unchanged."""
    if not isinstance(spec, tuple) or spec[0] != "with_gold" or dict(spec[1]).get("gold") != OWN_VERIFIER:
        return spec
    return "with_gold", {**spec[1], "gold": default}


def _verifier(spec: VerifierArgument) -> Verifier:
    if isinstance(spec, tuple):
        if len(spec) != 2:
            raise InvalidArgumentError(f"a verifier given as a pair must be (name, arguments), got {spec!r}")
        name, kwargs = spec
        if not _is_named(kwargs):
            raise InvalidArgumentError(
                f"a verifier given as a pair must be (name, arguments), such as ('math', {{'percent': 'value'}}), got {spec!r}"
            )
        return verifiers.make(name, **kwargs)
    return verifiers.make(spec)


def _is_named(arguments: object) -> bool:
    return isinstance(arguments, Mapping) and all(isinstance(name, str) for name in arguments)


def _answer_characters(dataset: Dataset, rules: Rules) -> FixedActions:
    """Allow the stop tokens, and the tokens made of the characters in answers."""
    alphabet = getattr(dataset, "answer_alphabet", None)
    if alphabet is None:
        raise InvalidArgumentError(
            "restrict_actions=True needs a data set that names the characters of its answers (the procedural "
            "environments); pass legal_actions= here"
        )
    allowed = set(alphabet.encode())
    pieces = (rules.tokenizer.token_bytes(token) for token in range(rules.tokenizer.vocab_size))
    spelled = np.fromiter((bool(piece) and set(piece) <= allowed for piece in pieces), dtype=bool)
    return FixedActions((spelled | rules.stop_tokens()).astype(np.int8))


def _manifest(dataset: Dataset, rules: Rules, prompt: Prompt, verifier: VerifierArgument) -> dict[str, Any]:
    stops = list(stop_tokens(rules.tokenizer))
    return {
        "dataset": _identity(dataset),
        "problems": len(dataset),
        "prompt": {
            "name": prompt.name,
            "fingerprint": prompt.fingerprint,
            "chat": isinstance(prompt, ChatPrompt),
            "answer": asked_form(prompt),
        },
        "tokenizer": rules.tokenizer.fingerprint,
        "verifier": _verifier_identity(verifier),
        "reader": READER,
        "stop": list(rules.stop),
        **({"stop_tokens": stops} if len(stops) > 1 else {}),
        "max_prompt_tokens": rules.max_prompt_tokens,
        "max_new_tokens": rules.max_new_tokens,
        "restrict_actions": rules.legal_actions is not None,
    }


def _turns_manifest(rules: Rules, turns: _Turns, settings: Settings) -> dict[str, Any]:
    """The settings that determine episodes of several turns; empty for episodes of one turn."""
    manifest: dict[str, Any] = {}
    if rules.interaction is not None:
        manifest["turns"] = {
            "tools": [_tool_record(tool) for tool in turns.tools],
            "interaction": _identity(turns.answers),
            "dialogue": type(turns.dialogue).__name__,
            **(_description_record(turns.dialogue) if turns.tools else {}),
            "max_turns": rules.max_turns,
            "max_inserted_tokens": rules.max_inserted_tokens,
        }
    names = ("max_context_tokens", "summarize_after", "drop_results_after")
    limits = {name: value for name in names if (value := getattr(settings, name)) is not None}
    return manifest | ({"context": limits} if limits else {})


def _description_record(dialogue: object) -> dict[str, Any]:
    """Record how tools are described to the model, with the text of the description if there is one."""
    if isinstance(dialogue, DescribedDialogue | PlainDialogue):
        said = dialogue.description
        return {"describe_tools": "none"} if said is None else {"describe_tools": "text", "description": said.text}
    return {"describe_tools": "template" if isinstance(dialogue, TemplateDialogue) else "dialogue"}


def _tool_record(tool: Tool) -> dict[str, Any]:
    """A tool's description for the policy, with the tool's fingerprint if there is one, as for a search tool."""
    own = getattr(tool, "fingerprint", None)
    return tool_schema(tool) if own is None else {**tool_schema(tool), "fingerprint": str(own)}


def _verifier_identity(verifier: VerifierArgument) -> object:
    if isinstance(verifier, tuple):
        return verifier_record(*verifier)
    return verifier_record(verifier, {}) if is_verifier_file(verifier) else _identity(verifier)


def _identity(value: object) -> str:
    """Describe a value in the same way in every process: by a checksum, the text of a dataclass, or a qualified name."""
    if hasattr(value, "fingerprint"):
        return str(value.fingerprint)
    if isinstance(value, str):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        settings = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.repr}
        safe = redacted(settings)
        secrets = {name: safe[name] for name, text in settings.items() if isinstance(text, str) and text != safe[name]}
        return str(dataclasses.replace(value, **secrets) if secrets else value)
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


_longest: weakref.WeakKeyDictionary[Dataset, dict[tuple[str, str], int]] = weakref.WeakKeyDictionary()


def longest_prompt(dataset: Dataset, render: PromptRenderer, turns: _Turns) -> int:
    """The number of tokens that is enough for the prompt of every problem.

    The number is exact for a finite data set, which is encoded once for each tokenizer and prompt. For a data set with
    `max_prompt_bytes`, such as a procedural data set, the number is an upper bound: the bytes of the longest prompt, since no
    token is shorter than a byte, plus the tokens that the tokenizer puts before a text.
    """
    if turns.opening is not None and turns.dialogue is not None:
        return _longest_opening(dataset, turns.dialogue, turns.opening, longest_problem(dataset, render.question))
    tokenizer = render.tokenizer
    if (longest := longest_problem(dataset, render.question)) is not None:
        return _start_tokens(dataset, tokenizer) + len(utf8(render(longest), "the prompt"))
    # Results are cached only for data sets with a fingerprint, since any other data set may change.
    known = _longest.setdefault(dataset, {}) if hasattr(dataset, "fingerprint") else {}
    said = ("" if render.question is None else " in words") + ("" if render.tools is None else render.tools.text)
    key = (tokenizer.fingerprint, render.prompt.fingerprint + said)
    if key not in known:
        known[key] = _most_tokens(tokenizer, [render.parts(dataset[index]) for index in range(len(dataset))])
    if known[key] < 1:
        raise empty_prompt(dataset[0])
    return known[key]


def _start_tokens(dataset: Dataset, tokenizer: Tokenizer) -> int:
    """The maximum number of tokens that a tokenizer puts before a text of a data set."""
    alphabet = getattr(dataset, "alphabet", None)
    if alphabet is not None:
        return max(len(tokenizer.encode(character, start=True)) - 1 for character in alphabet)
    return len(tokenizer.encode("", start=True)) + 1  # some tokenizers add a space


def _longest_opening(
    dataset: Dataset,
    dialogue: Dialogue,
    opening: Callable[[Problem], tuple[Message, ...]],
    longest: Problem | None,
) -> int:
    """The number of tokens that is enough for every prompt, as in `longest_prompt`, if a dialogue encodes the prompts."""
    if longest is not None:
        messages = opening(longest)
        frame = dialogue.open([dataclasses.replace(message, content="") for message in messages])
        # Tokens of the frame may be split if text comes directly before or after.
        return len(frame) + sum(len(message.content.encode()) + 2 for message in messages)
    return max(len(dialogue.open(opening(dataset[index]))) for index in range(len(dataset)))


def _most_tokens(tokenizer: Tokenizer, texts: Sequence[list[str]]) -> int:
    """The number of tokens of the longest text; each text is given in parts.

    Long texts are encoded first. An ASCII text with fewer characters than the largest number so far need not be encoded: no
    token is shorter than a byte, and normalisers never lengthen ASCII text.
    """
    opening = len(tokenizer.encode("", start=True)) + 1  # some tokenizers add a space
    most = 0
    for parts in sorted(texts, key=_length, reverse=True):
        if opening + _length(parts) > most or not all(part.isascii() for part in parts):
            most = max(most, len(encode_parts(tokenizer, parts, start=True)))
    return most


def _length(parts: list[str]) -> int:
    return sum(map(len, parts))
