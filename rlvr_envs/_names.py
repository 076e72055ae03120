"""Check that the packages `verifiers` and `agents` belong to this distribution.

Other distributions on PyPI use the same package names, and pip overwrites files silently.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

DISTRIBUTION = "rlvr-envs"


def require_own(package: str) -> None:
    """Check that the top-level package of this name, if it exists, belongs to this distribution.

    The package's file is only read; none of its code is executed.

    Raises:
        ImportError: If the package belongs to another distribution; the message names the file and the remedy.
    """
    spec = importlib.util.find_spec(package)
    if spec is None:
        return
    if spec.origin is not None and f'__distribution__ = "{DISTRIBUTION}"' in Path(spec.origin).read_text("utf-8"):
        return
    raise ImportError(
        f"the package {package!r} found at {spec.origin or spec.submodule_search_locations} is not the one of {DISTRIBUTION}: "
        "another distribution has installed a package of the same name over it, or before it on the path. "
        f"Install {DISTRIBUTION} in a virtual environment of its own, or uninstall the other one and reinstall {DISTRIBUTION}",
        name=package,
    )
