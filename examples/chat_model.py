"""A chat model that somebody else trained: evaluated, taught a made task by GRPO, and evaluated again.

    python examples/chat_model.py --model SmolLM2-135M-Instruct.Q4_1.gguf --benchmark-args data_dir=humaneval

The benchmark shows what the training changed beside the task. `make real` runs this with SmolLM2-135M-Instruct and HumanEval,
which package indexes have, so that no hub is needed.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from agents.runs.files.outputs import free_folder


def rlvr(*arguments: object) -> None:
    """Run a command as a user types it."""
    start = [sys.executable, "-c", "from rlvr_envs.console import main; main()"]
    subprocess.run([*start, *map(str, arguments)], check=True)


def main(arguments: list[str] | None = None) -> None:
    """Evaluate, train, evaluate, compare."""
    parser = argparse.ArgumentParser(description="Teach a chat model")
    parser.add_argument("--model", required=True)
    parser.add_argument("--env", default="Addition")
    parser.add_argument("--env-args", nargs="*", default=["digits=2", "prompt=chat", "max_new_tokens=24"])
    parser.add_argument("--problems", type=int, default=250)
    parser.add_argument("--benchmark", default="HumanEval")
    parser.add_argument("--benchmark-args", nargs="*", default=[])
    parser.add_argument("--benchmark-problems", type=int, default=100)
    parser.add_argument("--benchmark-tokens", type=int, default=256)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=Path("runs/chat-model"))
    options = parser.parse_args(arguments)

    options.folder = free_folder(options.folder.parent, options.folder.name)
    run = options.folder / "grpo"
    task = ["--env", options.env, "--env-args", *options.env_args]
    benchmark = ["--env", options.benchmark, "--problems", options.benchmark_problems]
    benchmark += ["--env-args", f"max_new_tokens={options.benchmark_tokens}", *options.benchmark_args]

    def evaluate(model: object, when: str) -> None:
        common = ["--model", model, "--seed", options.seed]
        rlvr("eval", *benchmark, *common, "--out", options.folder / f"bench-{when}")
        rlvr("eval", *task, *common, "--problems", options.problems, "--out", options.folder / f"task-{when}")

    evaluate(options.model, "before")
    rlvr(
        *("train", "grpo", *task, "--model", options.model, "--steps", options.steps, "--seed", options.seed),
        *("--run-folder", run),
    )
    evaluate(run, "after")
    for name in ("bench", "task"):
        before, after = (options.folder / f"{name}-{when}" for when in ("before", "after"))
        rlvr("compare", before, after, "--show", 5 if name == "task" else 0)
    rlvr("plot", run, "--out", options.folder / "reward")


if __name__ == "__main__":
    main()
