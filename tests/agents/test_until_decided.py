"""`rlvr bench` and `rlvr compare` with `--until-decided`: what is drawn, when it stops, and what is said."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from agents.rollouts.drawing import Drawing, Entrant, draw_until_decided
from agents.runs import reading
from agents.runs.decisions import Rules, decide_pairs
from agents.runs.drawing_order import dataset_order, drawing_order, whole_clusters
from agents.runs.evaluation_record import EvaluationRecord
from agents.runs.reading import GrowingRun, RecordedRun
from rlvr_envs.tasks import Addition
from tests.agents.endpoint_server import Body, Server, chat, running
from tests.commands import Command
from tests.recorded import row, run_of
from verifiers import InvalidArgumentError, Problem
from verifiers.confidence_sequences import compare_sequentially

NAMES = st.lists(st.text(min_size=1), unique=True, max_size=20)


@given(names=NAMES, more=NAMES, groups=st.integers(1, 5), seed=st.integers(0, 9))
def test_the_order_of_problems_follows_from_the_seed_and_their_names_alone(
    names: list[str], more: list[str], groups: int, seed: int
) -> None:
    every = [*names, *(name for name in more if name not in names)]
    clusters = {name: len(name) % groups for name in every}
    order = drawing_order(every, clusters, seed)
    assert [name for name in order if name in names] == drawing_order(reversed(names), clusters, seed)
    groups_in_order = [group for group, _ in itertools.groupby(order, clusters.__getitem__)]
    assert len(groups_in_order) == len(set(groups_in_order))  # each cluster stands together
    for drawn in range(1, len(order)):
        end = whole_clusters([clusters[name] for name in order], drawn)
        assert end >= drawn
        assert end == len(order) or clusters[order[end]] != clusters[order[end - 1]]


def test_every_problem_comes_first_as_often_as_any_other() -> None:
    names = [f"p{number}" for number in range(5)]
    firsts = Counter(drawing_order(names, {name: name for name in names}, seed)[0] for seed in range(2000))
    assert max(abs(count - 400) for count in firsts.values()) < 5 * (2000 * 0.2 * 0.8) ** 0.5


@pytest.fixture
def server() -> Iterator[Server]:
    with running(lambda body, path: answers(body, 1)) as started:
        yield started


SUITE = """
title = "Sums"
max_new_tokens = 6

[[environments]]
name = "Addition"
problems = 400
"""
ENGINE = ("--engine", "openai", "--engine-args", "backoff_s=0.01", "retries=0")
SHARES = {"good": 0.9, "twin": 0.9, "bad": 0.5}


def answers(body: Body, attempt: int) -> bytes:
    """The right sum for a share of the problems that depends on the model; twins differ in a hundredth of them."""
    del attempt
    prompt = body["messages"][-1]["content"]
    one, two = map(int, re.findall(r"\d+", prompt)[:2])
    chance = int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:4]) / 2**32
    rare = int.from_bytes(hashlib.sha256(f"{body['model']} {prompt}".encode()).digest()[:4]) / 2**32 < 0.005
    return chat(str(one + two + ((chance > SHARES[body["model"]]) != rare)))


def test_problems_are_drawn_until_each_pair_is_decided(server: Server, tmp_path: Path, rlvr: Command) -> None:
    server.script = answers
    (tmp_path / "sums.toml").write_text(SUITE)
    command = ["bench", "--suite", tmp_path / "sums.toml", "--model", *SHARES, *ENGINE, "--base-url", server.url]
    command += ["--num-envs", 10, "--until-decided", "--margin", 0.1]
    code, output, error = rlvr(*command, "--out", tmp_path / "a")
    assert code == 0, error
    runs = {name: RecordedRun.read(tmp_path / "a" / "evaluations" / "Addition" / name) for name in SHARES}
    asked = {name: len(run.rows) for name, run in runs.items()}
    assert asked["bad"] < asked["good"] == asked["twin"] < 400
    indices, _ = dataset_order(Addition("test"), 0, None)
    for name, run in runs.items():
        assert {row["problem"] for row in run.rows} == set(indices[: asked[name]])
    scores = {name: {line["problem"]: line["score"] for line in run.rows} for name, run in runs.items()}
    both = [[scores[name][index] for index in indices[: asked["bad"]]] for name in ("good", "bad")]
    result = compare_sequentially(*both, level=1 - 0.05 / 3, margin=0.1)
    assert result.decision == "worse"
    assert f"Addition: bad is worse than good: decided after {result.decided_after} problems" in output
    assert "Addition: twin and good are practically equal, within 0.1: decided after" in output
    before = len(server.bodies)
    code, again, _ = rlvr(*command, "--out", tmp_path / "a", "--resume")
    assert (code, len(server.bodies)) == (0, before)
    assert again.partition("# Sums")[2] == output.partition("# Sums")[2]
    folders = [runs[name].folder for name in SHARES]
    code, output, _ = rlvr("compare", *folders, "--until-decided", "--margin", 0.1)
    assert code == 0
    assert f"bad is worse than good: decided after {result.decided_after} problems" in output
    code, output, _ = rlvr(*command, "--budget", 60, "--out", tmp_path / "b")
    assert code == 0
    assert "twin and good are not decided after 20 problems" in output
    assert "the budget is spent" in output
    server.script = lambda body, attempt: (400, b"no", {}) if body["model"] == "bad" else answers(body, attempt)
    assert rlvr(*command, "--out", tmp_path / "c")[0] == 1


def record_of(folder: Path, scores: Sequence[float | None]) -> RecordedRun:
    rows = [
        row(index, score=score, **({"outcome": None, "error": "no answer"} if score is None else {}))
        for index, score in enumerate(scores)
    ]
    return run_of(folder, rows)


def test_excluded_problems_are_counted_and_too_many_decide_nothing(tmp_path: Path) -> None:
    good = record_of(tmp_path / "good", [1.0] * 60)
    some = record_of(tmp_path / "some", [None] * 5 + [0.0] * 55)
    most = record_of(tmp_path / "most", [None] * 10 + [0.0] * 50)
    few, many, between = decide_pairs([good, some, most], Rules())
    assert (few.decision, few.excluded, few.comparison.problems) == ("worse", 5, 55)
    assert "left out: 5 problems without a score" in str(few)
    assert (many.decision, many.excluded) == (None, 10)
    assert str(many).startswith("most and good are not compared: more than 10% of the problems are left out")
    assert between.excluded == 10
    assert decide_pairs([good, most], Rules(max_error_share=0.2))[0].decision == "worse"


class Recorder:
    """Answers that are there already, written to a record as they are asked for."""

    def __init__(self, folder: Path, scores: Sequence[float], order: Sequence[int]) -> None:
        self.folder, self.scores, self.order, self.asked = folder, scores, order, 0

    def entrant(self) -> Entrant:
        return Entrant(self.folder.name, self.folder, 1, self.first)

    def first(self, problems: int) -> None:
        self.asked = problems
        with EvaluationRecord(self.folder, overwrite=True) as record:
            record.begin({})
            for index in self.order[:problems]:
                record.add(row(index, score=self.scores[index], cluster=f"group {index // 3}"))


def test_clusters_are_drawn_whole_and_count_as_one(tmp_path: Path) -> None:
    """Copies of a problem say no more than one of them: 30 problems in ten clusters, and 10 problems, decide alike."""
    problems = [Problem(f"p{index}", "", None, {"group": index // 3}) for index in range(90)]
    order, clusters = dataset_order(problems, 0, "group")
    assert len(set(clusters)) == 30
    recorders = [Recorder(tmp_path / name, [score] * 90, order) for name, score in (("a", 0.0), ("b", 1.0))]
    drawing = Drawing(clusters, 90, at_once=1)
    assert drawing.largest_cluster == 3
    said: list[str] = []
    (decision,) = draw_until_decided([each.entrant() for each in recorders], drawing, Rules(), said.append)
    single = compare_sequentially([0.0] * 30, [1.0] * 30)
    assert decision.decision == single.decision == "better"
    assert decision.comparison.decided_after == 3 * (single.decided_after or 0) == recorders[0].asked
    assert said == [str(decision)]
    with pytest.raises(InvalidArgumentError, match="problem 'p0' has no column 'level' for its cluster; its columns:"):
        dataset_order(problems, 0, "level")


def test_a_record_is_read_line_by_line_as_it_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = [*range(200)]
    recorders = [Recorder(tmp_path / name, [float(index % 2) for index in order], order) for name in ("a", "b")]
    read: list[int] = []
    checked = reading._checked
    monkeypatch.setattr(reading, "_checked", lambda line: read.append(line["problem"]) or checked(line))
    growing = GrowingRun(tmp_path / "a")
    for problems in (3, 50, 50, 51):
        recorders[0].first(problems)
        rows = growing.read().rows
        assert rows == RecordedRun.read(tmp_path / "a").rows
        assert len(rows) == problems
    with (tmp_path / "a" / "samples.jsonl").open("a") as file:
        file.write('{"half of a')
    assert growing.read().rows == rows
    read.clear()
    drawing = Drawing([f"group {index // 3}" for index in order], 200, at_once=1)
    draw_until_decided([each.entrant() for each in recorders], drawing, Rules(), lambda said: None)
    assert sorted(read) == sorted([*order] * 2)  # once each, at 67 looks


def test_the_clusters_of_a_column_and_the_power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rlvr: Command) -> None:
    monkeypatch.chdir(tmp_path)
    problems = Addition("test", digits=1)
    for name, every in (("a", 2), ("b", 3)):
        lines = [
            row(index, problem_id=problems[index].id, score=float(index % every == 0)) for index in range(len(problems))
        ]
        run_of(tmp_path / name, lines, env="rlvr/Addition-v0")
    data = ["--env-args", "digits=1", "--clusters", "difficulty"]
    code, output, _ = rlvr("compare", "a", "b", *data)
    assert code == 0
    assert f"means over {len(problems)} problems, 1 cluster" in output
    code, output, _ = rlvr("compare", "a", "b", "--power", "0.05", "0.2")
    assert code == 0
    assert "a difference of 0.05 between b and a needs about " in output
    for option, value in (("--margin", "0.1"), ("--max-error-share", "0.2"), ("--order-seed", "0")):
        code, _, error = rlvr("compare", "a", "b", option, value)
        assert code == 2
        assert f"{option} is about what decides" in " ".join(error.split())
