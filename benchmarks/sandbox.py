"""Programs per second and CPU per program: this sandbox, a plain subprocess, and a fork per program, side by side.

Every runner gets the same programs with the same tests, HumanEval's if `RLVR_DATA_DIR` names a folder that holds them, else a
small set of our own. CPU counts every process of the runner, its own and its children's, and excludes starting up.

Two more pairs follow: the same programs and tests under pytest, in the sandbox (`together`) and in an interpreter per file; and
a program in C++, compiled and run on three inputs, in the sandbox and by plain subprocesses, an eighth as often.

    python benchmarks/sandbox.py [--programs 164] [--workers 1 2] [--repeats 3]
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import json
import math
import multiprocessing
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from verifiers import Problem
from verifiers.unit_tests import CheckTests, FunctionTests, StdioCase, StdioTests, UnitTestVerifier, with_contract

TIMEOUT_S = 10.0
FALLBACK = CheckTests(
    "total",
    "def check(candidate):\n    for n in range(10):\n        assert candidate(list(range(n))) == n * (n - 1) // 2\n",
    'def total(numbers):\n    """Sum of the numbers."""\n',
)


CPP = """#include <iostream>
#include <vector>
int main() {
    std::vector<long> numbers;
    for (long n; std::cin >> n;) numbers.push_back(n);
    long sum = 0;
    for (long n : numbers) sum += n;
    std::cout << sum << "\\n";
}
"""
CPP_CASES = (("1 2 3", "6\n"), ("", "0\n"), ("-5 5 1000000000000", "1000000000000\n"))


@dataclass(frozen=True, slots=True)
class Task:
    """One program and its tests."""

    completion: str
    tests: CheckTests

    def script(self) -> str:
        """The program and its tests as one file, which ends with status 0 if they pass."""
        tests = self.tests
        return f"{tests.prefix}{self.completion}\n{tests.test}\ncheck({tests.entry_point})\n"

    def test_file(self) -> FunctionTests:
        """The tests as a file for pytest."""
        tests = with_contract(self.tests, "together")
        assert isinstance(tests, FunctionTests)
        return tests


def load_tasks(count: int) -> list[Task]:
    folder = os.environ.get("RLVR_DATA_DIR")
    path = Path(folder or "") / "humaneval" / "test.jsonl"
    if not folder or not path.exists():
        return [Task("    return sum(numbers)\n", FALLBACK)] * count
    rows = [json.loads(line) for line in path.read_text().splitlines()][:count]
    return [Task(r["canonical_solution"], CheckTests(r["entry_point"], r["test"], r["prompt"])) for r in rows]


@contextlib.contextmanager
def sandbox(workers: int, contract: str = "separate") -> Iterator[Callable[[list[Task]], list[bool]]]:
    verifier = UnitTestVerifier(workers=workers, timeout_s=TIMEOUT_S, allow_together=True)

    def run(tasks: list[Task]) -> list[bool]:
        references = [with_contract(task.tests, contract) for task in tasks]
        problems = [Problem(str(number), "", reference) for number, reference in enumerate(references)]
        return [v.score == 1 for v in verifier.verify_batch([task.completion for task in tasks], problems)]

    run([Task("    return sum(numbers)\n", FALLBACK)] * workers * 2)
    yield run
    verifier.close()


@contextlib.contextmanager
def pytest_per_file(workers: int) -> Iterator[Callable[[list[Task]], list[bool]]]:
    """An interpreter with pytest per file of tests; no isolation."""

    def run_one(task: Task) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "solution.py").write_text(f"{task.tests.prefix}{task.completion}")
            Path(folder, "test_file.py").write_text(task.test_file().test)
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--assert=plain", "test_file.py"]
            environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=60, check=False)
            return done.returncode == 0

    with ThreadPoolExecutor(workers) as threads:
        yield lambda tasks: list(threads.map(run_one, tasks))


@contextlib.contextmanager
def cpp_in_sandbox(workers: int) -> Iterator[Callable[[list[Task]], list[bool]]]:
    verifier = UnitTestVerifier(workers=workers, timeout_s=TIMEOUT_S)
    problem = Problem("p", "", StdioTests(tuple(StdioCase(*case) for case in CPP_CASES), languages=("cpp",)))

    def run(tasks: list[Task]) -> list[bool]:
        return [v.score == 1 for v in verifier.verify_batch([CPP] * len(tasks), [problem] * len(tasks))]

    run([Task("", FALLBACK)])
    yield run
    verifier.close()


@contextlib.contextmanager
def plain_cpp(workers: int) -> Iterator[Callable[[list[Task]], list[bool]]]:
    """The compiler and the program, without isolation."""

    def run_one(_: Task) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "main.cpp").write_text(CPP)
            subprocess.run(["g++", "-O2", "-w", "-std=gnu++17", "-o", "main", "main.cpp"], cwd=folder, check=True)
            runs = (
                subprocess.run([f"{folder}/main"], input=stdin, capture_output=True, text=True, check=False)
                for stdin, _ in CPP_CASES
            )
            return [run.stdout for run in runs] == [expected for _, expected in CPP_CASES]

    with ThreadPoolExecutor(workers) as threads:
        yield lambda tasks: list(threads.map(run_one, tasks))


@contextlib.contextmanager
def plain_subprocess(workers: int) -> Iterator[Callable[[list[Task]], list[bool]]]:
    """An interpreter per program; no isolation, and the exit status is the verdict."""

    def run_one(task: Task) -> bool:
        command = [sys.executable, "-I", "-S", "-c", task.script()]
        return subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False).returncode == 0

    with ThreadPoolExecutor(workers) as threads:
        yield lambda tasks: list(threads.map(run_one, tasks))


@contextlib.contextmanager
def fork_per_program(workers: int) -> Iterator[Callable[[list[Task]], list[bool]]]:
    """A forked process and a manager's list per program, as the field's first harness does."""

    def run_one(task: Task) -> bool:
        with multiprocessing.Manager() as manager:
            result = manager.list()
            process = multiprocessing.get_context("fork").Process(target=_execute, args=(task.script(), result))
            process.start()
            process.join(TIMEOUT_S + 1)
            process.kill()
            return list(result) == ["passed"]

    with ThreadPoolExecutor(workers) as threads:
        yield lambda tasks: list(threads.map(run_one, tasks))


def _execute(script: str, result: list[str]) -> None:
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, TIMEOUT_S)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        try:
            exec(script, {})
            result.append("passed")
        except BaseException as error:  # noqa: BLE001 - recorded as the result
            result.append(f"failed: {error}")
        os.chdir("/")


RUNNERS = {
    "sandbox": sandbox,
    "subprocess": plain_subprocess,
    "fork per program": fork_per_program,
    "together": functools.partial(sandbox, contract="together"),
    "pytest per file": pytest_per_file,
}
CPP_RUNNERS = {"sandbox, C++": cpp_in_sandbox, "subprocess, C++": plain_cpp}


def tree_cpu_s() -> float:
    """CPU seconds of this process, of its reaped descendants, and of those that still run."""
    own = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    ticks = os.sysconf("SC_CLK_TCK")
    return own + sum(ticks_of(pid) for pid in running_descendants(os.getpid())) / ticks


def running_descendants(pid: int) -> list[int]:
    children: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the thread has ended meanwhile
            children += map(int, (thread / "children").read_text().split())
    return [*children, *(pid for child in children for pid in running_descendants(child))]


def ticks_of(pid: int) -> int:
    """CPU ticks of a process and of its reaped children."""
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:15]))


def measure(run: Callable[[list[Task]], list[bool]], tasks: list[Task]) -> tuple[float, float, int]:
    cpu, start = tree_cpu_s(), time.perf_counter()
    passed = sum(run(tasks))
    seconds = time.perf_counter() - start
    return len(tasks) / seconds, 1000 * (tree_cpu_s() - cpu) / len(tasks), passed


def idle_memory_mib(tasks: list[Task]) -> float:
    """Private memory of a worker that has run the programs and waits, all its processes together."""
    with sandbox(1) as run:
        run(tasks)
        pids = running_descendants(os.getpid())
        maps = [Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() for pid in pids]
    return sum(int(line.split()[1]) for lines in maps for line in lines if line.startswith("Private_")) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=164)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3, help="rounds, in each of which every runner runs once")
    arguments = parser.parse_args()
    tasks = load_tasks(arguments.programs)
    print(
        f"{len(tasks)} programs, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, median of {arguments.repeats}"
    )
    print(f"{'runner':20} {'workers':>7} {'programs/s':>10} {'CPU ms':>7} {'passed':>6}")
    for workers in arguments.workers:
        with contextlib.ExitStack() as stack:
            runs = {name: stack.enter_context(runner(workers)) for name, runner in (RUNNERS | CPP_RUNNERS).items()}
            few = tasks[: math.ceil(len(tasks) / 8)]
            rounds = [
                {name: measure(run, few if name in CPP_RUNNERS else tasks) for name, run in runs.items()}
                for _ in range(arguments.repeats)
            ]
        for name in runs:
            rates, costs, passed = zip(*(figures[name] for figures in rounds), strict=True)
            rate, cost = statistics.median(rates), statistics.median(costs)
            print(f"{name:20} {workers:7} {rate:10.3g} {cost:7.2f} {min(passed):6}")
    print(f"an idle worker of the sandbox: {idle_memory_mib(tasks):.1f} MiB of private memory")


if __name__ == "__main__":
    main()
