"""One program for one process and for many: exchanges between processes (ranks), their start, and their common failure.

The objects that this package exports are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verifiers import lazy_face

if TYPE_CHECKING:
    from agents.distributed.parts import whole_state as whole_state

__getattr__, __dir__, __all__ = lazy_face(__name__)
