"""Shapes and dtypes of the pure functions are checked while these tests run.

The hook rewrites modules as they are imported, so it stands here, before any test of this folder imports them.
"""

from __future__ import annotations

import builtins
import contextlib
import os
import signal
import sys
from collections.abc import Iterator

import pytest
from jaxtyping import Bool, Float, Int, install_import_hook

CHECKED = (
    "agents.advantages",
    "agents.importance",
    "agents.kl",
    "agents.losses",
    "agents.policies.transformers.sampling",
    "agents.seeding",
)

KERNEL_SETTINGS = ("MKL_CBWR", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "OMP_NUM_THREADS", "RLVR_ROUNDING")

_early = [name for name in CHECKED if name in sys.modules]
if _early:
    raise ImportError(f"{', '.join(_early)} imported before tests/agents/conftest.py, so its shapes would go unchecked")
# The modules import these names for type checkers alone, and the hook evaluates annotations.
vars(builtins).update(Bool=Bool, Float=Float, Int=Int)
install_import_hook(list(CHECKED), "beartype.beartype")


@pytest.fixture
def float64() -> Iterator[None]:
    """A test of equality: see `tests.agents.rounding`."""
    from tests.agents.rounding import in_float64

    with in_float64():
        yield


@pytest.fixture(autouse=True)
def other_kernels() -> Iterator[None]:
    """With RLVR_ROUNDING, the tests run on kernels of no machine: see `tests.agents.kernels`."""
    with contextlib.ExitStack() as stack:
        if "RLVR_ROUNDING" in os.environ:
            from tests.agents.kernels import OtherKernels

            stack.enter_context(OtherKernels(int(os.environ["RLVR_ROUNDING"])))
        yield


def pytest_report_header() -> str:
    """Which kernels are in effect: a setting that the processor has no instructions for is not, and says nothing."""
    import torch

    settings = {name: os.environ.get(name) for name in KERNEL_SETTINGS}
    chosen = ", ".join(f"{name}={value}" for name, value in settings.items() if value is not None)
    return f"kernels of torch: {torch.backends.cpu.get_cpu_capability()}; settings: {chosen or 'none'}"


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Python's own answer to SIGINT, which is ignored where a shell has started the tests in the background."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)
