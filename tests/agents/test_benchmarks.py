"""What the benchmarks of speed report adds up; test_benchmark_commands.py runs them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from torch.autograd import DeviceType

from benchmarks import training_step as training

TINY = {"layers": 1, "width": 16, "heads": 2, "problems": 2, "group": 2, "prompt": 5, "completion": 3}


def event(name: str, start: float, end: float, cpu: float = 0.0, gpu: float = 0.0, **fields: Any) -> SimpleNamespace:
    return SimpleNamespace(
        name=name,
        time_range=SimpleNamespace(start=start, end=end),
        self_cpu_time_total=cpu,
        self_device_time_total=gpu,
        device_type=fields.get("device", DeviceType.CPU),
        is_user_annotation=name in training.PHASES or "#" in name,
    )


def test_events_belong_to_the_phase_in_which_they_began() -> None:
    """Times in microseconds; a kernel is counted with the operation that launched it, not by itself."""
    phases = training.by_phase(
        [
            event("mm", 130, 140, 8.0, 30.0),
            event("decode", 100, 150),
            event("mm", 110, 120, 9.0, 20.0),
            event("mm", 155, 160, 1.0, 1.0),  # between phases
            event("backward", 200, 300),
            event("Optimizer.step#AdamW.step", 205, 210, 5.0),
            event("MmBackward0", 250, 320, 40.0),
            event("kernel", 110, 130, 0.0, 20.0, device=DeviceType.CUDA),
        ]
    )
    assert phases["decode"].wall_s == pytest.approx(50e-6)
    assert phases["decode"].operations == {"mm": [2, pytest.approx(17e-6), pytest.approx(50e-6)]}
    assert phases["decode"].in_operations_s() == pytest.approx(17e-6)
    assert phases["decode"].on_device_s() == pytest.approx(50e-6)
    assert phases["backward"].operations == {"MmBackward0": [1, pytest.approx(40e-6), 0.0]}
    assert phases["prefill"].wall_s == 0


def test_the_bound_counts_the_matrices_as_they_are() -> None:
    """One layer of width 16: two heads of queries, one of keys and values, 24 wide in between; a vocabulary of 512."""
    work = training.Work(**TINY, kv_heads=1, mlp=24)
    layer = 16 * 16 + 16 * 16 + 2 * 16 * 8 + 3 * 16 * 24
    own, prompts = 4 * 3, 2 * 5
    attention = 2 * 16 * (own * (5 + 2) + 2 * 5**2 / 2)
    assert training.floating_point_operations(work) == 8 * ((own + prompts) * layer + own * 512 * 16 + attention)
