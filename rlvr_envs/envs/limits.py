"""Check that an environment's limits allow episodes to use tools and to shorten dialogues."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from rlvr_envs.dialogue import PlainDialogue
from rlvr_envs.dialogue.plain import OPENING
from rlvr_envs.rules import Rules
from rlvr_envs.streams import TokenStreams
from rlvr_envs.tools import Tool
from rlvr_envs.turns import room_for_reply
from rlvr_envs.types import FixedActions
from verifiers import InvalidArgumentError

TOOL_TOKENS = 128
"""The smallest default of `max_new_tokens` with tools."""
_PROMPTS = 1000
"""Number of problems whose prompts are examined."""


def check_calls(rules: Rules, tools: Sequence[Tool]) -> None:
    """Check that the limits allow the policy to call a tool and to use the tool's answer.

    Raises:
        InvalidArgumentError: If the limits are too small.
    """
    if rules.max_turns == 1:
        raise InvalidArgumentError("max_turns must be at least 2 with tools, one turn to call and one to answer; got 1")
    call, least = _shortest_call(rules, tools)
    if rules.turn_tokens is not None and rules.turn_tokens < least:
        raise InvalidArgumentError(
            f"a turn has {rules.turn_tokens} tokens here, and {call} takes {least}, so that no tool can be called: leave "
            "tools= out"
        )
    if rules.max_new_tokens <= least:
        raise InvalidArgumentError(
            f"max_new_tokens={rules.max_new_tokens} holds no call of a tool with an answer after the call: {call} alone takes "
            f"{least} tokens. Give more, or leave max_new_tokens out, which is at least {TOOL_TOKENS} with tools by default"
        )
    if isinstance(rules.legal_actions, FixedActions) and isinstance(rules.dialogue, PlainDialogue):
        legal = np.flatnonzero(rules.legal_actions.mask).tolist()
        if not {*OPENING.encode()} <= {*b"".join(map(rules.tokenizer.token_bytes, legal))}:
            raise InvalidArgumentError(
                f"no tool can be called where the legal tokens can't spell {OPENING!r}: leave tools= out, or leave out "
                "restrict_actions= or legal_actions="
            )


def _shortest_call(rules: Rules, tools: Sequence[Tool]) -> tuple[str, int]:
    """The shortest call of a tool, described in words, and the minimum number of tokens that it takes."""
    if isinstance(rules.dialogue, PlainDialogue):
        text = rules.dialogue.shortest_call
        return f"the shortest call, {text!r},", len(rules.tokenizer.encode(text))
    # In every format a call names the tool, a mark precedes the name, and a mark ends the turn.
    name = min((tool.name for tool in tools), key=len)
    return f"the shortest call, of {name!r},", len(rules.tokenizer.encode(name)) + 2


def check_summaries(streams: TokenStreams, after: int, request: int) -> None:
    """Check that under these limits summaries are requested, but not after every turn.

    Args:
        streams: The streams.
        after: Number of tokens in view above which a summary is requested.
        request: Number of tokens of the shortest answer that requests a summary.

    Raises:
        InvalidArgumentError: If the limits are too small.
    """
    rules = streams.rules
    if rules.max_turns is not None and rules.max_turns < 3:
        raise InvalidArgumentError(
            "max_turns must be at least 3 with summarize_after: a turn, the summary, and a turn after it; got "
            f"{rules.max_turns}"
        )
    if request > rules.max_inserted_tokens:
        raise InvalidArgumentError(
            f"max_inserted_tokens={rules.max_inserted_tokens} has no room for the request for a summary, which takes {request} "
            "tokens with the shortest answer: raise it, or leave summarize_after out"
        )
    needed = _tokens_with_summary(rules, after, request)
    if needed > rules.buffer_tokens:
        raise InvalidArgumentError(
            f"summarize_after={after} leads to no summary: that takes {needed} tokens in view, {after + 1} before the request, "
            f"{request} for this with the shortest answer, and the rest for the summary. {_most_in_view(rules, needed)}, or "
            "lower summarize_after"
        )
    _check_above_prompts(streams, after)


def check_drops(rules: Rules, after: int, keep: int) -> None:
    """Check that under these limits results can be dropped.

    Args:
        rules: The rules.
        after: Number of tokens in view above which results are dropped.
        keep: Number of turns before the last turn that keep their results.

    Raises:
        InvalidArgumentError: If the limits are too small.
    """
    least = keep + 3  # the last turn is the first that can miss a result
    if rules.max_turns is not None and rules.max_turns < least:
        raise InvalidArgumentError(
            f"max_turns must be at least {least} with drop_results_after, which keeps the results of the last {keep + 1} "
            f"turns; got {rules.max_turns}"
        )
    if after >= rules.buffer_tokens:
        raise InvalidArgumentError(
            f"drop_results_after={after} drops nothing, since there are never more tokens in view. "
            f"{_most_in_view(rules, after + 1)}, or lower drop_results_after"
        )


def _tokens_with_summary(rules: Rules, after: int, request: int) -> int:
    """The smallest number of tokens in view with room for a dialogue, the request and the next turn."""
    for window in itertools.count(after + 1 + request):
        if room_for_reply(window - after - 1, window, rules.max_new_tokens - 1, rules.turn_tokens) >= request:
            return window
    raise AssertionError


def _most_in_view(rules: Rules, needed: int) -> str:
    """Say which limits leave too few tokens in view, and which values would be enough."""
    said = []
    if rules.max_context_tokens is not None and rules.max_context_tokens < needed:
        said.append(f"raise max_context_tokens from {rules.max_context_tokens} to {needed}")
    longest = rules.max_prompt_tokens + rules.max_new_tokens + rules.max_inserted_tokens
    if longest < needed:
        said.append(
            f"raise max_new_tokens={rules.max_new_tokens} or max_inserted_tokens={rules.max_inserted_tokens}, with which a "
            f"dialogue has at most {longest}"
        )
    text = ", and ".join(said)
    return text[:1].upper() + text[1:]


def _check_above_prompts(streams: TokenStreams, after: int) -> None:
    shortest = None
    count = min(len(streams.dataset), _PROMPTS)
    for index in range(count):
        tokens = len(streams.encode_prompt(streams.dataset[index]))
        if tokens < after:
            return
        shortest = tokens if shortest is None else min(shortest, tokens)
    raise InvalidArgumentError(
        f"summarize_after={after} asks for a summary after every turn, since prompts alone have as many tokens: of the first "
        f"{count} none has fewer than {shortest}. Give more than that"
    )
