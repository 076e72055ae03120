"""`MessageEnv`: the episodes of an environment in messages, for models that answer in text and calls instead of tokens.

Episodes in messages and in tokens have the same turns, answers, verdicts and rewards; both use the loop in `rlvr_envs.turns`.
The sampler, such as a server that reports its usage, counts the policy's tokens. Messages of users and tools are counted, and
cut, by the environment's tokenizer.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any, Literal, cast

import numpy as np

from rlvr_envs.contexts import DropResults, Summarize
from rlvr_envs.dialogue import (
    DescribedDialogue,
    Dialogue,
    MessageTurn,
    ParsedTurn,
    PlainDialogue,
    TemplateDialogue,
    ToolDescription,
    ToolSchema,
    as_text,
    parse_made,
    plain_format,
    spell,
    with_calls,
    with_ids,
)
from rlvr_envs.envs import PromptRenderer
from rlvr_envs.mixed_streams import MixedDataset
from rlvr_envs.rules import Rules
from rlvr_envs.streams import TokenStreams
from rlvr_envs.tokenizers import decode, stop_tokens
from rlvr_envs.turns import answer_turn, follow, judged_text
from rlvr_envs.types import TextCompletion, Turn
from verifiers import Completion, InvalidArgumentError, Message, Problem, Verdict, dialogue_of

Form = Literal["calls", "messages", "text"]
"""The form of the exchange: `calls` is messages with tools and calls in separate fields, `messages` is messages of text alone,
and `text` is one text that the policy continues."""
_TOKEN_RULES = ("legal_actions", "process_scorer")
"""Rules that need the tokens of an episode."""


class MessageEnv:
    """The episodes of token streams, played in messages.

    Args:
        streams: The streams with the problems and rules; they are not changed.
        form: The form of the exchange.

    Raises:
        InvalidArgumentError: If the streams are a mixture, the rules need the tokens of an episode, or a stop token can't be
            written as text.
    """

    def __init__(self, streams: TokenStreams, form: Form = "calls") -> None:
        rules = streams.rules
        if isinstance(streams.dataset, MixedDataset):
            raise InvalidArgumentError(
                "episodes of messages follow the rules of one environment, but each part of a mixture has its own rules: play "
                f"the parts {list(streams.dataset.names)} one by one, as rlvr eval --env does with several names"
            )
        for name in _TOKEN_RULES:
            if getattr(rules, name) is not None:
                raise InvalidArgumentError(
                    f"episodes of messages have no tokens to limit or to score, but this environment has {name}: sample with "
                    "the engine 'torch'"
                )
        self.streams = streams
        self.form = form
        self.rules = rules if form == "text" else _opened_by_messages(rules)
        self.dialogue = _dialogue(rules, form)
        own = () if rules.dialogue is None else rules.dialogue.stop  # the strings that end a turn after a call in text
        kept = [stop for stop in rules.stop if stop not in own]
        stops = kept if form == "calls" else [*kept, *self.dialogue.stop]
        ends = stop_tokens(rules.tokenizer)  # a server stops at these tokens by itself
        self.stop = tuple(dict.fromkeys(_stop_text(rules, stop) for stop in stops if stop not in ends))
        """The strings that end a turn."""
        self.tools: tuple[ToolSchema, ...] = tuple(rules.tools) if form == "calls" else ()
        """The tools that are offered in a separate field."""

    def start(self, problem: Problem) -> MessageEpisode:
        """Start an episode."""
        return MessageEpisode(self, problem)

    def opening(self, problem: Problem) -> tuple[Message, ...]:
        """The messages that show a problem to the policy, without the description of tools."""
        render = self.rules.render_prompt
        return render.messages(problem) if isinstance(render, PromptRenderer) else (Message("user", render(problem)),)

    @property
    def description(self) -> ToolDescription | None:
        """The description of the tools in the messages; None if the messages contain none."""
        dialogue: object = self.dialogue
        if self.form == "messages" and isinstance(dialogue, PlainDialogue | DescribedDialogue):
            return dialogue.description
        return None


def _opened_by_messages(rules: Rules) -> Rules:
    """Change the rules so that a new context begins with a problem's messages instead of the text of a prompt."""
    kept_short, render = rules.interaction, rules.render_prompt
    if not isinstance(kept_short, Summarize | DropResults) or not isinstance(render, PromptRenderer):
        return rules
    render = render if isinstance(kept_short, DropResults) else dataclasses.replace(render, question=None)
    return dataclasses.replace(rules, interaction=dataclasses.replace(kept_short, opening=render.messages))


def _dialogue(rules: Rules, form: Form) -> Dialogue:
    """The format in which calls in text are read and answers are cut."""
    dialogue: Any = rules.dialogue or PlainDialogue(rules.tokenizer)
    if form == "messages" and rules.tools and isinstance(dialogue, TemplateDialogue):
        dialogue = DescribedDialogue(dialogue.tokenizer, rules.tools, plain_format(rules.tools))
    return cast("Dialogue", dialogue)


def _stop_text(rules: Rules, stop: str | int) -> str:
    if isinstance(stop, str):
        return stop
    text = spell(rules.tokenizer, [stop])
    if not text or "\ufffd" in text:
        raise InvalidArgumentError(
            f"episodes of messages have no tokens to stop at, and the stop token {stop} is not text: leave it out of stop="
        )
    return text


class MessageEpisode:
    """One episode of a `MessageEnv`.

    The caller answers `prompt` and passes the answer to `take`, until the episode is `over`.
    """

    def __init__(self, env: MessageEnv, problem: Problem) -> None:
        self.env = env
        self.problem = problem
        self.turns: tuple[Turn, ...] = ()
        """The turns that have been answered."""
        self.over = False
        self.truncated = False
        """Whether a limit or a failure of the interaction ended the episode."""
        self.reward = 0.0
        """The sum of the turns' rewards, without the verdict."""
        self.error: Verdict | None = None
        """A `VERIFIER_ERROR` if the interaction failed; None otherwise."""
        self.tokens = 0
        """Number of the policy's tokens, as far as the sampler counted them."""
        self.prompt_tokens = 0
        """Number of prompt tokens, summed over the policy's turns."""
        self._last: Message | None = None
        self._closing: tuple[Message, ...] = ()
        self._view: tuple[Message | Turn, ...] = env.opening(problem)
        self._inserted = 0
        self._left = env.rules.max_new_tokens
        self._text = env.streams.prompt_text(problem) if env.form == "text" else ""
        watched = env.rules.end_condition is not None
        self._seen = env.streams.encode_prompt(problem) if watched else np.zeros(0, dtype=np.int32)
        self._prompt_length = len(self._seen)

    @property
    def prompt(self) -> str | tuple[Message, ...]:
        """The messages that the policy answers next, or the text to continue."""
        if self.env.form == "text":
            return self._text
        if self.env.form == "calls":
            return with_calls(self._view)
        described = self.env.description
        messages = as_text(self._view)
        return messages if described is None else described.put_into(messages)

    @property
    def max_tokens(self) -> int:
        """Maximum number of tokens of the next turn."""
        return min(self._left, self.env.rules.turn_tokens or self._left)

    @property
    def completion(self) -> str:
        """The text to be judged: the dialogue and, if the episode is over, the last turn."""
        last = self._last or Message("assistant", "")
        if self.over or not self.turns:
            return judged_text(self.turns, last, self._closing)
        return Completion("", dialogue_of(judged_text(self.turns, last))[:-1])

    def take(self, said: TextCompletion) -> None:
        """Take a turn of the policy and answer it. Afterwards `prompt` asks for the next turn, unless the episode is over.

        Raises:
            InvalidArgumentError: If the interaction's answer is neither a `Reply` nor None.
        """
        rules, asked = self.env.rules, self.max_tokens
        self.tokens += said.tokens
        self.prompt_tokens += said.prompt_tokens
        self._left -= max(said.tokens, 1)
        turn, met = self._until_end(self._turn(said))
        self._last = turn.message
        ran_out = said.truncated and asked != rules.turn_tokens
        full = rules.max_context_tokens is not None and turn.context_tokens > rules.max_context_tokens
        if met or ran_out or full or rules.interaction is None:
            self._end(terminated=met or not (ran_out or full))
        else:
            self._answer(turn)

    def _turn(self, said: TextCompletion) -> MessageTurn:
        """The turn, with its calls, and with the tokens that the environment's tokenizer makes from it."""
        tokenizer, dialogue = self.env.rules.tokenizer, self.env.dialogue
        made = with_ids(said.calls, len(self.turns)) if self.env.form == "calls" else ()
        parsed = ParsedTurn()
        if self.env.form == "calls":
            parsed = parse_made(made)
        elif self.env.rules.tools:
            parsed = dialogue.parse(tokenizer.encode(said.text))
        stopped_by = said.stopped_by
        if self.env.form != "calls" and (parsed.calls or parsed.errors) and not stopped_by:
            # Servers do not report which stop string ended a turn; a turn with a call ends with the dialogue's own stop string.
            stopped_by = next((stop for stop in map(str, dialogue.stop)), "")
        tokens = tokenizer.encode(said.text + stopped_by)
        return MessageTurn(
            tokens if stopped_by else np.append(tokens, np.int32(self.env.rules.turn_end)),
            said.text,
            parsed.calls,
            parsed.errors,
            context_tokens=said.prompt_tokens + said.tokens,
            made=made,
            reasoning=said.reasoning,
            stopped_by=stopped_by,
        )

    def _until_end(self, turn: MessageTurn) -> tuple[MessageTurn, bool]:
        """Cut a turn after the token at which the end condition holds; return the turn, and whether the condition holds."""
        over = self.env.rules.end_condition
        if over is None:
            return turn, False
        seen = np.concatenate([self._seen, turn.tokens])
        for end in range(len(self._seen) + 1, len(seen) + 1):
            if over(seen[:end], self._prompt_length, self.problem):
                tokens = seen[len(self._seen) : end]
                text = turn.text if end == len(seen) else decode(self.env.rules.tokenizer, tokens)
                return dataclasses.replace(turn, tokens=tokens, text=text), True
        return turn, False

    def _answer(self, turn: MessageTurn) -> None:
        rules = self.env.rules
        turns, window = (*self.turns, turn), rules.max_context_tokens or sys.maxsize
        given = answer_turn(
            rules,
            self.env.dialogue,
            turns,
            self.problem,
            left=self._left,
            inserted=self._inserted,
            in_view=turn.context_tokens,
            window=window,
            context=sys.maxsize,
        )
        after = follow(rules, turns, given, self._left)
        self.reward += after.reward
        if after.over:
            self.error, self._closing = after.error, after.closing
            self._end(terminated=after.terminated)
            return
        assert given.tokens is not None
        self.turns, self._last = after.turns, None
        answered = after.turns[-1]
        if answered.context is None:
            self._inserted += len(given.tokens)
            self._view = (*self._view, answered, *given.shown)
            came = np.concatenate([turn.tokens, given.tokens])
            self._seen = np.concatenate([self._seen, came])
            self._text += spell(rules.tokenizer, came.tolist())
        else:
            self._view = (*answered.context, *given.shown)
            self._seen, self._prompt_length = given.tokens, len(given.tokens)
            self._text = spell(rules.tokenizer, given.tokens.tolist())

    def _end(self, *, terminated: bool) -> None:
        self.over, self.truncated = True, not terminated
