"""Verification on a cluster of two simulated nodes, which are processes of this machine."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray import cluster_utils

import verifiers
from verifiers import InvalidArgumentError, Outcome, Problem, UnknownNameError, VerifierContractError
from verifiers.unit_tests import AssertTests

ROOT = Path(__file__).parents[2]
HERE = "tests.ray.verifiers_for_ray"
PROBLEM = Problem("p", "", "95")
DEADLINE_S = 120.0
"""How long tests wait for what has to happen before they fail."""

pytestmark = pytest.mark.filterwarnings("default")  # those of Ray are not ours


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    os.environ |= {"PYTHONPATH": str(ROOT), "RAY_AUTH_MODE": "disabled"}
    made = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture
def make(cluster: Any) -> Any:
    return lambda of, **settings: verifiers.make("ray", of=of, address=cluster.address, **settings)


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "this did not happen"
        time.sleep(0.02)


def test_verdicts_are_those_of_the_verifier_in_order(make: Any) -> None:
    answers = ["95", "7", "no", "95", "-95", "95.0", "none"]
    local = verifiers.make("numeric")
    assert make("numeric", chunk=3).verify_batch(answers, [PROBLEM] * 7) == [local(said, PROBLEM) for said in answers]
    assert make("numeric").verify_batch([], []) == []


def test_a_program_is_judged_in_a_worker(make: Any) -> None:
    judge = make(("unit_tests", {"isolation": "none", "workers": 1}), chunk=2)
    programs = [f"```python\ndef double(x):\n    return {body}\n```" for body in ("2 * x", "x", "x + x")]
    problem = Problem("double", "", AssertTests(("assert double(2) == 4", "assert double(5) == 10")))
    outcomes = [verdict.outcome for verdict in judge.verify_batch(programs, [problem] * 3)]
    assert outcomes == [Outcome.CORRECT, Outcome.INCORRECT, Outcome.CORRECT]


def test_a_worker_keeps_its_verifier_and_is_another_process(make: Any) -> None:
    verdicts = make(f"{HERE}:own_process", chunk=1).verify_batch([""] * 4, [PROBLEM] * 4)
    assert os.getpid() not in {verdict.score for verdict in verdicts}


@pytest.mark.parametrize(("retries", "deaths"), [(0, 4), (1, 8)])
def test_a_completion_that_kills_its_worker_takes_nobody_with_it(
    make: Any, tmp_path: Path, retries: int, deaths: int
) -> None:
    log = tmp_path / "deaths"
    completions = ["a", "bb", "ccc", "dddd", "eeeee", "die", "g", "hh", "iii"]
    judge = make(f"{HERE}:fragile", chunk=8, retries=retries)
    verdicts = judge.verify_batch(completions, [Problem("p", "", str(log))] * 9)
    assert [verdict.score for verdict in verdicts[:5]] == [1, 2, 3, 4, 5]
    assert [verdict.score for verdict in verdicts[6:]] == [1, 2, 3]
    assert verdicts[5].outcome is Outcome.VERIFIER_ERROR
    assert f"its Ray task died {retries + 1} times" in str(verdicts[5].detail["error"])
    assert len(log.read_text().splitlines()) == deaths  # with 7, 3, 1 and 0 others


def test_a_node_that_is_killed_loses_no_verdict(cluster: Any, make: Any, tmp_path: Path) -> None:
    judge = make(f"{HERE}:patient", chunk=1)
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    # The worker of the first node is busy with the first completion, so the second goes to the second node.
    verdicts: list[verifiers.Verdict] = []
    rows = [Problem(str(row), "", str(tmp_path)) for row in range(6)]
    waiting = threading.Thread(target=lambda: verdicts.extend(judge.verify_batch([p.id for p in rows], rows)))
    waiting.start()
    wait_for(lambda: [path for path in tmp_path.glob(f"*-{second.node_id}") if path.read_text()])
    (running,) = tmp_path.glob(f"*-{second.node_id}")
    cluster.remove_node(second, allow_graceful=False)
    wait_for(lambda: not Path("/proc", running.read_text()).exists())
    (tmp_path / "go").touch()
    waiting.join(DEADLINE_S)
    assert [verdict.outcome for verdict in verdicts] == ["scored"] * 6
    assert second.node_id not in {verdict.answer for verdict in verdicts}


def test_an_interrupt_ends_the_tasks(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = make(f"{HERE}:patient", chunk=1)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ray, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            judge.verify_batch(["0", "1"], [Problem("p", "", str(tmp_path))] * 2)
    # The only core is free again, although nothing said that those tasks may end.
    assert make("numeric")("95", PROBLEM).score == 1


def test_what_cannot_be_sent_is_an_error_of_that_completion_alone(make: Any) -> None:
    from tests.ray.verifiers_for_ray import Unpicklable, Unreadable

    rows = [PROBLEM, Problem("q", "", Unpicklable()), Problem("r", "", Unreadable()), PROBLEM]
    verdicts = make("numeric").verify_batch(["95"] * 4, rows)
    assert [verdict.outcome for verdict in verdicts] == ["correct", "verifier_error", "verifier_error", "correct"]
    assert "not for others" in str(verdicts[1].detail["error"])
    assert "not for you" in str(verdicts[2].detail["error"])


def test_a_verifier_that_cannot_be_made_is_refused_at_once(make: Any) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'numeric'"):
        make("numerik")
    with pytest.raises(InvalidArgumentError, match="not today"):
        make(f"{HERE}:picky")
    with pytest.raises(InvalidArgumentError, match="cannot be sent to another process"):
        make(lambda completion, problem: True)
    with pytest.raises(InvalidArgumentError, match=r"a task needs 64 cores, and the largest node .* has 1: set cpus"):
        make("numeric", cpus=64)
    with pytest.raises(InvalidArgumentError, match="is connected to the Ray cluster at"):
        verifiers.make("ray", of="numeric", address="10.0.0.1:6379")


def test_what_is_no_verdict_is_refused(make: Any) -> None:
    with pytest.raises(VerifierContractError, match="returned None"):
        make(f"{HERE}:nothing")("", PROBLEM)


def test_it_is_a_part_of_others_and_a_copy_is_as_good(make: Any, cluster: Any) -> None:
    part = ("ray", {"of": ("numeric", {"whole": True}), "address": cluster.address})
    gate = verifiers.make("gate", parts=[part, "numeric"])
    assert gate("95", PROBLEM).score == 1
    assert pickle.loads(pickle.dumps(make("numeric")))("95", PROBLEM).score == 1


ALONE = """
import os, verifiers
from pathlib import Path
Path("code.toml").write_text('verifier = "ray"\\nchunk = 4\\nof = {verifier = "numeric", whole = true}')
assert verifiers.verify("code.toml", "95", "95").score == 1
import ray
print(ray.nodes()[0]["NodeManagerAddress"], os.environ["RAY_AUTH_MODE"], ray._private.worker._global_node.webui_url or "-")
"""


def test_without_a_cluster_ray_is_started_on_this_machine_alone(tmp_path: Path) -> None:
    """In a process of its own, since a process can be connected to one cluster only."""
    done = run_alone(ALONE, tmp_path)
    assert done.stdout.split() == ["127.0.0.1", "disabled", "-"], done.stderr


@pytest.mark.parametrize("address", ["127.0.0.1:9", "127.0.0.1"])
def test_a_cluster_that_is_not_there_is_named(address: str, tmp_path: Path) -> None:
    code = f"import verifiers; verifiers.make('ray', of='numeric', address={address!r})"
    done = run_alone(code, tmp_path)
    assert f"InvalidArgumentError: no Ray cluster can be reached at {address!r}" in done.stderr


JOINED = """
import verifiers
port = {address!r}.rpartition(":")[2]
for _ in range(2):
    assert verifiers.make("ray", of="numeric", address=f"localhost:{{port}}")("95", verifiers.Problem("p", "", "95")).score == 1
"""


def test_a_cluster_is_joined_by_the_name_that_it_was_joined_by(cluster: Any, tmp_path: Path) -> None:
    done = run_alone(JOINED.format(address=cluster.address), tmp_path)
    assert done.returncode == 0, done.stderr


def run_alone(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**own, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
