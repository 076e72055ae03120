"""A scorer in an evaluation by Inspect itself. The answers are given: a model of Inspect's would download a tokenizer."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from inspect_ai import Task, eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from agents.adapters.inspect_ai import verifier_scorer
from tests.adapters.broken import exactly
from verifiers import from_function

# Inspect leaves streams open and calls what its own libraries replaced.
pytestmark = pytest.mark.filterwarnings("default")


@solver
def saying(answers: list[str]) -> Solver:
    """Answers sample i, counted from 1, with text i."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output = ModelOutput.from_content("given", answers[int(state.sample_id) - 1])
        return state

    return solve


def evaluated(samples: list[Sample], answers: list[str], scorer: Scorer, folder: Path) -> EvalLog:
    task = Task(dataset=samples, solver=saying(answers), scorer=scorer)
    (log,) = evaluate(task, model="mockllm/model", log_dir=str(folder), display="none")
    gc.collect()  # what was left open is warned about here, where that is no error
    assert log.status == "success", log.error
    return log


def test_scores_and_what_is_unscored(tmp_path: Path) -> None:
    samples = [
        Sample(id=1, input="2+2=", target="4"),
        Sample(id=2, input="2+3=", target="5", metadata={"reference": "6"}),
        Sample(id=3, input="2+4=", target="6"),
    ]
    log = evaluated(samples, ["4", "5", "break"], verifier_scorer(from_function(exactly)), tmp_path)
    (score,) = log.results.scores
    assert score.metrics["mean"].value == 0.5
    assert (score.scored_samples, score.unscored_samples) == (2, 1)
    (errored,) = (log.samples[2].scores or {}).values()
    assert errored.explanation == "verifier error: ConnectionError: the pool died"


def test_a_named_verifier_takes_arguments(tmp_path: Path) -> None:
    scorer = verifier_scorer("exact", casefold=True)
    log = evaluated([Sample(id=1, input="?", target="YES")], ["yes"], scorer, tmp_path)
    assert log.results.scores[0].metrics["mean"].value == 1.0
