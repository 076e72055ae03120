"""Turns a problem and the steps of a completion into tokens, and finds the tokens at which the steps are scored."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from verifiers._models import as_plain_text, special_texts
from verifiers._settings import check_types
from verifiers.errors import InvalidArgumentError
from verifiers.types import Message, chat_messages, prompt_text

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

StepLayout = Literal["chat", "text", "pieces", "turns"]
_HOLE = "\ufdd0"
"""Placeholder for a mark in a chat template: a code point that Unicode reserves for internal use and that no text contains."""


class UnwritableStepsError(Exception):
    """A completion can't be written with a mark after each step; the message says why."""


@dataclass(frozen=True, slots=True)
class StepFormat:
    """The format in which a problem and the steps of a completion are written for a process reward model.

    Raises:
        InvalidArgumentError: If the split or the mark is empty, or there is a system message but the layout is not a chat.
    """

    layout: StepLayout
    """`"chat"`: all steps are one message of the assistant, with a mark after each step. `"text"`: the same without a chat
    template. `"pieces"`: as `"text"`, but the prompt, each step and each mark are tokenised separately. `"turns"`: each step is
    a message of the user, the first step together with the problem, and the assistant answers each message with the mark."""
    split: str
    """Text between two steps of a completion."""
    mark: str
    """Text at which a step is scored."""
    system: str | None = None
    """System message of a chat whose prompt has no system message."""
    prompt_end: str = ""
    """Text between the prompt and the first step; unused in a chat."""
    step_end: str = ""
    """Text between a step and its mark."""
    mark_end: str = ""
    """Text between a mark and the next step."""

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("split", "mark"):
            if not getattr(self, name):
                raise InvalidArgumentError(f"{name} must not be empty")
        if self.system is not None and self.layout != "chat":
            raise InvalidArgumentError(f"a system message needs layout='chat', got layout={self.layout!r}")


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a completion."""

    text: str
    end: int
    """Number of characters of the completion up to the end of the step, including the separator after it."""
    is_cut_off: bool
    """Whether the end of the completion ends the step, instead of a separator."""


def steps_of(completion: str, split: str) -> list[Step]:
    """Split a completion into steps; blank text between two splits is not a step."""
    steps: list[Step] = []
    end = 0
    pieces = completion.split(split)
    for number, text in enumerate(pieces, 1):
        is_last = number == len(pieces)
        end += len(text) + (0 if is_last else len(split))
        if text.strip():
            steps.append(Step(text, end, is_last))
    return steps


class StepEncoder:
    """Encodes problems and steps as tokens, in a format.

    Raises:
        InvalidArgumentError: If the tokenizer does not suit the format: it has no chat template, the mark is not a single token
            although the layout requires this, or the chat template drops marks.
    """

    def __init__(self, format: StepFormat, tokenizer: PreTrainedTokenizerBase) -> None:
        self._format = format
        self._tokenizer = tokenizer
        self._mark: list[int] = self._ids(format.mark)
        if format.layout in ("chat", "turns") and not tokenizer.chat_template:
            raise InvalidArgumentError(f"layout={format.layout!r} needs a tokenizer with a chat template")
        self._check_mark()
        added = {token.content for token in tokenizer.added_tokens_decoder.values()}
        self._special = special_texts(tokenizer) + ((format.mark,) if format.mark in added else ())
        try:
            self.encode("What is 1+1?", [Step("a", 1, False), Step("b", 2, True)])
        except UnwritableStepsError as error:
            raise InvalidArgumentError(f"the tokenizer does not suit this format: {error}") from error

    def _check_mark(self) -> None:
        mark, ids = self._format.mark, self._mark
        if not ids or self._tokenizer.unk_token_id in ids:
            raise InvalidArgumentError(f"the tokenizer has no token for the mark {mark!r}")
        if self._format.layout == "pieces":
            return
        if len(ids) != 1:
            raise InvalidArgumentError(f"the mark {mark!r} must be one token, and the tokenizer gives {len(ids)}")
        if not self._tokenizer.is_fast:
            raise InvalidArgumentError(
                "marks can only be found with a fast tokenizer, which knows its tokens' characters"
            )

    def encode(self, prompt: str | Sequence[Message], steps: Sequence[Step]) -> tuple[list[int], list[int]]:
        """Encode a problem and its steps; also return, for each step, the index of the token at which the step is scored.

        Raises:
            UnwritableStepsError: If a step is not followed by its mark as a single token.
        """
        texts = [as_plain_text(step.text.replace(_HOLE, ""), self._special) for step in steps]
        if self._format.layout == "pieces":
            return self._pieces(prompt, texts)
        segments = self._segments(prompt, texts)
        if len(segments) != len(steps) + 1:
            raise UnwritableStepsError(
                f"{len(steps)} steps have {len(segments) - 1} marks once the chat template is filled in"
            )
        return self._marked(segments)

    def _pieces(self, prompt: str | Sequence[Message], steps: list[str]) -> tuple[list[int], list[int]]:
        start = self._tokenizer.bos_token_id
        ids = [] if start is None else [start]
        ids += self._ids(prompt_text(prompt) + self._format.prompt_end)
        scored = []
        for number, step in enumerate(steps):
            ids += self._ids((self._format.mark_end if number else "") + step + self._format.step_end) + self._mark
            scored.append(len(ids) - 1)
        return ids, scored

    def _segments(self, prompt: str | Sequence[Message], steps: list[str]) -> list[str]:
        """The texts before the first mark, between two marks, and after the last mark."""
        format = self._format
        if format.layout == "turns":
            said = [prompt_text(prompt) + format.prompt_end + steps[0].strip(), *(step.strip() for step in steps[1:])]
            return self._rendered([turn for text in said for turn in _turns(text)])
        body = (_HOLE + format.mark_end).join(step + format.step_end for step in steps) + _HOLE
        if format.layout == "text":
            return (prompt_text(prompt) + format.prompt_end + body).split(_HOLE)
        messages = chat_messages(prompt)
        if format.system is not None and not any(message["role"] == "system" for message in messages):
            messages.insert(0, {"role": "system", "content": format.system})
        return self._rendered([*messages, {"role": "assistant", "content": body}])

    def _rendered(self, messages: list[dict[str, str]]) -> list[str]:
        return str(self._tokenizer.apply_chat_template(messages, tokenize=False)).split(_HOLE)

    def _marked(self, segments: list[str]) -> tuple[list[int], list[int]]:
        """Tokenise the segments, joined by marks, as one text, and find the marks by their positions in it."""
        mark = self._format.mark
        # A chat template writes the special tokens itself.
        encoding = self._tokenizer(
            mark.join(segments),
            add_special_tokens=self._format.layout == "text",
            return_offsets_mapping=True,
            truncation=False,
            verbose=False,
        )
        ids = list(encoding["input_ids"])
        index_of = {end: index for index, (start, end) in enumerate(encoding["offset_mapping"]) if end > start}
        ends = itertools.accumulate(len(segment) + len(mark) for segment in segments[:-1])
        marks = [index_of.get(end, -1) for end in ends]
        if any(index < 0 or ids[index] != self._mark[0] for index in marks):
            raise UnwritableStepsError(f"the tokenizer joins the mark {mark!r} with the text around it")
        # A language model gives the probability of the assistant's answer one token before it.
        return ids, [index - 1 for index in marks] if self._format.layout == "turns" else marks

    def _ids(self, text: str) -> list[int]:
        ids: Any = self._tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)["input_ids"]
        return list(ids)


def _turns(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}, {"role": "assistant", "content": _HOLE}]
