"""`RewardModelVerifier(server=...)` against a stand-in for `/pooling` of `vllm serve`."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.json_server import Answer, serving
from tests.tiny_models import SHAPE, character_tokenizer, save, spread, torch, transformers
from verifiers import InvalidArgumentError, Outcome, Problem, make, redacted

PROBLEM = Problem("p", "3+4=", None)


def pooled(*values: Any) -> Answer:
    return 200, json.dumps({"data": [{"index": 0, "object": "pooling", "data": list(values)}]}).encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose texts end in its padding token `</s>`, as those of many."""
    template = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}</s>{% endfor %}"
    config = transformers.LlamaConfig(**SHAPE, num_labels=1, pad_token_id=1)
    model = spread(transformers.LlamaForSequenceClassification(config))
    return save(tmp_path_factory.mktemp("rm"), model, character_tokenizer(chat_template=template))


@pytest.fixture
def verifier(folder: Path) -> Callable[..., Any]:
    def made(address: str, **options: Any) -> Any:
        settings = {"model": "my/model", "tokenizer": folder, "timeout_s": 10.0} | options
        return make("reward_model", server=address, **settings)

    return made


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verifiers.http.BACK_OFF_S", (0.0, 0.0))
    monkeypatch.delenv("VLLM_API_KEY", raising=False)


def test_a_server_gives_the_scores_of_the_model_itself(verifier: Any, folder: Path) -> None:
    local = make("reward_model", model=folder, device="cpu")
    model = transformers.LlamaForSequenceClassification.from_pretrained(folder)
    asked: list[dict[str, Any]] = []

    def last_logit(request: dict[str, Any], _: Any) -> Answer:
        """As vLLM, which knows of no padding: that of the last token."""
        asked.append(request)
        with torch.no_grad():
            states = model.model(input_ids=torch.tensor(request["input"])).last_hidden_state
            return pooled(model.score(states)[0, -1, 0].item())

    texts = ["7", "seven", "it is 7", "", "<s>", "7</s></s>"]
    with serving(last_logit) as address:
        verdicts = verifier(address + "/", batch_size=2).verify_batch(texts, [PROBLEM] * len(texts))
    expected = [verdict.score for verdict in local.verify_batch(texts, [PROBLEM] * len(texts))]
    assert [verdict.score for verdict in verdicts] == pytest.approx(expected, abs=1e-5)
    assert {verdict.outcome for verdict in verdicts} == {Outcome.SCORED}
    assert len({round(score, 4) for score in expected}) == len(texts) - 1
    tokenizer = character_tokenizer()
    ids = tokenizer("<user>3+4=</s><assistant>7", add_special_tokens=False)["input_ids"]
    # vLLM would apply a sigmoid to the logit unless told otherwise.
    request = {"path": "/pooling", "model": "my/model", "task": "classify", "use_activation": False, "input": [ids]}
    assert asked.count(request) == 2


def test_requests_are_no_more_at_a_time_than_the_batch_size(verifier: Any) -> None:
    gate, lock, running, most = threading.Barrier(3), threading.Lock(), 0, 0

    def answer(*_: Any) -> Answer:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        gate.wait(timeout=30)  # opens when three are here at once
        with lock:
            running -= 1
        return pooled(1.0)

    with serving(answer) as address:
        scores = verifier(address, batch_size=3, timeout_s=60).verify_batch(["a"] * 9, [PROBLEM] * 9)
    assert most == 3
    assert [verdict.score for verdict in scores] == [1.0] * 9


@pytest.mark.parametrize(
    ("answer", "cause", "tries"),
    [
        ((500, b"out of memory"), "answered 500: out of memory (3 tries)", 3),
        ((200, b'{"data": [{"da'), "expected JSON", 3),
        (None, "no reward model server answers", 3),  # the connection is closed
        ((404, b"no model my/model"), "answered 404: no model my/model", 1),
        ((200, b"{}"), "does not answer like vLLM's /pooling", 1),
        ((200, b'{"data": [{"data": null}]}'), "expected one finite logit", 1),
        (pooled(0.1, 0.9), "expected one finite logit", 1),
        (pooled(True), "expected one finite logit", 1),
        (pooled(float("nan")), "expected one finite logit", 1),
    ],
    ids=repr,
)
def test_a_failure_is_reported_after_it_was_asked_again_if_it_is_temporary(
    answer: Answer, cause: str, tries: int, verifier: Any
) -> None:
    answers = [answer] * 3
    with serving(lambda *_: answers.pop(0)) as address:
        verdict = verifier(address)("7", PROBLEM)
        assert len(answers) == 3 - tries
        assert verdict.outcome is Outcome.VERIFIER_ERROR
        assert cause in str(verdict.detail["error"])
        assert address in str(verdict.detail["error"])
        answers[:] = [answer] * (tries - 1) + [pooled(0.5)]
        assert verifier(address)("7", PROBLEM).score == 0.5


def test_an_error_is_that_of_its_row_alone(verifier: Any) -> None:
    def reply(request: dict[str, Any], _: Any) -> Answer:
        return pooled(1.0) if len(request["input"][0]) < 8 else (400, b"longer than the maximum model length")

    with serving(reply) as address:
        judge = verifier(address, max_tokens=20, format="text")
        fits, long, never_sent = judge.verify_batch(["7", "7" * 9, "7" * 20], [PROBLEM] * 3)
    assert fits.score == 1.0
    assert "400: longer than the maximum model length" in str(long.detail["error"])
    assert never_sent.detail["tokens"] == 25


def test_a_server_that_does_not_answer_in_time_is_an_error(verifier: Any) -> None:
    release = threading.Event()

    def reply(*_: Any) -> Answer:
        release.wait(timeout=60)
        return pooled(1.0)

    with serving(reply) as address:
        verdict = verifier(address, timeout_s=0.05)("7", PROBLEM)
        release.set()
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert "timed out" in str(verdict.detail["error"])


def test_the_key_is_read_from_a_variable_and_shown_nowhere(monkeypatch: pytest.MonkeyPatch, verifier: Any) -> None:
    monkeypatch.setenv("MY_KEY", "sesame")
    monkeypatch.setenv("VLLM_API_KEY", "barley")
    keys = []

    def reply(_: Any, headers: Any) -> Answer:
        keys.append(headers["Authorization"])
        return 401, f"wrong key {headers['Authorization']}".encode()

    with serving(reply) as address:
        named = verifier(address, api_key="env:MY_KEY")("7", PROBLEM)
        usual = verifier(address)("7", PROBLEM)
    assert keys == ["Bearer sesame", "Bearer barley"]
    assert "wrong key Bearer <redacted>" in str(named.detail["error"])
    assert "barley" not in str(usual.detail)
    assert redacted({"server": address, "api_key": "sesame"})["api_key"] == "<redacted>"
    with pytest.raises(InvalidArgumentError, match="NO_SUCH, which is not set"):
        verifier(address, api_key="env:NO_SUCH")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "cpu"}, "leave device='cpu' out"),
        ({"server": None, "api_key": "k"}, "api_key and timeout_s go with a server"),
        ({"model": object()}, "must be the name that it serves"),
    ],
)
def test_settings_that_do_not_fit_are_refused(options: dict[str, Any], message: str, folder: Path) -> None:
    settings = {"model": "my/model", "tokenizer": folder, "server": "http://localhost:1", "timeout_s": 1.0}
    with pytest.raises(InvalidArgumentError, match=message):
        make("reward_model", **settings | options)
