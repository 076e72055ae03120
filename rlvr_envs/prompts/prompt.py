"""Prompts that present a problem to the policy: text templates, few-shot examples, and chats."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from verifiers import InvalidArgumentError, Message, Problem
from verifiers.completion import Form, form_of

PLACEHOLDER = "{problem}"
"""The placeholder of the problem in a template. All other braces in a template or a problem are literal."""
ANSWER = "{answer}"
"""The placeholder of the answer in `answer_format`. All other braces are literal."""
_FORMATS = {r"\boxed": r"\boxed{{answer}}", "<answer>": "<answer>{answer}</answer>", "####": "#### {answer}"}
"""The answer formats that a template may ask for, by the text in the template that shows the format."""

ChatTemplate = Callable[[tuple[Message, ...]], str]
"""A tokenizer's chat template, which turns messages into text up to the start of the assistant's next message."""


@runtime_checkable
class Prompt(Protocol):
    """Renders problems to the text that the policy continues."""

    @property
    def name(self) -> str:
        """The preset's name; `"custom"` for a custom prompt."""
        ...

    @property
    def stop(self) -> tuple[str, ...]:
        """The stop strings of this prompt, which mark the end of the answer."""
        ...

    @property
    def fingerprint(self) -> str:
        """Hexadecimal sha256 over everything that shapes the text, including examples and stop strings."""
        ...

    def render(self, problem: Problem, chat_template: ChatTemplate | None = None) -> str:
        """The text that the policy continues.

        Args:
            problem: The problem to render.
            chat_template: The tokenizer's chat template; None selects the plain form of `render_chat`.
        """
        ...


@dataclass(frozen=True, slots=True)
class Exemplar:
    """A worked example to show before the problem."""

    problem: str
    """The question."""
    answer: str
    """The answer to the question, written as the policy should write its answer."""


def render_chat(messages: tuple[Message, ...], chat_template: ChatTemplate | None) -> str:
    r"""Render messages with a tokenizer's chat template or, without a template, in a plain form.

    In the plain form, a message is `"User: <content>"` (or `"System: "`, `"Assistant: "`), blank lines separate the messages,
    and `"Assistant:"` is at the end: `"User: What is 2 + 2?\n\nAssistant:"`.
    """
    if chat_template is not None:
        return chat_template(messages)
    turns = [f"{message.role.capitalize()}: {message.content}" for message in messages]
    return "\n\n".join([*turns, "Assistant:"])


@dataclass(frozen=True, slots=True)
class TextPrompt:
    """A text template, which may follow examples in the same form.

    A problem that is a chat is rendered as a chat, with the template applied to its last user message.

    Raises:
        InvalidArgumentError: If the template has no `{problem}`.
    """

    template: str = PLACEHOLDER
    """Text with `{problem}` in it, such as `"Question: {problem}\\nAnswer:"`."""
    exemplars: tuple[Exemplar, ...] = ()
    """Worked examples, each shown as the filled template and then the answer."""
    before_answer: str = " "
    """Text between the template and an example's answer. After the problem's template, the policy itself has to write this
    text."""
    separator: str = "\n\n"
    """Text between two examples, and between the last example and the problem."""
    stop: tuple[str, ...] = ()
    """Default stop strings."""
    answer_format: str | None = None
    """The form in which the prompt asks for the answer, such as `"#### {answer}"`. Verifiers prefer this form to any other
    form."""
    name: str = "custom"
    """The preset's name."""
    source: str = ""
    """The source of the format, in words."""

    def __post_init__(self) -> None:
        _check_template(self.template)
        _check_answer_format(self.answer_format)

    @property
    def fingerprint(self) -> str:
        """Hexadecimal sha256 over everything that shapes the text, including examples and stop strings."""
        return _fingerprint(self)

    def render(self, problem: Problem, chat_template: ChatTemplate | None = None) -> str:
        """Fill the template with the problem's text; see `Prompt.render`.

        Raises:
            InvalidArgumentError: If the problem is a chat without a user message.
        """
        if isinstance(problem.prompt, str):
            return self._text(problem.prompt)
        return render_chat(_map_last_user_message(problem, problem.prompt, self._text), chat_template)

    def _text(self, problem: str) -> str:
        shown = [
            _fill(self.template, exemplar.problem) + self.before_answer + exemplar.answer for exemplar in self.exemplars
        ]
        return self.separator.join([*shown, _fill(self.template, problem)])


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A chat: an optional system message, any examples as earlier turns, and the problem as a user message.

    A problem that is itself a chat keeps its messages. The template is applied to the problem's last user message. If the
    problem starts with a system message, this message replaces `system`.

    Raises:
        InvalidArgumentError: If the template has no `{problem}`.
    """

    template: str = PLACEHOLDER
    """The user message, with `{problem}` in it."""
    system: str | None = None
    """The system message; None if there is none."""
    exemplars: tuple[Exemplar, ...] = ()
    """Worked examples. Each becomes a user message, made with the template, and the assistant's answer."""
    stop: tuple[str, ...] = ("\n\nUser:",)
    """Default stop strings; `"\\n\\nUser:"` ends an answer in the plain form of `render_chat`, which has no end token."""
    answer_format: str | None = None
    """The form in which the prompt asks for the answer, such as `"#### {answer}"`. Verifiers prefer this form to any other
    form."""
    name: str = "custom"
    """The preset's name."""
    source: str = ""
    """The source of the format, in words."""

    def __post_init__(self) -> None:
        _check_template(self.template)
        _check_answer_format(self.answer_format)

    @property
    def fingerprint(self) -> str:
        """Hexadecimal sha256 over everything that shapes the text, including examples and stop strings."""
        return _fingerprint(self)

    def messages(self, problem: Problem) -> tuple[Message, ...]:
        """Return the chat that asks for the problem's answer.

        Raises:
            InvalidArgumentError: If the problem is a chat without a user message.
        """
        asked = (Message("user", problem.prompt),) if isinstance(problem.prompt, str) else problem.prompt
        asked = _map_last_user_message(problem, asked, lambda text: _fill(self.template, text))
        system: tuple[Message, ...] = () if self.system is None else (Message("system", self.system),)
        if asked[0].role == "system":
            system, asked = asked[:1], asked[1:]
        return (*system, *self._exemplar_messages(), *asked)

    def render(self, problem: Problem, chat_template: ChatTemplate | None = None) -> str:
        """Render the chat; see `Prompt.render`.

        Raises:
            InvalidArgumentError: If the problem is a chat without a user message.
        """
        return render_chat(self.messages(problem), chat_template)

    def _exemplar_messages(self) -> list[Message]:
        turns = [
            (Message("user", _fill(self.template, exemplar.problem)), Message("assistant", exemplar.answer))
            for exemplar in self.exemplars
        ]
        return [message for turn in turns for message in turn]


def _check_template(template: str) -> None:
    if PLACEHOLDER not in template:
        raise InvalidArgumentError(
            f"a prompt template needs {PLACEHOLDER} where the problem's text goes, got {template!r}"
        )


def _check_answer_format(answer_format: str | None) -> None:
    if answer_format is not None and ANSWER not in answer_format:
        raise InvalidArgumentError(f"an answer format needs {ANSWER} where the answer goes, got {answer_format!r}")


def written_answer(prompt: Prompt, answer: str) -> str:
    """Write an answer in the form that a prompt asks for in its `answer_format` or its template."""
    if not isinstance(prompt, TextPrompt | ChatPrompt):
        return answer
    named = (form for sign, form in _FORMATS.items() if sign in prompt.template)
    return (prompt.answer_format or next(named, ANSWER)).replace(ANSWER, answer)


def asked_form(prompt: Prompt) -> Form | None:
    """The form of the marks that a prompt's `answer_format` asks for; None if there are no marks."""
    answer_format = getattr(prompt, "answer_format", None)
    return form_of(answer_format.replace(ANSWER, "0")) if answer_format else None


def _fingerprint(prompt: TextPrompt | ChatPrompt) -> str:
    content = dataclasses.asdict(prompt)
    del content["name"], content["source"], content["answer_format"]
    return hashlib.sha256(json.dumps([type(prompt).__name__, content], sort_keys=True).encode()).hexdigest()


def _fill(template: str, text: str) -> str:
    # Problems and templates are full of literal braces, which rules out str.format.
    return template.replace(PLACEHOLDER, text)


def _map_last_user_message(
    problem: Problem, messages: tuple[Message, ...], change: Callable[[str], str]
) -> tuple[Message, ...]:
    users = [index for index, message in enumerate(messages) if message.role == "user"]
    if not users:
        roles = [message.role for message in messages]
        raise InvalidArgumentError(f"problem {problem.id!r} is a chat without a user message; its roles are {roles}")
    last = users[-1]
    return (*messages[:last], Message("user", change(messages[last].content)), *messages[last + 1 :])
