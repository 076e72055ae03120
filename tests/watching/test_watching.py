"""What `rlvr watch` answers: to whom, and what of a run's folder."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest

from agents.runs.plots import TrainingCurve, bands
from agents.watching.server import WatchServer
from tests.commands import Command
from tests.recorded import ODD, row, run_of
from tests.watching import TOKEN, append, rollouts, run_folder, served


def asked(server: WatchServer, path: str, host: str | None = None, method: str = "GET") -> tuple[int, Any, bytes]:
    connection = http.client.HTTPConnection(*server.server_address[:2])
    connection.request(method, path, headers={} if host is None else {"Host": host})
    response = connection.getresponse()
    try:
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def data(server: WatchServer, name: str, *query: tuple[str, Any]) -> Any:
    status, headers, body = asked(server, f"/{TOKEN}/{name}?{urlencode(query)}")
    assert headers["Content-Type"] == "application/json; charset=utf-8"
    return json.loads(body) if status == 200 else (status, json.loads(body)["error"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return run_folder(tmp_path / "run")


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("/", None),
        ("/state", None),
        ("//state", None),
        (f"/{TOKEN[:-1]}/state", None),
        (f"/{TOKEN}x/state", None),
        ("/%00/state", None),
        (f"/?token={TOKEN}", None),
        (f"/{TOKEN}/state", "example.org"),
        (f"/{TOKEN}/state", "example.org:80"),
        (f"/{TOKEN}/state", "127.0.0.1.example.org"),
        (f"/{TOKEN}/state", ""),
        (f"/{TOKEN}/", "192.168.0.1"),
    ],
)
def test_nobody_gets_anything_without_the_token_or_by_the_name_of_another_site(
    folder: Path, path: str, host: str | None
) -> None:
    with served(folder) as server:
        status, _, body = asked(server, path, host)
        assert (status, b"run" in body.replace(b"rlvr watch printed", b"")) == (403, False)
        assert asked(server, f"/{TOKEN}/state", "localhost")[0] == 200


def test_the_page_loads_nothing_from_elsewhere_and_every_answer_says_so(folder: Path) -> None:
    with served(folder) as server:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/the-token-of-the-tests/", server.address)
        answers = {"": 200, "page.js": 200, "page.css": 200, "state": 200, "x": 400, "../page.js": 400}
        for path, status in answers.items():
            code, headers, body = asked(server, f"/{TOKEN}/{path}")
            assert code == status, path
            assert "default-src 'none'; script-src 'self'; style-src 'self'" in headers["Content-Security-Policy"]
            assert (headers["X-Content-Type-Options"], headers["Referrer-Policy"]) == ("nosniff", "no-referrer")
            if path in ("", "page.css"):
                assert b"http" not in body
            if path == "page.js":  # text becomes text nodes, whatever it says
                assert not re.search(rb"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(", body)
        assert asked(server, f"/{TOKEN}/state", method="POST")[0] == 501


def test_what_is_asked_wrongly_is_explained(folder: Path) -> None:
    append(folder / "rollouts.jsonl", rollouts(1, 0, [0.0]))
    with served(folder) as server:
        assert data(server, "groups", ("show", "alll"))[1].startswith("unknown filter 'alll'")
        assert "first must be a whole number" in data(server, "groups", ("first", "-1"))[1]
        assert "there is no group 9 of step 1 any more" in data(server, "completions", ("step", 1), ("group", 9))[1]


def test_the_state_follows_the_run_and_leaves_out_what_is_half_written(folder: Path) -> None:
    with served(folder) as server:
        (state,) = data(server, "state")
        assert (state["step"], state["steps"], state["written"], state["completions"]) == (0, 40, None, 0)
        assert data(server, "groups")["count"] == 0
        append(folder / "metrics.jsonl", [{"step": 1, "reward": 0.5, "warnings": ["warning: <b>"]}])
        append(folder / "rollouts.jsonl", rollouts(1, 0, [0.0, 1.0]))
        append(folder / "verifier_errors.jsonl", [{"step": 1, "count": 2, "cause": "the pool died"}])
        for name in ("metrics.jsonl", "rollouts.jsonl"):
            with (folder / name).open("a") as file:
                file.write('{"step": 2, "rew')
        (after,) = data(server, "state")
        assert (after["step"], after["completions"], after["damaged"]) == (1, 2, 0)
        assert after["warnings"] == ["step 1: the verifier broke on 2 completions: the pool died", "warning: <b>"]
        assert after["version"] != state["version"]
        with (folder / "metrics.jsonl").open("a") as file:
            file.write('ard": 1.0}\n')
        append(folder / "rollouts.jsonl", [{}])  # the half line ends as none that can be read
        (last,) = data(server, "state")
        assert (last["step"], last["completions"], last["damaged"]) == (2, 2, 1)


def test_an_evaluation_is_shown_by_problem_where_a_later_line_counts_and_what_has_no_score_is_warned_of(
    tmp_path: Path,
) -> None:
    failed = {"score": None, "outcome": None, "error": "429"}
    rows = [row(1), row(0), row(0, 1, score=None, outcome="verifier_error", error="x"), row(0, 1, score=1.0)]
    rows.append(row(2, **failed))
    run_of(tmp_path / "eval", rows)
    with served(tmp_path / "eval") as server:
        (state,) = data(server, "state")
        assert (state["training"], state["completions"], state["steps"]) == (False, 5, None)
        groups = data(server, "groups")["groups"]
        assert [(group["key"], group["problem"], [sample[0] for sample in group["samples"]]) for group in groups] == [
            ([0, 0], "p0", [0.0, 1.0]),
            ([0, 1], "p1", [0.0]),
            ([0, 2], "p2", [None]),
        ]
        (warning,) = state["warnings"]  # of what no later line replaces
        assert (state["errored"], warning.partition(", since")[0]) == (1, "1 of 4 samples (25.0%) have no score")


def test_filters_find_what_they_name(folder: Path) -> None:
    recorded = {
        (1, 0): [0.0, 0.0],  # its problem is solved later
        (1, 1): [0.0, None],
        (2, 0): [1.0, 0.0],
        (2, 2): [1.0, 1.0],
        (3, 3): [1.0],
        (3, 4): [0.5, 0.0],
    }
    for (step, group), scores in recorded.items():
        append(folder / "rollouts.jsonl", rollouts(step, group, scores, tokens=group - 10 * step + 40))
    expected = {
        "all": [[3, 3], [3, 4], [2, 0], [2, 2], [1, 0], [1, 1]],
        "never solved": [[3, 4], [1, 1]],
        "solved by one": [[2, 0]],
        "longest": [[1, 1], [1, 0], [2, 2], [2, 0], [3, 4], [3, 3]],
        "verifier broke": [[1, 1]],
    }
    with served(folder) as server:
        for show, keys in expected.items():
            answer = data(server, "groups", ("show", show))
            assert ([group["key"] for group in answer["groups"]], answer["count"]) == (keys, len(keys)), show
            assert answer["filters"] == list(expected)
        assert [one["key"] for one in data(server, "groups", ("first", 4))["groups"]] == [[1, 0], [1, 1]]


def test_completions_are_what_the_file_holds_however_hostile(folder: Path) -> None:
    lines = rollouts(1, 0, [0.0] * len(ODD), token_texts=["<b>", "\x1b[31m"], token_advantages=[0.5, "NaN"])
    lines = [line | {"completion": text} for line, text in zip(lines, ODD, strict=True)]
    append(folder / "rollouts.jsonl", lines)
    with served(folder) as server:
        assert data(server, "completions", ("step", 1), ("group", 0)) == lines


def test_curves_are_those_of_rlvr_plot_and_runs_keep_their_colors(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    folders = [run_folder(tmp_path / f"s{seed}", seed=seed) for seed in range(3)] + [
        run_folder(tmp_path / "b", env="b")
    ]
    for index, folder in enumerate(folders):
        values = generator.normal(size=30).tolist()
        rows = [{"step": step, "reward": value, "entropy": 1.0} for step, value in enumerate(values, start=1)]
        for line in rows:
            line |= ({"eval/x": line["reward"]} if line["step"] % 10 == 0 else {}) | ({"kl": 0.1} if index == 3 else {})
        append(folder / "metrics.jsonl", rows)
    metrics = [("metric", name) for name in ("reward", "eval/x", "kl", "none")]
    with served(*folders) as server:
        answer = data(server, "curves", ("smooth", 5), *metrics)
    assert answer["metrics"] == ["entropy", "eval/x", "kl", "reward"]
    assert answer["colors"] == [0, 0, 0, 1]
    assert [[band["color"] for band in panel] for panel in answer["panels"].values()] == [[0, 1], [0, 1], [1], []]
    expected = bands([TrainingCurve.read(folder) for folder in folders], 5)
    for band, wanted in zip(answer["panels"]["reward"], expected, strict=True):
        assert band["label"] == wanted.label
        for name in ("mean", "low", "high"):
            drawn = [np.nan if value is None else value for value in band[name]]
            np.testing.assert_allclose(drawn, getattr(wanted, name), rtol=1e-5)
    # An evaluation now and then is drawn as it was measured.
    alone = answer["panels"]["eval/x"][1]
    assert alone["steps"] == [10, 20, 30]
    np.testing.assert_allclose(alone["mean"], [rows[step - 1]["reward"] for step in alone["steps"]], rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "at least one run"),
        (["nowhere"], "nowhere does not exist: expected a folder that rlvr train"),
        (["."], "holds no run"),
        (["x", "./x"], "a run is named twice: name different runs, and"),
        ([".", "--port", "70000"], "from 0 to 65535"),
    ],
)
def test_what_it_refuses(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rlvr: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, errors = rlvr("watch", *arguments)
    assert code == 2
    assert said in errors


def test_it_serves_until_it_is_stopped_and_changes_nothing(folder: Path) -> None:
    append(folder / "metrics.jsonl", [{"step": 1, "reward": 0.5}])
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*")}
    program = "import sys; from rlvr_envs.console import main; main()"
    command = [sys.executable, "-c", program, "watch", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        said = process.stdout.readline()
        match = re.fullmatch(r"watching at http://127\.0\.0\.1:(\d+)(/[\w-]{32}/) until Ctrl-C\n", said)
        assert match, said
        connection = http.client.HTTPConnection("127.0.0.1", int(match[1]))
        connection.request("GET", f"{match[2]}state")
        assert json.load(connection.getresponse())[0]["step"] == 1
        connection.close()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    assert (process.returncode, errors) == (143, "interrupted\n")
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*")} == before
