"""`rlvr eval --engine openai` plays episodes of several turns with a model that `vllm serve` serves."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import transformers

from agents.adapters.episodes import streams_of
from rlvr_envs import MessageEnv
from tests.commands import Command
from tests.distributed.commands import free_port
from tests.tiny_models import chat_model
from tests.vllm.servers import vllm_server

if importlib.util.find_spec("vllm") is None:
    pytest.skip("vllm is not installed here: `make test-vllm` runs these tests", allow_module_level=True)

OPTIONS = ("--served-model-name", "tiny", "--enable-auto-tool-choice", "--tool-call-parser", "hermes")
LIMITS = ("--max-model-len", "4096", "--max-num-batched-tokens", "4096", "--max-num-seqs", "4")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chat_model(tmp_path_factory.mktemp("model"), hidden_size=64)  # vLLM's attention needs heads of 32


@pytest.fixture(scope="module")
def address(model: Path) -> Iterator[str]:
    """A server, as the documentation starts one on a CPU."""
    port = free_port()
    with vllm_server(model, model.parent / "log", port, *OPTIONS, *LIMITS):
        yield f"http://127.0.0.1:{port}/v1"


@pytest.mark.parametrize(
    ("env", "arguments"),
    [
        ("GuessNumber", {"guesses": "3", "max_new_tokens": "60"}),
        ("Addition", {"tools": "calculator", "max_turns": "2", "max_new_tokens": "128"}),
    ],
)
def test_the_server_is_asked_with_the_dialogue_so_far(
    env: str, arguments: dict[str, str], model: Path, address: str, tmp_path: Path, rlvr: Command
) -> None:
    given = [f"{name}={value}" for name, value in arguments.items()]
    asked = ["--env", env, "--env-args", *given, "--engine", "openai", "--base-url", address, "--model", "tiny"]
    sizes = ["--problems", 4, "--samples", 2, "--temperature", 1.0, "--num-envs", 4]
    assert rlvr("eval", *asked, *sizes, "--out", tmp_path / "run")[0] == 0
    lines = (tmp_path / "run" / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    samples = [json.loads(line) for line in lines]
    assert [sample["error"] for sample in samples] == [None] * 8
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    world = MessageEnv(streams_of(env, "test", None, {"tools": "calculator"} if "tools" in arguments else {}))
    for sample in samples:
        problem = world.streams.dataset[sample["problem"]]
        dialogue = [{"role": said.role, "content": said.content} for said in world.opening(problem)]
        own: list[Any] = sample["dialogue"] or [{"role": "assistant", "content": sample["completion"]}]
        prompts = 0
        for message in own:
            if message["role"] == "assistant":
                prompts += len(tokenizer.apply_chat_template(dialogue, add_generation_prompt=True, return_dict=False))
            dialogue.append({"role": message["role"], "content": message["content"]})
        assert sample["prompt_tokens"] == prompts
        assert 0 < sample["tokens"] <= 128
