"""Suites and the leaderboard that `rlvr bench` makes of them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from agents import save_model, tiny_model
from agents.runs.evaluation_record import SAMPLES
from agents.runs.leaderboard import Leaderboard, LeaderboardCell
from agents.runs.leaderboard_page import better_by_tests, leaderboard_page, rank_ranges
from agents.runs.reading import RecordedRun
from agents.suites import SMALL_SET_SAMPLES, read_suite, suite_names
from rlvr_envs import ByteTokenizer, environment_class
from tests.commands import Command
from tests.recorded import ODD, row, run_of
from verifiers import statistics


def model(folder: Path, seed: int) -> Path:
    sizes = {"layers": 1, "hidden_size": 16, "heads": 2, "intermediate_size": 32, "max_tokens": 512}
    save_model(folder, tiny_model(ByteTokenizer().vocab_size, seed=seed, **sizes), ByteTokenizer())
    return folder


def recorded(folder: Path, scores: Sequence[float]) -> RecordedRun:
    return run_of(folder, [row(index, 0, score=score) for index, score in enumerate(scores)])


def test_the_tiny_suite_makes_a_leaderboard_that_is_resumed_where_it_was(rlvr: Command, tmp_path: Path) -> None:
    models = [model(tmp_path / "one" / "adder", 0), model(tmp_path / "two" / "adder", 1)]
    out = tmp_path / "out"
    arguments = ("bench", "--suite", "tiny", "--out", out, "--model", *models)
    code, output, _ = rlvr(*arguments)
    assert code == 0
    board = json.loads((out / "leaderboard.json").read_text())
    assert board["models"] == {"adder": [str(models[0])], "adder-2": [str(models[1])]}
    cells = itertools.product(("2-digit sums", "3-digit sums"), ("adder", "adder-2"))
    assert [(cell["environment"], cell["name"]) for cell in board["cells"]] == [*cells]
    for cell in board["cells"]:
        record = RecordedRun.read(cell["runs"][0])
        for name in ("score", "interval"):
            assert cell[name] == pytest.approx(record.manifest["summary"][name])
        assert cell["unit"] == "problems"
        assert cell["samples"] == len(record.rows) == {"2-digit sums": 240, "3-digit sums": 160}[cell["environment"]]
        assert record.settings["temperature"] == 1.0
        assert record.settings["environment"]["max_new_tokens"] == 5
    text = (out / "leaderboard.md").read_text()
    assert text in output
    assert text.startswith("# Sums, for tiny models\n\n|  | 2-digit sums | 3-digit sums | mean |")
    before = {path: path.read_bytes() for path in out.rglob(SAMPLES)}
    path = out / "evaluations" / "3-digit-sums" / "adder" / SAMPLES
    path.write_bytes(path.read_bytes()[:-300])  # as if the bench had been killed there
    (out / "leaderboard.md").unlink()
    assert rlvr(*arguments, "--resume")[0] == 0
    assert {other for other in before if other.read_bytes() != before[other]} <= {path}
    assert sorted(path.read_bytes().splitlines()) == sorted(before[path].splitlines())
    assert (out / "leaderboard.md").read_text() == text
    code, _, error = rlvr(*arguments)
    assert (code, "is not empty: choose another folder" in error) == (2, True)
    code, _, error = rlvr(*arguments[:-1], "--resume")
    assert code == 2
    assert "out also holds evaluations of adder-2: name the models of the bench again, all of them" in error
    assert (out / "leaderboard.md").read_text() == text


def test_every_environment_is_checked_before_the_first_is_evaluated(rlvr: Command, tmp_path: Path) -> None:
    tables = "".join(f'[[environments]]\nname = "Addition"\nlabel = "{name}"\nproblems = 1\n' for name in "ab")
    (tmp_path / "mine.toml").write_text(f'title = "T"\n{tables}max_new_tokens = 5000\n')
    arguments = ("--suite", tmp_path / "mine.toml", "--out", tmp_path / "out", "--model", model(tmp_path / "m", 0))
    code, _, error = rlvr("bench", *arguments)
    assert (code, "the model's context holds 512: lower max_new_tokens" in error) == (2, True), error
    assert not (tmp_path / "out").exists()


SUITE = """
title = "Mine"
temperature = 1.0
max_new_tokens = 4

[train]
agents = ["grpo", "rloo"]
env = "Addition"
tokens = 150
seeds = [0, 3]
options = { num-envs = 8, problems-per-step = 2, group-size = 4, env-args = ["max_new_tokens=4"] }

[[environments]]
name = "Addition"
problems = 3
"""


def test_agents_are_trained_from_one_start_under_one_budget(rlvr: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(SUITE)
    out = tmp_path / "out"
    code, output, error = rlvr("bench", "--suite", tmp_path / "mine.toml", "--out", out, "--num-envs", 8)
    assert code == 0, error
    for agent in ("grpo", "rloo"):
        for seed in (0, 3):
            folder = out / "training" / f"{agent}-seed-{seed}"
            assert json.loads((folder / "config.json").read_text())["config"]["seed"] == seed
            steps = [json.loads(line)["num_tokens"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
            assert steps[-1] >= 150
            assert all(tokens < 150 for tokens in steps[:-1])
    cells = json.loads((out / "leaderboard.json").read_text())["cells"]
    shown = [(cell["name"], cell["unit"], len(cell["scores"])) for cell in cells]
    assert shown == [("grpo", "seeds", 2), ("rloo", "seeds", 2)]
    assert cells[0]["samples"] == 2 * 3 * SMALL_SET_SAMPLES
    assert "over training seeds" in output
    trained = {path: path.read_bytes() for path in out.rglob("metrics.jsonl")}
    code, output, _ = rlvr("bench", "--suite", tmp_path / "mine.toml", "--out", out, "--num-envs", 8, "--resume")
    assert code == 0
    assert "is already at step" in output
    assert trained == {path: path.read_bytes() for path in out.rglob("metrics.jsonl")}


def test_intervals_are_over_problems_or_over_seeds(tmp_path: Path) -> None:
    good, bad = (recorded(tmp_path / str(right), [1.0] * right + [0.0] * (40 - right)) for right in (30, 5))
    one = LeaderboardCell("a", "Sort", (good,))
    assert one.interval == statistics.share_interval([1.0] * 30 + [0.0] * 10)
    seeds = LeaderboardCell("b", "Sort", (good, bad))
    assert seeds.scores == [0.75, 0.125]
    assert seeds.interval == statistics.mean_interval([0.75, 0.125])
    board = Leaderboard("T | x", [LeaderboardCell("bad|", "Sort", (bad,)), one])
    assert [name for name, _, _ in board.ranking()] == ["a", "bad|"]
    assert "| a | 0.750 [" in board.markdown()
    assert "bad\\|" in board.markdown()
    assert board.sentences() == ["Sort: " + sentence.removeprefix("Sort: ") for sentence in board.sentences()]
    assert board.sentences()[0].startswith("Sort: 5 is worse than 30 (-0.625")


def test_ranks_are_ranges_where_nothing_is_decided(tmp_path: Path) -> None:
    ranges = {"a": (1, 2), "b": (1, 3), "c": (3, 4), "d": (2, 4)}
    assert rank_ranges("abcd", [("a", "c"), ("b", "c"), ("a", "d")]) == ranges

    high, low, none = [1.0] * 50 + [0.0] * 10, [1.0] * 20 + [0.0] * 40, [0.0] * 60
    scores = {"a": (high, low), "b": (low, low), "c": (low, high), "d": (none, none[:30])}
    runs = {
        name: [recorded(tmp_path / f"{name}{number}", own) for number, own in enumerate(pair)]
        for name, pair in scores.items()
    }
    decided = {("a", "b"), ("a", "c"), ("a", "d"), ("b", "d"), ("c", "d")}
    assert set(better_by_tests({name: of_name[:1] for name, of_name in runs.items()})) == decided
    of_two = better_by_tests({name: of_name for name, of_name in runs.items() if name != "d"})
    assert set(of_two) == {("a", "b"), ("c", "b")}  # a and c have the same mean
    apart = recorded(tmp_path / "e", high)
    object.__setattr__(apart, "rows", tuple(line | {"problem_id": f"other {line['problem']}"} for line in apart.rows))
    assert better_by_tests({"a": [runs["a"][0]], "e": [apart]}) == []


class Elements(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names |= {tag, *(f"@{name}" for name, _ in attrs)}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


ELEMENTS = """html head meta title style body h1 h2 h3 p small table thead tbody tr th td span i bdi svg path circle text
details summary pre br @lang @charset @http-equiv @content @name @class @style @viewbox @role @aria-label @d @stroke @fill
@cx @cy @r @x @y @text-anchor"""


def test_the_page_shows_what_is_decided_and_hostile_text_is_text(tmp_path: Path) -> None:
    def evaluated(number: int, odd: str, share: float) -> RecordedRun:
        said: dict[str, Any] = {"completion": odd, "outcome": "correct", "tokens": 10 * number}
        rows = [
            row(index, sample, score=float(index < 40 * share), prompt=f"{odd}{index}", **said)
            for index in range(40)
            for sample in range(3)
        ]
        return run_of(tmp_path / str(number), rows, model=odd)

    plain = "plain", evaluated(9, "four", 0.5)
    odd_names = [odd[:2000] for odd in ODD]
    named = [(odd, evaluated(number, odd, 1 - 0.02 * number)) for number, odd in enumerate(odd_names, start=1)]
    board = Leaderboard(ODD[0], [LeaderboardCell(name, ODD[1], (run,)) for name, run in (*named, plain)])
    page = leaderboard_page(board)
    page.encode()
    elements = Elements(page)
    assert elements.names <= set(ELEMENTS.split())
    assert not set("\x00\x07\x1b\u202e\u2028") & set(page)
    assert len(page) < 1_000_000
    said = "".join(elements.texts)
    assert "</script><script>alert(1)</script>: correct" in said
    for wanted in ("1–6", "7", "pass@k", "tokens per sample", "versions", "environment"):
        assert wanted in said
    assert page.count("<svg") == 2


def test_cost_stands_beside_the_score(tmp_path: Path) -> None:
    def cell(name: str, environment: str, tokens: int, *costs: float | None) -> LeaderboardCell:
        rows = [row(index, tokens=tokens, score=1.0, cost=cost) for index, cost in enumerate(costs)]
        return LeaderboardCell(name, environment, (run_of(tmp_path / environment / name, rows),))

    one = [cell("priced", "a", 1500, 0.25, 0.5, None), cell("priced", "b", 500, 0.75)]
    board = Leaderboard("T", [*one, cell("free", "a", 0, None), cell("free", "b", 0, None)])
    assert board.cost_texts([cell("cheap", "a", 7, 9.6e-5)]) == ["7", "0.000096"]
    assert board.costs == ["tokens per sample", "cost per sample"]
    assert board.cost_texts(one) == ["1,250", "0.5"]
    assert [board.summary()["cells"][cell]["cost_per_sample"] for cell in (0, 2)] == [0.375, None]
    page, text = leaderboard_page(board), board.markdown()
    assert "| mean | tokens per sample | cost per sample |\n" in text
    assert "| 1.000 | 1,250 | 0.5 |\n" in text
    assert "| 1.000 | – | – |\n" in text
    assert page.count("<svg") == 2  # by tokens and by money, without a point for the model whose cost is unknown
    assert page.count("<th>cost per sample</th>") == 3
    assert Leaderboard("T", [cell("unknown", "a", 0, None)]).costs == []


def test_the_suites_that_have_names_name_environments_that_exist() -> None:
    assert suite_names() == ["core", "tiny", "tiny-agents"]
    for name in suite_names():
        suite = read_suite(name)
        for environment in suite.environments:
            assert environment.split in environment_class(environment.name).task.splits
    samples = {
        environment.name: environment.samples_of(environment_class(environment.name).task.sizes["test"], 0.6)
        for environment in read_suite("core").environments
    }
    assert read_suite("core").environments[3].samples_of(30, 0.0) == 1  # greedy samples are all the same
    assert samples == {"GSM8K": 1, "MATH500": 1, "AMC23": 32, "AIME24": 32, "HumanEval": 1, "MBPP": 1}


ONE = 'title = "T"\n[[environments]]\nname = "Sort"\n'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("title = ", "is not TOML"),
        ("\udcff", "is not TOML"),
        ('title = "T"\n', "needs at least one environment"),
        (f"sampels = 3\n{ONE}", "unknown key in its top level 'sampels'"),
        (ONE.replace("name", "split"), "[[environments]] has no 'name'"),
        (ONE.replace('title = "T"', ""), "its top level has no 'title'"),
        ('title = "T"\nenvironments = "Sort"\n', "environments are tables [[environments]]"),
        (f'{ONE}split = "dev"\n', "dev"),
        (ONE + ONE.replace('title = "T"', ""), "environments of the same name need different"),
        (
            ONE.replace("Sort", "MazeState") + "problems = 10\n",
            "the suite 'mine' asks for problems = 10 of MazeState, which has 1: ask for fewer",
        ),
        (SUITE.replace("agents", "agent", 1), "unknown key in [train] 'agent'"),
        (SUITE.replace("num-envs", "steps"), "'steps' can't be among the options of [train]"),
        (SUITE.replace("num-envs", "num-env"), "num-env"),
        (SUITE.replace("[0, 3]", "[0, 0]"), "seeds must be a list that is not empty and repeats nothing"),
    ],
)
def test_a_suite_that_is_none_is_refused_in_one_line(content: str, message: str, rlvr: Command, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    code, _, error = rlvr("bench", "--suite", path, "--out", tmp_path / "out", "--model", "no-such-model")
    assert message in error
    assert (code, error.count("error: ")) == (1 if message == "is not TOML" else 2, 1)
    assert not (tmp_path / "out").exists()
