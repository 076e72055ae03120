"""The console command `rlvr`.

The command starts here and not in `agents`, so that an `agents` package of another distribution is reported instead of run.
"""

from __future__ import annotations

import importlib

from rlvr_envs._names import require_own


def main() -> None:
    """Run the command line in `agents.commands.main`."""
    require_own("agents")
    importlib.import_module("agents.commands.main").main()
