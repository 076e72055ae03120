"""The module `torch`, which is loaded when one of its members is first used.

Formulas and algorithms need torch only when they run, so `rlvr train grpo --help` reads their settings without torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch as torch
else:
    from verifiers import lazy_module

    torch = lazy_module("torch", extra="train", user="agents")
