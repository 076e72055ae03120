"""The benchmark of noisy verifiers: its errors have the rates that it says, and the corrected reward the right expectation."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from verifiers import Outcome, Problem

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location("noisy_verifiers", FOLDER / "noisy_verifiers.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FOLDER))
    return module


def test_the_rates_of_errors_and_the_expectation_of_the_correction(benchmark: ModuleType) -> None:
    problem = Problem("1", "3+4=", "7")
    noisy = benchmark.Noisy(("numeric", {"whole": True}), 0.2, 0.1, corrected=False, seed=0)
    corrected = benchmark.Noisy(("numeric", {"whole": True}), 0.2, 0.1, corrected=True, seed=1)
    for completion, is_right in (("7", True), ("8", False)):
        accepted = np.mean([noisy(completion, problem).outcome is Outcome.CORRECT for _ in range(3000)])
        assert accepted == pytest.approx(0.9 if is_right else 0.2, abs=0.03)
        scores = [corrected(completion, problem).score for _ in range(3000)]
        assert set(scores) == {-0.2 / 0.7, (1 - 0.2) / 0.7}
        assert np.mean(scores) == pytest.approx(float(is_right), abs=0.04)


def test_a_mean_with_its_interval(benchmark: ModuleType) -> None:
    assert benchmark.shown([0.5]) == "0.50"
    assert benchmark.shown([0.4, 0.5, 0.6]) == "0.50 [0.25, 0.75]"
