"""`make test` runs what needs no other library, `make test-adapters` the rest, each file where its library is installed."""

from __future__ import annotations

import importlib.util
import os

_NEEDED = {
    "test_in_trl.py": ("trl",),
    "test_in_verl.py": ("verl", "ray"),
    "test_in_openenv.py": ("openenv", "fastmcp", "fastapi"),
    "test_in_openrlhf.py": ("openrlhf", "aiohttp", "fastapi"),
    "test_in_primeintellect.py": ("fastapi",),
    "test_in_skyrl.py": ("skyrl_gym",),
    "test_in_inspect.py": ("inspect_ai",),
    "test_in_lm_eval.py": ("lm_eval",),
}
collect_ignore = [file for file, names in _NEEDED.items() if not all(importlib.util.find_spec(name) for name in names)]
if "PRIMEINTELLECT" not in os.environ:  # the interpreter that has Prime Intellect's `verifiers`
    collect_ignore.append("test_in_primeintellect.py")
