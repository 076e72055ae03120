"""CPU seconds of importing a package and of `rlvr COMMAND --help`, as a ratio to importing what every command needs.

Every line is a new process, the best of several; the lines take turns, so that other work disturbs all of them.

    python benchmarks/startup.py [--rounds 5] [--only compare eval]
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time

from agents.commands.main import COMMANDS

ANCHOR = "gymnasium, numpy, tyro, rich"
IMPORTS = ("verifiers", "rlvr_envs", "agents", "agents.settings.agent", "agents.tables.q_learning", "agents.losses")
AGENTS = ("train grpo", "train q-learning")


def cpu_seconds(*arguments: str) -> float:
    """User and system time of one process of Python with these arguments; its modules are compiled, as after a first use."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = os.times()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True, env=env)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="processes for each line, of which the best counts")
    parser.add_argument("--only", nargs="*", help="commands to measure, in place of all")
    arguments = parser.parse_args()
    commands = arguments.only if arguments.only is not None else [*COMMANDS, *AGENTS]
    lines = {f"import {ANCHOR}": ("-c", f"import {ANCHOR}")}
    lines |= {f"import {module}": ("-c", f"import {module}") for module in IMPORTS}
    lines |= {f"rlvr {name} --help": ("-m", "agents", *name.split(), "--help") for name in commands}
    best = dict.fromkeys(lines, float("inf"))
    for _ in range(arguments.rounds):
        for name, command in lines.items():
            best[name] = min(best[name], cpu_seconds(*command))
    print(f"Python {platform.python_version()}, {platform.machine()}, {time.strftime('%Y-%m-%d')}\n")
    anchor = best[f"import {ANCHOR}"]
    print("| process | CPU s | ratio |\n|---|---|---|")
    for name, seconds in best.items():
        print(f"| `{name}` | {seconds:.2f} | {seconds / anchor:.1f} |")


if __name__ == "__main__":
    main()
