"""An exported taskset in Prime Intellect's `verifiers`, in an environment of its own, against a real server."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from agents.adapters import primeintellect
from rlvr_envs import environment_class
from tests.serving.service import serving


def test_its_rewards_come_from_the_server(tmp_path: Path) -> None:
    primeintellect.export("Addition", tmp_path / "sums", split="test", limit=3)
    problems = environment_class("Addition").task.load(split="test")
    with serving() as client:
        done = subprocess.run(
            [
                str(Path(os.environ["PRIMEINTELLECT"]).absolute()),
                str(Path(__file__).with_name("primeintellect_client.py")),
                str(tmp_path / "sums"),
                "sums",
                *(str(problems[0].reference), "no", "break"),
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": "", "RLVR_VERIFIER_URL": f"http://127.0.0.1:{client.port}"},
        )
    assert done.returncode == 0, done.stderr
    right, wrong, errored = done.stdout.splitlines()
    assert right == "{'verdict': 1.0}"
    assert wrong == "{'verdict': 0.0}"
    assert errored.startswith("error: ")
    assert "answered 503" in errored
    assert "the pool died" in errored
