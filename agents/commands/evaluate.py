"""`rlvr eval`."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from agents.commands.common import env_arguments, env_id, make_vec
from agents.evaluation import Evaluation, evaluate
from agents.models import load_policy
from agents.progress import progress
from agents.types import Trajectory


@dataclass(frozen=True)
class Evaluate:
    """Score a model on an environment's problems, and write every completion with its verdict."""

    env: str
    """An environment, such as GSM8K or rlvr/GSM8K-v0."""
    model: str
    """A folder or a Hugging Face name."""
    split: str = "test"
    """The problems to answer."""
    problems: int | None = None
    """Answer only the first so many; by default all."""
    samples: int = 1
    """Completions for each problem."""
    temperature: float = 0.0
    """Of sampling; 0 chooses the likeliest token."""
    seed: int = 0
    """Decides the sampling."""
    num_envs: int = 64
    """Episodes that are played at once."""
    out: Path = Path("runs/eval.jsonl")
    """The file for the results: a line for each completion, after one with the summary."""
    env_args: tuple[str, ...] = ()
    """Arguments of the environment, each as name=value, such as max_new_tokens=64 or prompt=boxed_chat."""

    def run(self, console: Console) -> int:
        """Evaluate, write the results and print the score."""
        self.out.parent.mkdir(parents=True, exist_ok=True)
        policy, tokenizer = load_policy(self.model, temperature=self.temperature, seed=self.seed)
        arguments = {"split": self.split, "tokenizer": tokenizer, **env_arguments(self.env_args)}
        env = make_vec(env_id(self.env), self.num_envs, arguments)
        count = env.num_problems if self.problems is None else self.problems
        done = 0
        with progress(f"{self.env} {self.split}", count * self.samples) as advance:

            def show(trajectory: Trajectory) -> None:
                nonlocal done
                done += 1
                advance(done)

            result = evaluate(env, policy, problems=count, samples=self.samples, seed=self.seed, on_episode=show)
        write_results(self.out, result, {"model": self.model, "temperature": self.temperature, **env.manifest})
        console.print(f"score {result}", markup=False)
        console.print(f"outcomes {result.outcomes}, truncated {result.truncated}; written to {self.out}", markup=False)
        return 0


def write_results(path: Path, result: Evaluation, settings: dict[str, Any]) -> None:
    """Write an evaluation as JSON Lines: the summary, then one line for each completion. The file appears as a whole."""
    summary = {
        "score": _finite(result.score),
        "interval": [_finite(end) for end in result.interval],
        "problems": result.problems,
        "samples": result.samples,
        "outcomes": result.outcomes,
        "truncated": result.truncated,
        "verifier_errors": result.verifier_errors,
        "error_causes": result.error_causes,
        "settings": settings,
    }
    lines = [summary, *(_line(trajectory) for trajectory in result.trajectories)]
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text("".join(json.dumps(line, default=str, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    os.replace(partial, path)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _line(trajectory: Trajectory) -> dict[str, Any]:
    verdict = trajectory.verdict
    return {
        "problem_id": trajectory.problem_id,
        "completion": trajectory.completion,
        "score": None if trajectory.broken else trajectory.score,
        "outcome": None if verdict is None else str(verdict.outcome),
        "answer": None if verdict is None else verdict.answer,
        "detail": None if verdict is None else dict(verdict.detail),
        "truncated": trajectory.truncated,
        "tokens": int(trajectory.policy_mask.sum()),
    }
