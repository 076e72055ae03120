"""One script as two policies: behind a server that speaks OpenAI's protocol, and in tokens. What both of them lead to."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import rlvr_envs
from agents import Endpoint, EndpointConfig, evaluate
from agents.rollouts.endpoint.sampling import Conversation, endpoint_env
from rlvr_envs import TokenVectorEnv
from tests.agents.endpoint_server import Body, chat
from verifiers import AssistantMessage, Message, dialogue_of

OPENING, CLOSING = "<tool>", "</tool>"
Script = Callable[[str, str], str]
"""Says the next turn, given what is in view up to the question, and what is in view after it."""


@dataclass(frozen=True)
class Played:
    """What became of an episode."""

    dialogue: tuple[tuple[str, str], ...]
    score: float
    outcome: str | None
    answer: str | None
    truncated: bool


def bare(text: str) -> str:
    """A text without what frames it, which differs between chats and plain text."""
    return re.sub(r"</?result>| at character \d+|\W|Assistant", "", text)


def after_question(view: str, questions: Sequence[str]) -> tuple[str, str]:
    """The question that a view asks, and what comes after it."""
    question = max((question for question in questions if question in view), key=len)
    return question, bare(view.partition(question)[2])


def chance_of(question: str, since: str) -> random.Random:
    return random.Random(f"{question} {since}")


def guesses(question: str, since: str) -> str:
    """Says a word, a number or nothing, as a pure function of what is in view."""
    chance = chance_of(question, since)
    if "its number alone" in question:  # a board, on which a mark may be set once
        played = re.findall(r"\d", question.partition("so far")[2] + since)
        return chance.choice([digit for digit in "123456789" if digit not in played] or ["0"])
    words = [*re.findall(r"\w+", question), *map(str, range(1, 10)), *"aeiourst", "", "crane", "stand"]
    words += ["hit"] * 40 if "Hit or stand?" in question else []
    return chance.choice(words)


def call(name: str, **arguments: object) -> str:
    return call_text((name, json.dumps(arguments)))


def calculates(question: str, since: str) -> str:
    """Calls the calculator rightly and wrongly, or answers."""
    chance = chance_of(question, since)
    sum_ = "+".join(re.findall(r"\d+", question)[:2])
    return chance.choice(
        [
            call("calculator", expression=sum_),
            "Let me see. " + call("calculator", expression=f"({sum_})*{chance.randrange(9)}"),
            call("calculator", expression="1/0"),
            call("calculator", expression="\\boxed{}"),
            call("calculator", expresion=sum_),
            call("calculater", expression=sum_),
            call_text(("calculator", '{"expression": 1+}')),
            call_text(("calculator", "[1]")),
            f"The sum is \\boxed{{{eval(sum_)}}}.",
            "\\boxed{7}",
            "",
        ]
    )


def computes(question: str, since: str) -> str:
    """Calls an interpreter that remembers, or answers with what it has said."""
    chance = chance_of(question, since)
    first, second = re.findall(r"\d+", question)[:2]
    if not since:
        return call("python", code=f"x = {first}\nprint('x' * 400)")
    return chance.choice(
        [
            call("python", code=f"x += {second}; print(x)"),
            call("python", code="print(1 / 0)"),
            call("python", code="print(x"),
            f"\\boxed{{{int(first) + int(second)}}}",
        ]
    )


# In tokens


def in_tokens(env: TokenVectorEnv, problem: int, script: Script, questions: Sequence[str]) -> Played:
    streams, tokenizer = env.streams, env.streams.rules.tokenizer
    streams.reset([0], [None], [problem])
    earned = 0.0
    while True:
        view = rlvr_envs.decode(tokenizer, streams.tokens[0, : streams.length[0]])
        text = script(*after_question(view, questions))
        stops = tuple(stop for stop in streams.rules.stop if isinstance(stop, str))
        end = [] if text.endswith(stops) and stops else [streams.rules.turn_end]
        said = np.array([*tokenizer.encode(text), *end], dtype=np.int64)
        transition = streams.advance(said[None])
        earned += float(transition.reward[0])
        if ended := transition.ended.get(0):
            verdict = ended.verdict
            return Played(
                plain_dialogue(dialogue_of(ended.completion)),
                earned,
                None if verdict is None else str(verdict.outcome),
                None if verdict is None else verdict.answer,
                bool(transition.truncated[0]),
            )


def plain_dialogue(dialogue: Sequence[Message]) -> tuple[tuple[str, str], ...]:
    """Who said what; calls that are no part of a text are written into it, as its token twin does."""
    return tuple((message.role, written(message)) for message in dialogue)


def written(message: Message) -> str:
    calls = message.calls if isinstance(message, AssistantMessage) else ()
    text = message.content + "".join(call_text((call.name, call.arguments)) for call in calls)
    # The text of a turn ends where its stop string begins, and an error counts characters in more or less than a call.
    return re.sub(r" at character \d+", "", text.removesuffix(CLOSING))


def call_text(call: tuple[str, str]) -> str:
    name, arguments = call
    return f'{OPENING}{{"name": {json.dumps(name)}, "arguments": {arguments}}}{CLOSING}'


CALL = re.compile(re.escape(OPENING) + r'\{"name": (".*?"), "arguments": (.*?)\}' + re.escape(CLOSING), re.DOTALL)


# Behind a server


def serves(script: Script, questions: Sequence[str]) -> Callable[[Body, str], bytes]:
    """Answer as a server whose model follows a script, and whose tokens are bytes and ends of turns."""

    def answer(body: Body, path: str) -> bytes:
        view = view_of(body)
        text = script(*after_question(view, questions))
        prompt = len(view.encode()) - (body["max_tokens"] == 1)  # of the request whose prompt lacks the tools
        calls = []
        if body.get("tools"):
            calls = [(json.loads(name), arguments) for name, arguments in CALL.findall(text)]
            spent = len(text.encode()) + 1
            text = CALL.sub("", text)
        else:
            stops = [(text.find(stop), stop) for stop in body.get("stop") or () if stop in text]
            at, stop = min(stops, default=(len(text), ""))
            text = text[:at]
            spent = len((text + stop).encode()) + (not stop)
        finish = "tool_calls" if calls else "stop"
        if spent > body["max_tokens"]:
            text, spent, finish = text.encode()[: body["max_tokens"]].decode(), body["max_tokens"], "length"
        usage = {"prompt_tokens": prompt, "completion_tokens": spent}
        if path.endswith("chat/completions"):
            made = [
                {"id": f"id{at}", "type": "function", "function": {"name": name, "arguments": arguments}}
                for at, (name, arguments) in enumerate(calls)
            ]
            return chat(text or (None if made else ""), finish, usage=usage, **({"tool_calls": made} if made else {}))
        return json.dumps({"choices": [{"text": text, "finish_reason": finish}], "usage": usage}).encode()

    return answer


def view_of(body: Body) -> str:
    if "prompt" in body:
        return str(body["prompt"])
    return "".join(map(said_in, body["messages"]))


def said_in(message: dict[str, Any]) -> str:
    """What a message says, with its calls as its token twin writes them."""
    functions = [call["function"] for call in message.get("tool_calls", ())]
    arguments = [json.loads(function["arguments"]).get("unreadable", function["arguments"]) for function in functions]
    calls = zip((function["name"] for function in functions), arguments, strict=True)
    return str(message["content"]) + "".join(map(call_text, calls))


def endpoint_at(url: str, **settings: Any) -> Endpoint:
    defaults: dict[str, Any] = {"retries": 1, "backoff_s": 0.01, "timeout_s": 30.0, "concurrency": 4}
    return Endpoint(EndpointConfig(url, "scripted", **{**defaults, **settings}), temperature=1.0)


def by_server(env: TokenVectorEnv, endpoint: Endpoint, problems: int) -> list[Played]:
    """Play the first problems through an endpoint."""
    episodes = {}
    messages = endpoint_env(env, endpoint)
    conversations = [Conversation(messages, problem, problem) for problem in range(problems)]
    for chunk in endpoint.converse(conversations):
        for problem, failure in chunk:
            assert failure is None
            episodes[problem] = conversations[problem].episode
    result = evaluate(env, endpoint, problems=problems)
    return [
        Played(
            plain_dialogue(dialogue_of(episodes[row.problem].completion)),
            float("nan") if row.score is None else row.score,
            row.outcome,
            row.answer,
            row.truncated,
        )
        for row in result.rows
    ]
