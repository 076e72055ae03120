"""Shapes and dtypes of the pure functions are checked while these tests run.

The hook rewrites modules as they are imported, so it stands here, before any test of this folder imports them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from jaxtyping import install_import_hook

CHECKED = ("agents.advantages", "agents.importance", "agents.kl", "agents.losses", "agents.sampling")

_early = [name for name in CHECKED if name in sys.modules]
if _early:
    raise ImportError(f"{', '.join(_early)} imported before tests/agents/conftest.py, so its shapes would go unchecked")
install_import_hook(list(CHECKED), "beartype.beartype")


@pytest.fixture
def float64() -> Iterator[None]:
    """A test of equality: see `tests.agents.rounding`."""
    from tests.agents.rounding import in_float64

    with in_float64():
        yield
