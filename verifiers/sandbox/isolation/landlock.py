"""Landlock: restricts reading by this process and its children to some folders, and writing to some files or one folder."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

from . import syscalls

_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
# The number of file-system rights in each version of the interface; newer versions have no more.
_FS_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_DEVICES = 1 << 6 | 1 << 11 | 1 << 15
"""The rights to make devices, and to control them."""
_NET_RIGHTS = 0b11
_SCOPES = 0b11
"""The scopes that are closed: abstract Unix sockets of processes outside, and signals to such processes."""


def version() -> int:
    """The version of the kernel's Landlock interface; raises OSError if Landlock is missing or disabled."""
    return syscalls.syscall("landlock_create_ruleset", None, ctypes.c_size_t(0), ctypes.c_uint(_CREATE_RULESET_VERSION))


def restrict(paths: Iterable[str], writable: Iterable[str] = (), folder: str = "") -> None:
    """Allow reading beneath the paths and nothing else: no other file, no write, no TCP, no signal to processes outside.

    Needs no_new_privs. Paths that do not exist are ignored.

    Args:
        paths: Folders and files to read; programs in the folders may be executed.
        writable: Files to write; none can be created, renamed or removed.
        folder: A folder in which everything is allowed except making and controlling devices.

    Raises:
        OSError: If the kernel refuses.
    """
    abi = version()
    every = (1 << _FS_RIGHTS[min(abi, 5)]) - 1
    attributes = struct.pack("=QQQ", every, _NET_RIGHTS if abi >= 4 else 0, _SCOPES if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = syscalls.syscall("landlock_create_ruleset", attributes, ctypes.c_size_t(size), ctypes.c_uint(0))
    try:
        for path in filter(os.path.exists, paths):
            _allow(ruleset, path, _READ_FILE | _READ_DIR | _EXECUTE if os.path.isdir(path) else _READ_FILE | _EXECUTE)
        for path in writable:
            _allow(ruleset, path, _READ_FILE | _WRITE_FILE | (_TRUNCATE if abi >= 3 else 0))
        if folder:
            _allow(ruleset, folder, every & ~_DEVICES)
        syscalls.syscall("landlock_restrict_self", ctypes.c_int(ruleset), ctypes.c_uint(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights, handle)
        syscalls.syscall(
            "landlock_add_rule", ctypes.c_int(ruleset), ctypes.c_uint(_RULE_PATH_BENEATH), rule, ctypes.c_uint(0)
        )
    finally:
        os.close(handle)
