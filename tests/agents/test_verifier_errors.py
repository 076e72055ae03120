"""A verifier that breaks is heard: a warning at the first, causes in the run's folder, an error where there are too many."""

from __future__ import annotations

import json
import math
import re
import socket
from pathlib import Path
from typing import Any

import pytest
import torch

from agents import Agent, AgentConfig, Run
from agents.commands.main import main
from agents.learn.verifier_errors import WINDOW
from agents.runs.evaluation import summarize_evaluation
from agents.runs.evaluation_record import Sample
from agents.runs.run import step_checkpoints
from agents.runs.verdicts import error_cause
from tests.agents.agent_cases import all_weights, digits, env_with, make_agent, playing_policy
from tests.agents.trajectories import trajectory
from verifiers import InvalidArgumentError, Outcome, Problem, Verdict, VerifierFailureError, make


class Flaky:
    """Breaks on the episodes that `breaks` says, counted from 0; else the share of digits."""

    def __init__(self, breaks: Any) -> None:
        self.breaks = breaks
        self.seen = 0

    def __call__(self, completion: str, problem: Problem) -> float:
        self.seen += 1
        if self.breaks(self.seen - 1):
            raise ConnectionError(f"judge {self.seen % 2} is away\nfor good")
        return digits(completion, problem)


def closed_port(completion: str, problem: Problem) -> float:
    """Asks a judge where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    socket.create_connection(("127.0.0.1", port), timeout=5)
    return 1.0


def agent_for(env: Any, case: str = "grpo", **settings: Any) -> Agent:
    return make_agent(case, playing_policy(env), **settings)


def causes(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "verifier_errors.jsonl").read_text().splitlines()]


@pytest.mark.filterwarnings("default:the verifier broke")
def test_a_verifier_that_always_breaks_stops_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--env", "Sort", "--steps", "3", "--problems-per-step", "4", "--group-size", "8", "--run-folder"]
    own = ["--env-args", "tokenizer=char", "max_new_tokens=4", f"verifier={__name__}:closed_port"]
    with pytest.raises(SystemExit) as ended:
        main(["train", "grpo", *options, str(tmp_path / "run"), *own])
    assert ended.value.code == 1
    warned, said = capsys.readouterr().err.split("\nerror: ")
    assert re.search(r"warning: the verifier broke on an episode of problem 'sort/.*ConnectionRefusedError", warned)
    assert said.startswith("the verifier broke on 32 of the last 32 episodes, more than --max-error-share 0.5 of them")
    assert "Connection refused" in said
    assert said.count("\n") == 1
    (line,) = causes(tmp_path / "run")
    assert (line["step"], line["count"]) == (1, 32)
    assert line["cause"].startswith("ConnectionRefusedError: ")
    assert line["problem_id"].startswith("sort/")


def test_a_run_that_stopped_goes_on_after_mending_as_if_nothing_had_been(tmp_path: Path) -> None:
    whole = agent_for(env_with(digits))
    whole.learn(env_with(digits), steps=5)
    agent = agent_for(env_with(digits), max_error_share=0.2)  # of 36, the window of three steps of 12
    with (
        Run(tmp_path / "run", {}, loggers=()) as run,
        pytest.warns(UserWarning, match="judge . is away for good"),
        pytest.raises(VerifierFailureError, match=r"on 12 of the last 36 .* 6 times: ConnectionError: judge . is away"),
    ):
        agent.learn(env_with(Flaky(lambda number: number >= 36)), steps=5, run=run)
    assert agent.steps == 3
    assert [path.name for path in step_checkpoints(tmp_path / "run")] == ["step-000003"]
    written = causes(tmp_path / "run")
    assert [(line["step"], line["count"]) for line in written] == [(4, 6), (4, 6)]
    expected = {f"ConnectionError: judge {number} is away\nfor good" for number in (0, 1)}
    assert {line["cause"] for line in written} == expected
    resumed = agent_for(env_with(digits), max_error_share=0.2)
    with Run(tmp_path / "run", {}, resume=True, loggers=()) as run:
        assert run.checkpoint is not None
        resumed.load(run.checkpoint)
        resumed.learn(env_with(digits), steps=5, run=run)
    assert torch.equal(all_weights(resumed), all_weights(whole))


@pytest.mark.filterwarnings("ignore:the verifier broke")
def test_small_steps_are_judged_together_and_the_last_of_all_whatever_their_number() -> None:
    """One episode a step: chance alone breaks it now and then, and 32 of them tell."""
    settings = {"problems_per_step": 1}
    agent = agent_for(env_with(digits), "reinforce", **settings)
    with pytest.raises(VerifierFailureError, match=f"broke on {WINDOW} of the last {WINDOW} episodes"):
        agent.learn(env_with(Flaky(lambda _: True)), steps=100)
    assert agent.steps == WINDOW - 1
    agent = agent_for(env_with(digits), "reinforce", **settings)
    with pytest.raises(VerifierFailureError, match="broke on 3 of the last 5 episodes"):
        agent.learn(env_with(Flaky(lambda number: number > 1)), steps=5)
    assert agent.steps == 5


@pytest.mark.filterwarnings("ignore:the verifier broke")
def test_a_run_whose_verifier_is_mended_plays_the_steps_again(tmp_path: Path) -> None:
    settings = {"problems_per_step": 1, "group_size": 4}  # too few episodes to stop before the last step
    agent, message = agent_for(env_with(digits), **settings), "broke on 12 of the last 12 episodes"
    with Run(tmp_path / "run", {}, loggers=()) as run, pytest.raises(VerifierFailureError, match=message):
        agent.learn(env_with(Flaky(lambda _: True)), steps=3, run=run)
    with Run(tmp_path / "run", {}, loggers=(), resume=True) as resumed:
        assert resumed.checkpoint is None
        agent_for(env_with(digits), **settings).learn(env_with(digits), steps=3, run=resumed)
        assert [row["verifier_errors"] for row in resumed.rows()] == [0.0] * 3


@pytest.mark.filterwarnings("ignore:the verifier broke")
def test_a_share_that_is_allowed_goes_on_and_is_counted(tmp_path: Path) -> None:
    with Run(tmp_path / "run", {}, loggers=()) as run:
        agent_for(env_with(digits)).learn(env_with(Flaky(lambda number: number % 2 == 0)), steps=4, run=run)
    assert sum(line["count"] for line in causes(tmp_path / "run")) == 4 * 6
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["verifier_errors"] for row in rows] == [6.0] * 4
    agent_for(env_with(digits), max_error_share=1.0).learn(env_with(Flaky(lambda _: True)), steps=3)
    for share in (-0.1, 1.1, math.nan):
        with pytest.raises(InvalidArgumentError, match=r"max_error_share must be (from 0 to 1|a number)"):
            AgentConfig(max_error_share=share)


@pytest.mark.filterwarnings("ignore:the verifier broke")
def test_many_causes_of_a_step_are_cut_to_the_most_common(tmp_path: Path) -> None:
    def named(completion: str, problem: Problem) -> float:
        raise KeyError(problem.id)

    agent, message = (
        agent_for(env_with(digits), problems_per_step=12),
        r"36 of the last 36 .* 3 times: KeyError: 'sort/",
    )
    with Run(tmp_path / "run", {}, loggers=()) as run, pytest.raises(VerifierFailureError, match=message):
        agent.learn(env_with(named), steps=1, run=run)
    results = causes(tmp_path / "run")
    assert [line["count"] for line in results] == [3] * 5 + [21]
    assert results[-1]["cause"] == "other than the 5 above"


def test_the_cause_is_that_of_the_part_that_broke() -> None:
    def breaks(completion: str, problem: Problem) -> float:
        raise ZeroDivisionError("no digits")

    problem = Problem("one", "1", "1")
    whole = make("weighted_sum", parts={"fine": digits, "inner": ("gate", {"parts": {"ratio": breaks}})})
    assert error_cause(whole("1", problem).detail) == "inner: ratio: ZeroDivisionError: no digits"
    asked = make("hybrid", rule="numeric", judge=breaks)(completion="one", problem=Problem("one", "1", "no number"))
    assert error_cause(asked.detail) == "judge: ZeroDivisionError: no digits"
    assert error_cause({"reason": "the gold answer cannot be read"}) == "the gold answer cannot be read"
    assert error_cause({"tier": 3}) == "the verifier gave no reason, only {'tier': 3}"


def test_an_evaluation_names_causes() -> None:
    said = ["port closed", "port closed", "no such model", None, None]
    verdicts = [
        Verdict.of(Outcome.CORRECT) if text is None else Verdict.of(Outcome.VERIFIER_ERROR, detail={"error": text})
        for text in said
    ]
    played = [
        trajectory([0, 1], rewards=[0, verdict.score], verdict=verdict, group=n) for n, verdict in enumerate(verdicts)
    ]
    rows = [Sample.of(episode, problem=number, sample=0) for number, episode in enumerate(played)]
    result = summarize_evaluation(rows, 5, 1)
    assert result.error_causes == {"port closed": 2, "no such model": 1}
    assert "3 verifier errors left out (0.400 with all of them wrong, 1.000 with all right)" in str(result)
    assert str(result).endswith("2 of them: port closed)")
    assert summarize_evaluation(rows[3:], 2, 1).error_causes == {}
