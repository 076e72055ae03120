"""The benchmark that switches mechanisms off reads projects with test files, and what it switches off is off."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

FILES = {
    "leap/leap_test.py": "from leap import year\ndef test_it(): assert year() == 2000\n",
    "leap/.meta/example.py": "def year(): return 2000\n",
    "bank/src/bank/__init__.py": "from .rates import call, keep\n",
    "bank/src/bank/rates.py": "def keep(rates):\n    rates.append(7)\n    return rates\n"
    "def call(function): return function()\n",
    "bank/tests/test_rates.py": "import bank\ndef test_it():\n"
    "    rates = []\n    assert bank.keep(rates) == [7] == rates and bank.call(lambda: 7) == 7\n",
    "bank/tests/test_other.py": "def test_it(): assert 1\n",
}


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent.parent / "benchmarks"))
    return importlib.import_module("sandbox_ablation")


def test_what_is_switched_off_is_off(benchmark: ModuleType, tmp_path: Path) -> None:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    tasks = list(benchmark.projects(tmp_path))
    assert [task.name for task in tasks] == ["bank/test_rates", "leap/leap_test"], "one imports nothing of its project"
    assert [result.right for result in benchmark.results_without(None, tasks)] == [True, True]
    for mechanism in ("changed_containers", "callbacks"):
        assert [result.right for result in benchmark.results_without(mechanism, tasks)] == [False, True], mechanism
