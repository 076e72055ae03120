"""Shapes and dtypes of the pure functions are checked while these tests run.

The hook rewrites modules as they are imported, so it stands here, before any test of this folder imports them.
"""

from __future__ import annotations

import sys

from jaxtyping import install_import_hook

CHECKED = ("agents.advantages", "agents.importance", "agents.kl", "agents.losses", "agents.sampling")

_early = [name for name in CHECKED if name in sys.modules]
if _early:
    raise ImportError(f"{', '.join(_early)} imported before tests/agents/conftest.py, so its shapes would go unchecked")
install_import_hook(list(CHECKED), "beartype.beartype")
