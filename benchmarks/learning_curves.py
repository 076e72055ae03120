"""Learning curves of every agent, from one early checkpoint for each environment and with one budget of tokens.

Measured: the mean return of sampled completions ("reward") and the share of greedy completions that are right
("accuracy"), both on held-out problems, over the tokens that an agent has sampled; those of ReMax's greedy completions and of
the groups that DAPO throws away count too. The checkpoint comes from supervised learning that was stopped early. Each agent
is trained with several seeds, which decide the order of problems and the sampling; what is given of them is the interquartile
mean with its 95 % interval by bootstrap over seeds (Agarwal et al. 2021, arXiv:2108.13264).

Every agent learns with its defaults: 128 completions a step, and the learning rate that its learner chooses for a model of this
size. Some need more than that, and get it: Dr. GRPO its constant length and VinePPO single tokens as steps (`agent_settings`),
and GDPO, MaxRL and RFT rewards that they are defined for (`training_options`). Intervals that overlap mean no order, and
intervals that do not mean one at these settings.

Each result is a file of its own, so that a run that was interrupted goes on where it was, and one whose settings have changed
is done again.

Run: python benchmarks/learning_curves.py --out runs/agents
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import multiprocessing
import platform
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from transformers.utils.logging import disable_progress_bar

from agents import (
    AGENTS,
    Agent,
    CausalLMPolicy,
    LearnerConfig,
    SupervisedConfig,
    agent_classes,
    load_policy,
    tiny_model,
    train_supervised,
)
from agents.policies.transformers.loading import save_model
from verifiers import Outcome, Problem
from verifiers.statistics import interquartile_mean

Array = NDArray[np.float64]

POINTS = 5
"""Evaluations of each run, the first before any training."""


@dataclass(frozen=True)
class Task:
    """An environment, its checkpoint, and how long agents learn in it."""

    env_id: str
    options: Mapping[str, Any]
    verifier: tuple[str, Mapping[str, Any]]
    """The environment's own, as a part of a weighted sum for agents that want several rewards."""
    layers: int
    warm_start_steps: int
    """Of supervised learning: few enough that most samples are still wrong, and so many that greedy completions are right no
    more than about 0.2 oftener than samples. Of a flatter policy the greedy score, ReMax's baseline, says little."""
    tokens: int
    """What an agent may sample."""
    problems: int
    """Held-out problems."""
    samples: int
    """Sampled completions for each of them."""


TASKS = {
    "addition": Task(
        "rlvr/Addition-v0",
        {"tokenizer": "char", "max_new_tokens": 4, "digits": 2},
        ("numeric", {"whole": True}),
        layers=2,
        warm_start_steps=560,
        tokens=45_000,
        problems=250,
        samples=2,
    ),
    "sort": Task(
        "rlvr/Sort-v0",
        {"tokenizer": "char", "max_new_tokens": 6, "length": 3, "max_number": 9},
        ("exact", {}),
        layers=1,
        warm_start_steps=100,
        tokens=40_000,
        problems=97,
        samples=5,
    ),
    "gridworld": Task(
        "rlvr/GridWorld-v0",
        {"n": 4},
        ("rlvr_envs.worlds.rules:WalkVerifier", {}),
        layers=1,
        warm_start_steps=30,
        tokens=64_000,
        problems=48,
        samples=16,
    ),
}


def right_length(completion: str, problem: Problem) -> bool:
    """Whether a completion is as long as the gold one: the second reward of agents that want several."""
    gold = problem.metadata["gold_completion"]
    return isinstance(gold, str) and len(completion) == len(gold)


def training_options(task: Task, agent: str) -> dict[str, Any]:
    """What an agent's training environment is given beside the task's options."""
    if agent == "gdpo":
        parts = {"right": task.verifier, "length": right_length}
        return {"verifier": ("weighted_sum", {"parts": parts, "weights": {"right": 1.0, "length": 0.2}})}
    if agent in ("maxrl", "rft") and "GridWorld" in task.env_id:
        return {
            "step_reward": 0.0
        }  # MaxRL is defined for scores of at least 0, and RFT learns from those of at least 1
    return {}


def make_env(task: Task, split: str, num_envs: int = 256, **options: Any) -> Any:
    return gymnasium.make_vec(task.env_id, num_envs=num_envs, split=split, copy=False, **{**task.options, **options})


# The checkpoint that all agents start from


def checkpoint(task: Task, folder: Path) -> Path:
    """The early checkpoint, made unless it is there already."""
    options = "".join(f"-{name}-{value}" for name, value in task.options.items())
    path = folder / f"{task.env_id.split('/')[1]}{options}-{task.layers}-layers-{task.warm_start_steps}-steps"
    if not path.exists():
        streams = make_env(task, "train", num_envs=1).unwrapped.streams
        model = tiny_model(streams.vocab_size, layers=task.layers, hidden_size=64, intermediate_size=256, max_tokens=64)
        learner = LearnerConfig(learning_rate=3e-3, micro_batch_size=512)
        settings = SupervisedConfig(task.warm_start_steps, batch_size=128, learner=learner)
        train_supervised(CausalLMPolicy(model), streams, settings)
        partial = path.with_name(f".{path.name}.partial")
        save_model(partial, model, streams.rules.tokenizer)
        partial.rename(path)
    return path


# One run


def agent_settings(name: str, task: Task) -> dict[str, Any]:
    """What an agent is told in this benchmark, but for the seed: only what its config does not do without."""
    if name == "dr-grpo":
        return {"max_tokens": make_env(task, "train", num_envs=1).unwrapped.streams.rules.max_new_tokens}
    if name == "vineppo":
        return {"max_step_tokens": 1}  # these completions have no lines
    return {}


def make_agent(name: str, policy: CausalLMPolicy, task: Task, seed: int) -> Agent:
    """An agent with its defaults; how many completions a pass takes at once changes no result."""
    cls, config = agent_classes(name)
    learner = LearnerConfig(micro_batch_size=256)
    return cls(policy, config(seed=seed, learner=learner, **agent_settings(name, task)))


def train(
    name: str,
    task: Task,
    seed: int,
    start: Path,
    tokens: int,
    points: int = POINTS,
    before: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """One run, as plain data: the settings, and for each evaluation the tokens sampled before it, reward and accuracy.

    `before` is the score of the checkpoint, which is the same for all agents with one seed, where it is known already.
    """
    torch.set_num_threads(1)
    policy, _ = load_policy(start)
    agent = make_agent(name, policy, task, seed)
    env, held_out = make_env(task, "train", **training_options(task, name)), make_env(task, "test")
    began = time.process_time()
    curve = []
    for mark in np.linspace(0, tokens, points):
        while agent.tokens < mark:
            agent.learn(env, steps=agent.steps + 1)
        scores = before if before is not None and mark == 0 else score(agent, held_out, task)
        curve.append({"tokens": agent.tokens, **scores})
    settings = run_settings(name, task, seed, tokens, points)
    return {**settings, "curve": curve, "steps": agent.steps, "cpu_s": time.process_time() - began}


def score(agent: Agent, held_out: Any, task: Task) -> dict[str, Any]:
    """Reward of sampled completions and accuracy of greedy ones, and the means of both for each problem."""
    problems = task.problems
    sampled = agent.evaluate(held_out, problems=problems, samples=task.samples)
    greedy = agent.evaluate(held_out, problems=problems, greedy=True)
    by_problem = (
        np.array([trajectory.score for trajectory in sampled.trajectories]).reshape(problems, task.samples).mean(axis=1)
    )
    right = [
        float(trajectory.verdict is not None and trajectory.verdict.outcome == Outcome.CORRECT)
        for trajectory in greedy.trajectories
    ]
    return {
        "reward": sampled.score,
        "accuracy": float(np.mean(right)),
        "reward_by_problem": by_problem.round(6).tolist(),
        "accuracy_by_problem": right,
    }


def run_settings(name: str, task: Task, seed: int, tokens: int, points: int) -> dict[str, Any]:
    """All that decides a run's result, but for the code and its versions, as it looks in a file."""
    every = {"agent": name, "seed": seed, "tokens": tokens, "points": points}
    _, config = agent_classes(name)
    own = {**dataclasses.asdict(config(**agent_settings(name, task))), **training_options(task, name)}
    whole = {**every, "settings": own, "task": dataclasses.asdict(task)}
    plain: dict[str, Any] = json.loads(json.dumps(whole, default=lambda function: function.__name__))
    return plain


# Many runs


@dataclass(frozen=True)
class Job:
    """One run and where its result goes."""

    agent: str
    environment: str
    seed: int
    tokens: int
    out: Path
    points: int = POINTS

    @property
    def path(self) -> Path:
        """The file of the result."""
        return self.out / "results" / f"{self.environment}-{self.agent}-{self.seed}.json"

    @property
    def done(self) -> bool:
        """Whether the result is there, and of these settings."""
        if not self.path.exists():
            return False
        result = json.loads(self.path.read_text())
        wanted = run_settings(self.agent, TASKS[self.environment], self.seed, self.tokens, self.points)
        return {key: result.get(key) for key in wanted} == wanted

    def run(self) -> str:
        """Train, keep the result, and say what came out."""
        disable_progress_bar()
        task = TASKS[self.environment]
        start = checkpoint(task, self.out / "checkpoints")
        result = train(self.agent, task, self.seed, start, self.tokens, self.points)
        partial = self.path.with_suffix(".partial")
        partial.write_text(json.dumps(result) + "\n")
        partial.rename(self.path)
        ends = " ".join(
            f"{name} {result['curve'][0][name]:.3f} -> {result['curve'][-1][name]:.3f}" for name in MEASURES
        )
        return f"{self.path.stem}: {ends}, {result['steps']} steps, {result['cpu_s']:.0f} s"


def run_all(jobs: Sequence[Job], processes: int) -> None:
    """Do the jobs that are not done."""
    waiting = [job for job in jobs if not job.done]
    print(f"{len(jobs) - len(waiting)} of {len(jobs)} results are there", flush=True)
    for folder in {job.out for job in jobs}:
        (folder / "results").mkdir(parents=True, exist_ok=True)
        (folder / "checkpoints").mkdir(exist_ok=True)
    for environment, out in {(job.environment, job.out) for job in waiting}:
        checkpoint(TASKS[environment], out / "checkpoints")  # before several processes want it
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        for finished in as_completed([pool.submit(job.run) for job in waiting]):
            print(finished.result(), flush=True)


# What comes of them

MEASURES = {"reward": "reward of sampled completions", "accuracy": "accuracy of greedy completions"}
RESAMPLES = 10_000
MARGIN = 0.02
"""An agent keeps what its start could do if the interval of its gain reaches no further below 0."""


def bootstrap_interval(values: Array, seed: int = 0) -> tuple[float, float]:
    """The 95 % percentile interval of the interquartile mean of f64[n] under resampling."""
    draws = np.random.default_rng(seed).integers(0, len(values), size=(RESAMPLES, len(values)))
    low, high = np.percentile(interquartile_mean(values[draws]), [2.5, 97.5])
    return float(low), float(high)


def estimate(values: Array) -> dict[str, Any]:
    """Interquartile mean, interval, and least value of f64[n], one number for each seed."""
    return {
        "iqm": float(interquartile_mean(values)),
        "interval": bootstrap_interval(values),
        "least": float(values.min()),
        "seeds": len(values),
    }


def paired_gain(curves: Sequence[Sequence[Mapping[str, Any]]], measure: str) -> dict[str, Any]:
    """The mean gain from start to end over problems, its standard error and its 95 % interval.

    Of each problem the mean over seeds is taken first.
    """
    gains = [np.subtract(curve[-1][f"{measure}_by_problem"], curve[0][f"{measure}_by_problem"]) for curve in curves]
    by_problem: Array = np.mean(gains, axis=0)
    mean, error = float(by_problem.mean()), float(by_problem.std(ddof=1)) / len(by_problem) ** 0.5
    return {"mean": mean, "error": error, "interval": (mean - 1.96 * error, mean + 1.96 * error)}


def summarize(results: Iterable[Mapping[str, Any]], environment: str, agent: str) -> dict[str, Any]:
    """What one agent's seeds came to in one environment: at the end, gained since the start, and on the way."""
    curves = [result["curve"] for result in results]
    summary: dict[str, Any] = {"environment": environment, "agent": agent}
    for measure in MEASURES:
        table: Array = np.array([[point[measure] for point in curve] for curve in curves], dtype=np.float64)
        summary[measure] = {
            "start": estimate(table[:, 0]),
            "end": estimate(table[:, -1]),
            "gain": estimate(table[:, -1] - table[:, 0]),
            "paired_gain": paired_gain(curves, measure),
            "curve": [estimate(column) for column in table.T],
        }
    summary["tokens"] = [
        float(np.mean([curve[point]["tokens"] for curve in curves])) for point in range(len(curves[0]))
    ]
    return summary


def improved(summary: Mapping[str, Any], measure: str) -> bool:
    """Whether a measure has gained for sure: the interval of the gain is above 0, and so is every seed's."""
    gain = summary[measure]["gain"]
    return bool(gain["interval"][0] > 0 and gain["least"] > 0)


def may_have_lost(summary: Mapping[str, Any], measure: str) -> bool:
    """Whether the interval of a measure's gain reaches further below 0 than the margin."""
    return bool(summary[measure]["paired_gain"]["interval"][0] <= -MARGIN)


def lost(summaries: Sequence[Mapping[str, Any]], measure: str) -> str:
    """A line that says which agents may have ended below their start by more than the margin."""
    short = [
        f"{summary['agent']} in {summary['environment']} ({summary[measure]['paired_gain']['mean']:+.3f})"
        for summary in summaries
        if may_have_lost(summary, measure)
    ]
    pairs = f"of {len(summaries)} pairs of agent and environment"
    return f"{measure}: {pairs}, maybe more than {MARGIN} below the start at the end: {', '.join(short) or 'none'}"


def verdict(summaries: Sequence[Mapping[str, Any]], measure: str) -> str:
    """A line that says which agents improved in a measure for sure, and where the others did not."""
    missing = [
        f"{summary['agent']} in {summary['environment']}" for summary in summaries if not improved(summary, measure)
    ]
    start = f"{measure}: every seed's gain above 0, with an interval above 0, for"
    if not missing:
        return f"{start} all {len(summaries)} pairs of agent and environment"
    return f"{start} {len(summaries) - len(missing)} of {len(summaries)} pairs: all but {', '.join(missing)}"


def markdown(summaries: Sequence[Mapping[str, Any]]) -> str:
    """A table for each measure, environments side by side."""
    environments = list(dict.fromkeys(summary["environment"] for summary in summaries))
    agents = list(dict.fromkeys(summary["agent"] for summary in summaries))
    by_key = {(summary["agent"], summary["environment"]): summary for summary in summaries}
    lines = []
    for measure, words in MEASURES.items():
        lines += [f"{words.capitalize()}:", "", f"| agent | {' | '.join(environments)} |"]
        lines += ["|---" * (len(environments) + 1) + "|"]
        starts = [
            np.mean([by_key[key][measure]["start"]["iqm"] for key in by_key if key[1] == e]) for e in environments
        ]
        lines += [f"| the checkpoint | {' | '.join(f'{start:.2f}' for start in starts)} |"]
        for agent in agents:
            in_row = [by_key.get((agent, environment)) for environment in environments]
            cells = ["" if summary is None else _cell(summary[measure]["end"]) for summary in in_row]
            lines.append(f"| `{agent}` | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def _cell(estimate: Mapping[str, Any]) -> str:
    low, high = estimate["interval"]
    return f"{estimate['iqm']:.2f} [{low:.2f}, {high:.2f}]"


# The figure: a row for each agent, a column for each environment

WIDTH, HEIGHT, GAP, LEFT, TOP = 230, 62, 16, 110, 58
COLOURS = {"reward": "#1f6fb4", "accuracy": "#d1721b"}


def figure(summaries: Sequence[Mapping[str, Any]]) -> str:
    """All curves as an SVG; bands are the 95 % intervals."""
    environments = list(dict.fromkeys(summary["environment"] for summary in summaries))
    agents = list(dict.fromkeys(summary["agent"] for summary in summaries))
    width, height = LEFT + len(environments) * (WIDTH + GAP), TOP + len(agents) * (HEIGHT + GAP) + 12
    elements = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for number, (measure, words) in enumerate(MEASURES.items()):
        at = LEFT + number * 230
        elements.append(f'<path d="M{at} 14h22" stroke="{COLOURS[measure]}" stroke-width="2"/>')
        elements.append(f'<text x="{at + 28}" y="18">{words}</text>')
    for column, environment in enumerate(environments):
        tokens = max(summary["tokens"][-1] for summary in summaries if summary["environment"] == environment)
        title = f"{environment}: held-out problems, 0 to {tokens / 1000:.0f} 000 tokens"
        elements.append(f'<text x="{LEFT + column * (WIDTH + GAP)}" y="{TOP - 12}" font-weight="bold">{title}</text>')
        for row, agent in enumerate(agents):
            own = [
                summary for summary in summaries if (summary["agent"], summary["environment"]) == (agent, environment)
            ]
            corner = (LEFT + column * (WIDTH + GAP), TOP + row * (HEIGHT + GAP))
            elements += [element for summary in own for element in _panel(summary, tokens, corner)]
    for row, agent in enumerate(agents):
        elements.append(f'<text x="4" y="{TOP + row * (HEIGHT + GAP) + HEIGHT / 2 + 4:.0f}">{agent}</text>')
    return "\n".join([*elements, "</svg>", ""])


def _panel(summary: Mapping[str, Any], tokens: float, corner: tuple[float, float]) -> list[str]:
    """One agent in one environment, on axes from 0 to 1; a return below 0 is drawn at 0."""
    left, top = corner
    elements = [f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#bbb"/>']
    elements.append(f'<path d="M{left} {top + HEIGHT / 2}h{WIDTH}" stroke="#e4e4e4"/>')
    elements += [
        f'<text x="{left - 3}" y="{y}" text-anchor="end" font-size="8" fill="#777">{text}</text>'
        for text, y in (("1", top + 6), ("0", top + HEIGHT))
    ]
    across = [left + WIDTH * count / tokens for count in summary["tokens"]]
    for measure in MEASURES:
        curve = summary[measure]["curve"]

        def at(values: Iterable[float], across: Sequence[float] = across) -> list[str]:
            heights = (top + HEIGHT * (1 - min(max(value, 0.0), 1.0)) for value in values)
            return [f"{x:.1f} {y:.1f}" for x, y in zip(across, heights, strict=True)]

        band = at(point["interval"][0] for point in curve) + at(point["interval"][1] for point in curve)[::-1]
        line = at(point["iqm"] for point in curve)
        elements.append(f'<path d="M{"L".join(band)}z" fill="{COLOURS[measure]}" fill-opacity="0.2"/>')
        elements.append(f'<path d="M{"L".join(line)}" fill="none" stroke="{COLOURS[measure]}" stroke-width="1.5"/>')
    return elements


def report(jobs: Sequence[Job], out: Path) -> list[dict[str, Any]]:
    """Write table, figure and numbers of the results that are there; give what they came to, pair by pair."""
    done = [job for job in jobs if job.done]
    summaries = []
    for (environment, agent), group in itertools.groupby(
        sorted(done, key=lambda job: (list(TASKS).index(job.environment), list(AGENTS).index(job.agent), job.seed)),
        key=lambda job: (job.environment, job.agent),
    ):
        summaries.append(summarize([json.loads(job.path.read_text()) for job in group], environment, agent))
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    versions = {name: version(name) for name in ("torch", "transformers", "numpy", "gymnasium")}
    (out / "agents.json").write_text(json.dumps({**machine, **versions, "summaries": summaries}, indent=1) + "\n")
    (out / "agents.md").write_text(markdown(summaries))
    (out / "agents.svg").write_text(figure(summaries))
    return summaries


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", nargs="+", choices=list(AGENTS), default=list(AGENTS))
    parser.add_argument("--environments", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--seeds", type=int, default=5, help="seeds 0 to this, less one")
    parser.add_argument("--tokens", type=int, help="what each agent may sample; by default each environment's own")
    parser.add_argument("--points", type=int, default=POINTS, help="evaluations of each run")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/agents"))
    options = parser.parse_args()
    # A seed of every agent before the next: what is there after an interruption compares all of them.
    jobs = [
        Job(agent, environment, seed, options.tokens or TASKS[environment].tokens, options.out, options.points)
        for seed in range(options.seeds)
        for environment in options.environments
        for agent in options.agents
    ]
    run_all(jobs, options.processes)
    summaries = report(jobs, options.out)
    print((options.out / "agents.md").read_text())
    for measure in MEASURES:
        print(verdict(summaries, measure))
        print(lost(summaries, measure))
    # The exit code is for a check before a release: whoever may have ended below the start.
    sys.exit(any(may_have_lost(summary, "reward") for summary in summaries))


if __name__ == "__main__":
    main()
