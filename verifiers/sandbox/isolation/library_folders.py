"""The folders of the libraries that programs may read."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Sequence


def library_paths(others: Sequence[str] = ()) -> list[str]:
    """The paths that a program may read: the standard library, shared libraries, time zones, harmless devices, and `others`."""
    libraries = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), os.path.join(sys.base_prefix, "lib")}
    libraries |= {os.path.dirname(os.__file__)}
    system = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/localtime"]
    searched = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder.startswith("/")]
    devices = ["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"]
    return _outermost([*sorted(libraries), *system, *searched, *others]) + devices


def _outermost(paths: list[str]) -> list[str]:
    """Drop paths that lie beneath another path."""
    unique = sorted({os.path.normpath(path) for path in paths})
    return [p for p in unique if not any(p.startswith(other + "/") for other in unique)]
