"""`torch`, which loads when something in it is first used.

Formulas and algorithms need it only when they run. So their settings can be read, as `rlvr train grpo --help` does, without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch as torch
else:
    from verifiers import lazy_module

    torch = lazy_module("torch", extra="train", user="agents")
