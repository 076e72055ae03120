"""`rlvr eval --engine openai` plays episodes of several turns with a model that `vllm serve` serves."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import transformers

from agents.adapters.episodes import streams_of
from agents.commands.main import main
from agents.loopback import listen
from rlvr_envs import MessageEnv
from tests.tiny_models import chat_model
from tests.vllm.conftest import ENVIRONMENT

if importlib.util.find_spec("vllm") is None:
    pytest.skip("vllm is not installed here: `make test-vllm` runs these tests", allow_module_level=True)

START_S = 600.0
OPTIONS = "--enforce-eager --max-model-len 4096 --max-num-seqs 4 --no-enable-chunked-prefill --enable-auto-tool-choice"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chat_model(tmp_path_factory.mktemp("model"), hidden_size=64)  # vLLM's attention needs heads of 32


@pytest.fixture(scope="module")
def address(model: Path) -> Iterator[str]:
    """A server, as the documentation starts one on a CPU, and ended by its process group."""
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    options = [
        *OPTIONS.split(),
        "--tool-call-parser",
        "hermes",
        "--max-num-batched-tokens",
        "4096",
        "--dtype",
        "float32",
    ]
    command = [
        sys.executable,
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        str(model),
        "--served-model-name",
        "tiny",
    ]
    with subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port), *options],
        env=os.environ | ENVIRONMENT | {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"},
        start_new_session=True,
    ) as server:
        try:
            _wait(f"http://127.0.0.1:{port}/health", server)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            os.killpg(server.pid, 15)


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        assert server.poll() is None, "the server has ended"
        try:
            with urllib.request.urlopen(url):
                return
        except OSError:
            time.sleep(1.0)
    raise AssertionError(f"no server after {START_S:g} s")


@pytest.mark.parametrize(
    ("env", "arguments"),
    [
        ("GuessNumber", {"guesses": "3", "max_new_tokens": "60"}),
        ("Addition", {"tools": "calculator", "max_turns": "2", "max_new_tokens": "128"}),
    ],
)
def test_the_server_is_asked_with_the_dialogue_so_far(
    env: str, arguments: dict[str, str], model: Path, address: str, tmp_path: Path
) -> None:
    given = [f"{name}={value}" for name, value in arguments.items()]
    asked = ["eval", "--env", env, "--env-args", *given, "--engine", "openai", "--base-url", address, "--model", "tiny"]
    run = [
        "--problems",
        "4",
        "--samples",
        "2",
        "--temperature",
        "1.0",
        "--num-envs",
        "4",
        "--out",
        str(tmp_path / "run"),
    ]
    with pytest.raises(SystemExit) as ended:
        main([*asked, *run])
    assert ended.value.code == 0
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
