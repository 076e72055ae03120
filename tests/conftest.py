"""Shared fixtures: a sandbox for each test file, and small data of every benchmark's layout, so that nothing is downloaded."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import rlvr_envs
from tests import parts
from tests.benchmark_rows import EVERY, SEVERAL
from tests.commands import Command
from verifiers import _workers
from verifiers.sandbox import Limits, Sandbox
from verifiers.unit_tests import UnitTestVerifier

# Several test processes share the machine; with a thread for each core in each of them they would wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Tests that interrupt need Python's own handler, which a process that is started in the background of a script does not have.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes depends on the machine's load; the environments of tests/vllm and tests/trl have no hypothesis.
with contextlib.suppress(ImportError):
    import hypothesis

    hypothesis.settings.register_profile(
        "any load", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("any load")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--divide-cpu-limits",
        type=float,
        default=1.0,
        metavar="N",
        help="divide every limit on processor time by N, as if the processor were N times slower; leaves out tests of limits",
    )

    parser.addoption("--part", choices=(parts.CORE, parts.FULL), help="run one part of the tests; see tests/parts.py")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "sandbox(**settings): of the `verifier` of a test file, in place of the usual ones"
    )
    config.addinivalue_line("markers", "limit: asserts what a limit on processor time does")
    if (divisor := config.getoption("--divide-cpu-limits")) != 1:
        _divide_cpu_limits(divisor)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    left_out = (
        config.getoption("--part") == parts.CORE and collection_path.suffix == ".py" and parts.is_full(collection_path)
    )
    return True if left_out else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    part, divisor = config.getoption("--part"), config.getoption("--divide-cpu-limits")
    kept = [
        item
        for item in items
        if part in (None, parts.part_of(item)) and (divisor == 1 or not item.get_closest_marker("limit"))
    ]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept


def _divide_cpu_limits(divisor: float) -> None:
    """Shorten what programs in the sandbox and worker processes may take."""
    divided = f"""
import verifiers._workers as workers
whole = workers.limit_processor_time
workers.limit_processor_time = lambda seconds: whole(seconds / {divisor})
"""
    head, load = _workers._BOOTSTRAP.split("importlib.import_module(module)")
    _workers._BOOTSTRAP = f"{head}{divided}importlib.import_module(module){load}"
    limits_within = Sandbox.limits_within

    def shorter(self: Sandbox, timeout_s: float | None) -> Limits:
        limits = limits_within(self, timeout_s)
        return dataclasses.replace(limits, cpu_s=limits.cpu_s / divisor)

    Sandbox.limits_within = shorter  # type: ignore[method-assign]


@pytest.fixture(scope="module")
def verifier(request: pytest.FixtureRequest) -> Iterator[UnitTestVerifier]:
    """A sandbox that the tests of a file share; a program that breaks its fork server disturbs no other file.

    A file that needs other settings says `pytestmark = pytest.mark.sandbox(timeout_s=5)`.
    """
    marker = request.node.get_closest_marker("sandbox")
    settings = {"timeout_s": 2, "memory_mib": 512} | (marker.kwargs if marker else {})
    with contextlib.closing(UnitTestVerifier(**settings)) as made:
        yield made


@pytest.fixture(scope="session")
def small_data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a row or more of every benchmark, our own, in each split."""
    folder = tmp_path_factory.mktemp("data")
    for name, case in EVERY.items():
        (folder / name).mkdir()
        rows = SEVERAL.get(name, [case.row])
        text = "".join(json.dumps(row) + "\n" for row in rows)
        for split in ("train", "test"):
            if name != "mbpp" or split == "test":
                (folder / name / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def local_data(small_data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point RLVR_DATA_DIR at the small data."""
    monkeypatch.setenv("RLVR_DATA_DIR", str(small_data_dir))
    return small_data_dir


@pytest.fixture
def rlvr(capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: object) -> tuple[int, str, str]:
        from agents.commands.main import main

        with pytest.raises(SystemExit) as ended:
            main([*map(str, words)])
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, " ".join(said.err.split())

    return run


NEEDED = {
    "rlvr/JSONSchema-v0": "jsonschema",
    "rlvr/ReasoningGym-v0": "reasoning_gym",
    "rlvr/TextArena-v0": "textarena",
    "rlvr/GEM-v0": "gem",
}
"""What an id needs beside the base install."""
USABLE = [name for name in rlvr_envs.ENVIRONMENTS if name not in NEEDED or importlib.util.find_spec(NEEDED[name])]
"""The ids that can be made here; `make test` has all of them but those of reasoning-gym, TextArena and GEM."""


@pytest.fixture(params=USABLE)
def every_id(request: pytest.FixtureRequest, local_data: Path) -> str:
    """Each registered id in turn, with its data at hand."""
    name: str = request.param
    return name
