"""Completions of a server: what is asked of it, and that nothing it does wrong becomes a score."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents import Endpoint, EndpointConfig, EvaluationRecord, evaluate
from agents.rollouts.endpoint.client import TextRequest
from agents.rollouts.endpoint.protocol import read_answer
from agents.runs.judging import rejudge
from agents.runs.reading import RecordedRun
from rlvr_envs import TextCompletion, TokenVectorEnv, environment_class
from tests.agents.endpoint_server import Body, Reply, Server, chat, running
from tests.commands import Command
from verifiers import DataError, EngineError, InvalidArgumentError, UnknownNameError

pytest.importorskip("openai")


@pytest.fixture
def server() -> Iterator[Server]:
    """Adds, as asked for by a prompt `a+b=`: right for even seeds, one too many for odd ones; `script` may say otherwise."""
    with running(usual) as server:
        yield server


def usual(body: Body, path: str = "/v1/chat/completions") -> bytes:
    prompt = body["prompt"] if path == "/v1/completions" else body["messages"][-1]["content"]
    total = sum(map(int, re.findall(r"\d+", prompt)))
    return chat(str(total + body["seed"] % 2)) if path != "/v1/completions" else completion(str(total))


def completion(text: str) -> bytes:
    return json.dumps({"choices": [{"text": text, "finish_reason": "stop"}]}).encode()


def endpoint(server: Server, **settings: Any) -> Endpoint:
    defaults: dict[str, Any] = {"retries": 1, "backoff_s": 0.01, "timeout_s": 30.0, "concurrency": 4}
    return Endpoint(EndpointConfig(server.url, "adder", **{**defaults, **settings}), temperature=1.0)


def addition(**options: Any) -> TokenVectorEnv:
    return environment_class("Addition").make_vec(1, **{"split": "test", "max_new_tokens": 6, **options})


def record(folder: Path, policy: Endpoint, **how: Any) -> Any:
    with EvaluationRecord(folder, **how) as written:
        return evaluate(addition(), policy, problems=4, samples=3, maj_at=[1, 3], record=written)


def rows(folder: Path) -> list[dict[str, Any]]:
    return list(RecordedRun.read(folder).rows)


def test_every_sample_is_a_request_of_its_own_and_is_judged(server: Server, tmp_path: Path) -> None:
    result = record(tmp_path / "a", endpoint(server))
    env = addition()
    for row in rows(tmp_path / "a"):
        even = row["seed"] % 2 == 0
        assert row["completion"] == str(int(row["reference"]) + (not even))
        assert (row["score"], row["outcome"]) == ((1.0, "correct") if even else (0.0, "incorrect"))
        assert (row["tokens"], row["truncated"], row["error"]) == (3, False, None)
        prompt = env.streams.dataset[row["problem"]].prompt
        assert row["prompt"] == prompt
        expected = {"model": "adder", "temperature": 1.0, "max_tokens": 6, "seed": row["seed"] % 2**31}
        assert server.bodies.count({**expected, "messages": [{"role": "user", "content": prompt}]}) == 1
    assert len(server.bodies) == 12
    assert 0 < result.score < 1
    assert result.maj_at[0].value == pytest.approx(result.score)
    settings = RecordedRun.read(tmp_path / "a").settings
    assert settings["endpoint"] == {"base_url": server.url, "route": "chat", "body": {}}
    assert settings["example_prompt"] == [{"role": "user", "content": env.streams.dataset[0].prompt}]


def either_route(body: Body, _: int = 0) -> bytes:
    return chat("4") if "messages" in body else completion("4")


def test_a_chat_is_sent_as_messages_and_as_text_to_the_other_route(server: Server) -> None:
    server.script = either_route
    env = addition(prompt="boxed_chat", verifier="math", stop=["END", "\n"])
    evaluate(env, endpoint(server), problems=1)
    (message,) = server.bodies[-1]["messages"]
    assert message["role"] == "user"
    assert "Reason step by step, then give your final answer in \\boxed{}." in message["content"]
    assert server.bodies[-1]["stop"] == ["END", "\n"]
    evaluate(env, endpoint(server, route="completions", body={"top_p": 0.5, "seed": None}), problems=1)
    body = server.bodies[-1]
    assert body["prompt"].startswith("User: ")
    assert body["prompt"].endswith("\n\nAssistant:")
    assert (body["top_p"], "seed" in body) == (0.5, False)


ANSWER = chat("4")
FAULTS: dict[str, tuple[Callable[[Body, int], Reply], str]] = {
    "500": (lambda *_: (500, b"out of\nmemory", {}), "status 500: out of memory"),
    "busy": (lambda *_: (429, b"later", {"Retry-After": "0.01"}), "status 429: later"),
    "half a JSON": (lambda *_: ANSWER[: len(ANSWER) // 2], "not JSON"),
    "cut off": (lambda *_: (200, ANSWER, {"Content-Length": "9999"}), "the connection failed"),
    "closed": (lambda *_: None, "the connection failed"),
    "a list": (lambda *_: b"[]", "no choices"),
    "empty choices": (lambda *_: b'{"choices": []}', "no choices"),
    "no message": (lambda *_: b'{"choices": [{"index": 0}]}', "neither a message nor a text"),
    "withheld": (lambda *_: chat("", "content_filter"), "withheld"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_request_that_fails_for_good_is_no_score_and_asked_again(fault: str, server: Server, tmp_path: Path) -> None:
    script, cause = FAULTS[fault]
    first = addition().streams.dataset[0].prompt

    def failing(body: Body, attempt: int) -> Reply | str:
        return script(body, attempt) if body["messages"][0]["content"] == first else "as usual"

    server.script = failing
    incomplete = record(tmp_path / "a", endpoint(server))
    assert (incomplete.failed_requests, incomplete.verifier_errors, incomplete.errored) == (3, 0, 3)
    assert [cause in said for said in incomplete.error_causes] == [True]
    errored = [row for row in rows(tmp_path / "a") if row["error"]]
    unknown = {(row["problem"], row["score"], row["outcome"], row["answer"]) for row in errored}
    assert unknown == {(0, None, None, None)}
    assert {server.attempts[text] for text in server.attempts if first in text} == {2}
    server.script = lambda *_: "as usual"
    mended = record(tmp_path / "a", endpoint(server), resume=True)
    whole = record(tmp_path / "whole", endpoint(server))
    assert mended.rows == whole.rows
    assert rows(tmp_path / "a") == rows(tmp_path / "whole")
    others = [row.score for row in whole.rows if row.problem != 0]
    assert incomplete.score == pytest.approx(sum(filter(None, others)) / len(others))


def test_a_server_that_is_too_slow_is_not_waited_for_and_a_refused_request_not_repeated(server: Server) -> None:
    """Slow is one that says nothing, and one that sends a little from time to time."""
    server.script = lambda *_: ["hang", "drip"][len(server.bodies) % 2]
    result = evaluate(addition(), endpoint(server, timeout_s=0.2), problems=2, samples=2)
    assert (result.failed_requests, result.error_causes) == (4, {"no complete answer in 0.2 s": 4})
    server.bodies.clear()
    server.script = lambda *_: (400, b"the prompt is too long", {})
    assert evaluate(addition(), endpoint(server), problems=2).failed_requests == len(server.bodies) == 2


def test_what_concerns_all_requests_ends_the_evaluation(server: Server) -> None:
    for status in (401, 403, 404):
        server.script = lambda *_, status=status: (status, b"no", {})
        with pytest.raises(EngineError, match=f"status {status}: no; check the model 'adder', the key, and the"):
            evaluate(addition(), endpoint(server), problems=3)
    nobody = Endpoint(EndpointConfig("http://127.0.0.1:9/v1", "adder"))
    with pytest.raises(EngineError, match=r"no server answers at http://127\.0\.0\.1:9/v1"):
        evaluate(addition(), nobody, problems=3)


def test_answers_that_came_before_an_error_are_yielded(server: Server) -> None:
    answered, first = list[int](), threading.Event()

    async def work(client: Any, item: int) -> int:
        while item and not (first.is_set() and (item < 7 or len(answered) >= 7)):
            await asyncio.sleep(0)
        if item == 7:
            raise EngineError("the key is refused")
        answered.append(item)
        return item

    chunks = endpoint(server)._each(range(40), work)
    came = [answer for _, answer in next(chunks)]
    first.set()
    for thread in endpoint_threads():
        thread.join()  # so that the error waits with what is left
    with pytest.raises(EngineError, match="the key is refused"):
        came.extend(answer for chunk in chunks for _, answer in chunk)
    assert sorted(came) == sorted(answered) == list(range(7))


def endpoint_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "endpoint"]


def test_no_more_requests_are_open_than_are_allowed_and_none_is_left(server: Server) -> None:
    asked, most = list[int](), list[int]()

    def counted(body: Body, _: int) -> Reply:
        asked.append(body["seed"])
        most.append(len(asked))
        time.sleep(0.02)
        asked.pop()
        return completion(str(body["seed"]))

    server.script = counted
    requests = [TextRequest("1+1=", seed, 4) for seed in range(40)]
    answers = endpoint(server, concurrency=3, route="completions").complete(requests)
    chunk = next(answers)
    assert all(isinstance(answer, TextCompletion) and answer.text == str(index) for index, answer in chunk)
    answers.close()
    assert not endpoint_threads()
    assert max(most) <= 3
    assert len(server.bodies) <= len(chunk) + 2 * 3 + 3


def test_answers_are_read_as_they_are_meant() -> None:
    def read(content: bytes, *stop: str) -> TextCompletion:
        return read_answer(content.decode(), stop)

    assert read(chat("4")) == TextCompletion("4", 3, False)
    assert read(chat("4 and", "length")) == TextCompletion("4 and", 3, True)
    assert read(chat("4\nUser: 5", "length"), "\n") == TextCompletion("4", 3, False, stopped_by="\n")
    assert read(chat(None, "length")) == TextCompletion("", 3, True)  # all tokens went into hidden reasoning
    assert read(chat(None, refusal="I won't")) == TextCompletion("I won't", 3, False)
    assert read(chat([{"type": "text", "text": "4"}])).text == "4"  # type: ignore[arg-type]  # as some servers answer
    assert read(completion("4")) == TextCompletion("4", 0, False)
    with pytest.raises(DataError, match="a completion must be text, got None"):
        read(b'{"choices": [{"message": {}}]}')


def test_what_an_endpoint_cannot_do_is_refused(server: Server) -> None:
    for env, message in (
        (addition(restrict_actions=True), "has legal_actions: sample with the engine 'torch'"),
        (environment_class("GridWorld").make_vec(1), "has .*: sample with the engine 'torch'"),
        (addition(stop=[200]), "the stop token 200 is not text"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            evaluate(env, endpoint(server), problems=1)
    assert not server.bodies
    with pytest.raises(InvalidArgumentError, match="base_url must be an address that begins with http"):
        EndpointConfig("localhost:8000", "m")
    with pytest.raises(InvalidArgumentError, match="retries must be at least 0, got -1"):
        EndpointConfig("http://localhost", "m", retries=-1)
    with pytest.raises(UnknownNameError, match="chat"):
        EndpointConfig("http://localhost", "m", route="chats")  # type: ignore[arg-type]


# The command


def run(rlvr: Command, server: Server, folder: Path, *more: str) -> tuple[int, str, str]:
    sizes = ("--problems", "4", "--samples", "3", "--temperature", "1", "--out", str(folder))
    engine = ("--engine", "openai", "--base-url", server.url, "--engine-args", "backoff_s=0.01", "retries=0")
    return rlvr("eval", "--env", "Addition", "--model", "adder", *sizes, *engine, *more)


def test_the_command_keeps_the_key(
    server: Server, tmp_path: Path, rlvr: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-12345")
    folder = tmp_path / "a"
    server.script = lambda body, attempt: (500, b"no", {}) if body["seed"] % 2 else "as usual"
    key = "api_key=env:MY_KEY"
    code, output, _ = run(rlvr, server, folder, key, "--pass-at", "2", "--maj-at", "1", "3")
    assert code == 1  # more than a tenth of the samples has no score
    assert "requests failed, for the reasons in" in output
    judged, env = RecordedRun.read(folder), addition()
    assert env.streams.rules.verifier is not None
    flips, verdicts = rejudge(judged, env.streams.dataset, env.streams.rules.verifier)
    assert (flips, len(verdicts)) == ([], 12 - judged.errored)  # failed requests have no completion to judge again
    assert judged.errored > 0
    assert server.keys == {"Bearer sk-12345"}
    assert b"sk-12345" not in b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert run(rlvr, server, folder, key, "--resume", "--max-error-share", "1")[0] == 0
    server.script = lambda *_: "as usual"
    code, output, _ = run(rlvr, server, folder, key, "--maj-at", "1", "3", "--resume")
    assert (code, "maj@1 " in output, "maj@3 " in output) == (0, True, True)
    assert [result["k"] for result in RecordedRun.read(folder).manifest["summary"]["maj_at"]] == [1, 3]
    assert RecordedRun.read(folder).settings["engine"] == "openai"
    _, _, error = run(rlvr, server, folder, key, "route=completions", "--resume")
    assert "endpoint.route='chat' and can't be continued with 'completions'" in error


def test_tokens_that_a_server_does_not_count_have_no_cost(server: Server, tmp_path: Path, rlvr: Command) -> None:
    """The usual answers have no number of tokens of the prompt."""
    _, output, _ = run(rlvr, server, tmp_path / "a", "--price", "1", "2")
    assert "tokens and cost unknown: the server's answers don't count them (usage.prompt_tokens)" in output
    recorded = RecordedRun.read(tmp_path / "a")
    assert not {"cost", "prompt_tokens", "tokens"} & recorded.manifest["summary"].keys()
    assert all(row["cost"] is row["prompt_tokens"] is None for row in recorded.rows)


def test_torch_is_not_needed() -> None:
    code = "import sys; sys.modules['torch'] = None; import agents.commands.evaluate; from agents import Endpoint, evaluate"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_the_command_refuses(server: Server, tmp_path: Path, rlvr: Command) -> None:
    for more, message in {
        ("url=x",): "unexpected keyword argument 'url'",
        ("model=x",): "'model' has an option of its own",
        ("--engine", "torch"): "--base-url and --engine openai come together",
        ("--maj-at", "4"): "maj@4 is not possible: k must be from 1 to 3",
    }.items():
        code, _, error = run(rlvr, server, tmp_path / "new", *more)
        assert (code, message in error) == (2, True), error
    server.script = lambda *_: (401, b"who are you", {})
    code, _, error = run(rlvr, server, tmp_path / "new")
    assert (code, "status 401: who are you; check the model 'adder', the key" in error) == (1, True)
    assert not (tmp_path / "new").exists()


def test_a_server_that_is_sent_messages_ends_answers_itself(server: Server, tmp_path: Path, rlvr: Command) -> None:
    server.script = either_route
    prompt = ("--env-args", "prompt=chat")
    stops = {prompt: None, (*prompt, "stop=END"): ["END"], ("route=completions", *prompt): ["\n\nUser:"]}
    for number, (more, stop) in enumerate(stops.items()):
        folder = tmp_path / str(number)
        assert run(rlvr, server, folder, *more)[0] == 0
        assert server.bodies[-1].get("stop") == stop
        assert RecordedRun.read(folder).settings["environment"]["stop"] == (stop or [])
