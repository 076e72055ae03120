"""An environment over HTTP and over OpenEnv's protocol: the episodes that are played here."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from fastapi import WebSocket

from agents.adapters.episodes import judge, streams_of
from agents.serving.env_app import EnvService, Reset, create_env_app
from agents.serving.guard import RequestLimits
from rlvr_envs import MessageEnv, TextCompletion, TokenEnv, TokenStreams
from rlvr_envs.tasks import GuessNumber
from tests.serving.service import Client, running
from verifiers import MadeCall

GAMES = GuessNumber("train")
CALL = {"name": "calculator", "arguments": {"expression": "6*7"}}


def world(env: str = "GuessNumber", **arguments: Any) -> TokenStreams:
    return streams_of(env, None, None, arguments, whole=False)


def begun(client: Client, **asked: Any) -> dict[str, Any]:
    status, answer = client.post("/reset", asked)
    assert (status, answer["reward"], answer["done"]) == (200, None, False)
    return dict(answer["observation"])


def step(client: Client, episode: str, **action: Any) -> tuple[int, Any]:
    return client.post("/step", {"episode_id": episode, "action": action})


def own(streams: TokenStreams, index: int, turns: list[TextCompletion]) -> tuple[list[list[str]], float | None]:
    """What is said to each turn of an episode here, and its score."""
    episode = MessageEnv(streams).start(streams.dataset[index])
    said = []
    for turn in turns:
        before = len(episode.turns)
        episode.take(turn)
        said.append([message.content for turn in episode.turns[before:] for message in turn.reply])
    return said, judge(episode)[0]


def test_games_side_by_side_are_those_played_here() -> None:
    with running(create_env_app(world(), "GuessNumber")) as client:
        episodes = [begun(client, problem=index) for index in range(3)]
        assert "whole number from 1 to 100" in episodes[0]["messages"][0]["content"]
        assert begun(client, seed=3)["problem"] == begun(client, seed=3)["problem"]
        for view in episodes:
            guesses = [*GAMES.gold_turns(GAMES[view["problem"]])]
            said, score = own(world(), view["problem"], [TextCompletion(guess) for guess in guesses])
            steps = [step(client, view["episode_id"], text=guess)[1] for guess in guesses]
            assert [[m["content"] for m in s["observation"]["messages"]] for s in steps[:-1]] == said[:-1]
            assert [s["done"] for s in steps] == [False] * (len(steps) - 1) + [True]
            assert sum(s["reward"] for s in steps) == score == 1.0
            assert steps[-1]["observation"]["outcome"] == "correct"
        assert step(client, episodes[0]["episode_id"], text="1")[0] == 404  # it is over
        assert client.raw("GET", "/health")[1]["episodes"] == 2
        assert client.raw("POST", "/reset", b"{}", Origin="http://elsewhere")[0] == 403  # a page, and there is no token


def test_tools_are_offered_and_called() -> None:
    streams = world("Addition", tools="calculator")
    with running(create_env_app(streams, "Addition")) as client:
        view = begun(client, problem=1)
        assert [tool["function"]["name"] for tool in view["tools"]] == ["calculator"]
        called = step(client, view["episode_id"], calls=[CALL])[1]
        assert called["observation"]["messages"] == [{"role": "tool", "content": "42", "name": "calculator"}]
        assert client.raw("GET", f"/state?episode_id={view['episode_id']}")[1]["step_count"] == 1
        last = step(client, view["episode_id"], text=r"\boxed{42}")[1]
        call = MadeCall("calculator", json.dumps(CALL["arguments"]), "")
        assert last["reward"] == own(streams, 1, [TextCompletion("", calls=(call,)), TextCompletion(r"\boxed{42}")])[1]


def by_tokens(client: Client, streams: TokenStreams, index: int, *chunks: list[int]) -> list[dict[str, Any]]:
    """What the service answers to an episode's tokens, each checked against the same episode here."""
    env = TokenEnv(streams.again(1))
    view = begun(client, problem=index, form="tokens")
    seen, _ = env.reset(options={"problem": index})
    context = view["token_ids"]
    answers = []
    for chunk in chunks:
        assert context == seen["tokens"][: seen["length"][0]].tolist()
        status, answer = step(client, view["episode_id"], token_ids=chunk)
        assert status == 200, answer
        seen, reward, terminated, truncated, info = env.step_many(chunk)
        here = answer["observation"]
        assert (here["consumed"], answer["done"]) == (info["consumed"], terminated or truncated)
        assert answer["reward"] == pytest.approx(reward)
        assert here["new_context"] is info.get("new_context", False)
        context = [*([] if here["new_context"] else [*context, *chunk[: here["consumed"]]]), *here["token_ids"]]
        answers.append(answer)
    assert answers[-1]["done"]
    assert answers[-1]["observation"]["outcome"] == info["verdict"].outcome.value
    return answers


def turns(streams: TokenStreams, *texts: str) -> list[list[int]]:
    """Each text with the end of a turn, and a token after it that is not consumed."""
    rules = streams.rules
    return [[*rules.tokenizer.encode(text).tolist(), rules.turn_end, 0] for text in texts]


def test_tokens_are_those_of_an_episode_here() -> None:
    games, sums = world(), world("Addition", tools="calculator")
    with running(create_env_app(games, "GuessNumber")) as client:
        guesses = list(GAMES.gold_turns(GAMES[2]))
        assert len(guesses) > 2
        assert sum(answer["reward"] for answer in by_tokens(client, games, 2, *turns(games, *guesses))) == 1.0
        first, *rest = turns(games, *guesses)
        assert len(by_tokens(client, games, 2, first[:1], first[1:], *rest)) == len(guesses) + 1
        assert client.raw("GET", "/health")[1]["vocab_size"] == games.vocab_size
    with running(create_env_app(sums, "Addition")) as client:
        called = by_tokens(client, sums, 1, *turns(sums, "<tool>6*7</tool>", r"\boxed{42}"))[0]
        assert "42" in bytes(called["observation"]["token_ids"]).decode(errors="replace")


def test_contexts_that_begin_anew_replace_the_tokens() -> None:
    streams = world("Addition", tools="calculator", summarize_after=700, max_new_tokens=900)
    with running(create_env_app(streams, "Addition")) as client:
        texts = turns(streams, "6*7? " * 60 + "<tool>6*7</tool>", "a summary", r"\boxed{42}")
        said = by_tokens(client, streams, 0, *texts)
    assert any(answer["observation"]["new_context"] for answer in said)


def test_rules_about_tokens_are_for_episodes_in_tokens() -> None:
    limited = world("Addition", restrict_actions=True, prompt="chat")
    with running(create_env_app(limited, "Addition")) as client:
        status, refused = client.post("/reset", {"form": "text"})
        assert (status, refused["error"]["type"]) == (422, "invalid_request")
        assert "legal_actions" in refused["error"]["message"]
        view = begun(client, problem=0, form="tokens")
        illegal = next(token for token in range(limited.vocab_size) if token not in view["legal_ids"])
        for wrong in (illegal, limited.vocab_size, -1, 2**40):
            status, refused = step(client, view["episode_id"], token_ids=[wrong])
            assert (status, refused["error"]["type"]) == (422, "invalid_request")
        assert step(client, view["episode_id"], text="4")[0] == 422
        assert step(client, view["episode_id"], token_ids=[])[0] == 422
        taken = step(client, view["episode_id"], token_ids=view["legal_ids"][:1])  # none of these has ended it
        assert taken[1]["observation"]["legal_ids"]
    streams = world("Addition", process_scorer=lambda tokens, start, problem: len(tokens) - start, max_new_tokens=3)
    with running(create_env_app(streams, "Addition")) as client:
        (last,) = by_tokens(client, streams, 0, [49, 50, 51])
        assert last["observation"]["rewards"] == [1.0, 2.0, 3.0]
        assert last["observation"]["truncated"]


def test_what_can_not_be_judged_has_no_reward_and_what_does_not_fit_is_refused() -> None:
    streams = world("Addition", verifier="tests.adapters.broken:exactly", prompt="chat")
    with running(create_env_app(streams, "Addition", limits=RequestLimits(max_waiting=2))) as client:
        view = begun(client, problem=0)
        status, refused = step(client, view["episode_id"], text="break")
        assert (status, refused["error"]["type"]) == (503, "verifier_error")
        assert "the pool died" in refused["error"]["message"]
        view = begun(client, problem=0, form="tokens")
        assert step(client, view["episode_id"], token_ids=turns(streams, "break")[0])[0] == 503
        assert step(client, view["episode_id"], token_ids=[1])[0] == 404  # it is over
        begun(client)
        begun(client, episode_id="mine")
        assert client.post("/reset", {})[0] == 429
        begun(client, episode_id="mine")  # begins again
        assert client.post("/reset", {"problems": 1})[0] == 400
        assert step(client, "mine", texts="?")[0] == 400
        assert client.post("/reset", {"problem": 10**9, "episode_id": "mine"})[0] == 422
        assert step(client, "mine", text="\ud800")[0] == 422
        assert step(client, "mine", token_ids=[52])[0] == 422
        assert step(client, "mine", text="12")[0] == 200  # neither has ended it


def test_no_more_episodes_begin_at_once_than_may_be_played() -> None:
    service = EnvService(world(), "GuessNumber", RequestLimits(max_waiting=3))

    async def begin() -> Any:
        return await asyncio.gather(*(service.reset(Reset()) for _ in range(12)))

    assert sorted(answer.status_code for answer in asyncio.run(begin())) == [200] * 3 + [429] * 9


def socket(app: Any, *messages: object, headers: tuple[tuple[bytes, bytes], ...] = ()) -> list[Any]:
    """What a WebSocket with these messages is sent, each read once the one before is answered; the first is the handshake's."""
    waiting = [{"type": "websocket.connect"}]
    waiting += [{"type": "websocket.receive", "text": m if isinstance(m, str) else json.dumps(m)} for m in messages]
    sent: list[Any] = []

    async def receive() -> Any:
        return waiting.pop(0) if waiting else {"type": "websocket.disconnect", "code": 1000}

    async def send(message: Any) -> None:
        sent.append(message)

    async def run() -> None:
        scope = {"type": "websocket", "path": "/ws", "headers": headers, "query_string": b"", "subprotocols": []}
        async with app.router.lifespan_context(app):
            await app(scope, receive, send)

    asyncio.run(run())
    return [json.loads(message["text"]) if "text" in message else message["type"] for message in sent]


def test_openenvs_protocol() -> None:
    right = GAMES.gold_turns(GAMES[0])[-1]
    steps = [{"type": "step", "data": {"text": text}} for text in ("0", right, "1")]
    wrong = ["{", {"type": "play"}, {"type": "step", "data": {"texts": ""}}, {"type": "reset", "data": {"problem": -1}}]
    asked = [steps[0], {"type": "reset", "data": {"problem": 0}}, *steps, {"type": "state"}, *wrong, {"type": "close"}]
    sent = socket(create_env_app(world(), "GuessNumber"), *asked)
    assert sent[0] == "websocket.accept"
    kinds = [message["data"].get("code", message["type"]) for message in sent[1:-1]]
    after = ["state", "INVALID_JSON", "UNKNOWN_TYPE", "VALIDATION_ERROR", "VALIDATION_ERROR"]
    assert kinds == ["EXECUTION_ERROR", "observation", "observation", "observation", "EXECUTION_ERROR", *after]
    first, last = sent[3]["data"], sent[4]["data"]
    assert (first["observation"]["messages"][0]["content"].strip(), first["done"]) == ("higher", False)
    assert (last["reward"], last["done"], last["observation"]["outcome"]) == (1.0, True, "correct")
    assert sent[6]["data"]["step_count"] == 2
    assert sent[-1] == "websocket.close"


def test_a_client_that_is_silent_gives_its_place_back() -> None:
    service = EnvService(world(), "GuessNumber", RequestLimits(max_waiting=1), idle_s=0.05)
    sent: list[Any] = []
    events = iter([{"type": "websocket.connect"}, {"type": "websocket.receive", "text": '{"type": "reset"}'}])

    async def receive() -> Any:
        return next(events, None) or await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    async def run() -> int:
        await service.connect(WebSocket({"type": "websocket"}, receive, send))
        return (await service.reset(Reset())).status_code

    assert asyncio.run(run()) == 200  # there is one place
    assert json.loads(sent[1]["text"])["type"] == "observation"
    assert "nothing came for 0.05 s" in json.loads(sent[2]["text"])["data"]["message"]
    assert sent[3]["type"] == "websocket.close"


@pytest.mark.parametrize(
    ("headers", "let_in"),
    [
        ({}, False),
        ({"authorization": "Bearer other"}, False),
        ({"authorization": "Bearer secret"}, True),
        ({"authorization": "Bearer secret", "origin": "http://elsewhere"}, False),
    ],
)
def test_no_token_and_pages_of_browsers_are_kept_out(headers: dict[str, str], let_in: bool) -> None:
    app = create_env_app(world(), "GuessNumber", token="secret")
    given = tuple((name.encode(), value.encode()) for name, value in headers.items())
    sent = socket(app, {"type": "reset"}, headers=given)
    assert (sent[0] == "websocket.accept") is let_in
    assert let_in or sent == ["websocket.close"]
