"""The outer layer: separate namespaces, a root that holds only the library folders, and an unprivileged user.

This layer confines the fork server as `bwrap` confines a process, without needing that program: no network device, no System V
objects of other processes, and no files except the libraries and, if requested, a writable folder in memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from ..limits import FOLDER
from . import syscalls
from .library_folders import library_paths

_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_MS_NOSUID, _MS_NODEV = 2, 4
_MS_REC, _MS_BIND, _MS_PRIVATE = 0x4000, 0x1000, 0x40000
_MNT_DETACH = 2
_AT_RECURSIVE = 0x8000
_ATTR_READ_ONLY = 0x1
NOBODY = 65534
"""The user that owns nothing, but may run programs."""
_STAGING = "/tmp"
"""A folder on which the new root is mounted, in a separate mount namespace, so that the real folder is unchanged."""


STDIN = "/dev/stdin"


@dataclass(frozen=True, slots=True)
class Extras:
    """Rights of an installed program beyond reading files."""

    folder_mib: int = 0
    """Size of a folder to write in, in MiB; 0 for none."""
    folder_files: int = 0
    """Maximum number of files and folders in the folder."""
    processes: int = 0
    """Number of processes besides the program's own."""
    stdin: bytes | None = None
    """The content of the file `STDIN`, needed because the usual link of that name would lead nowhere."""


NOTHING_MORE = Extras()


def enter(paths: Iterable[str], writable: Iterable[str] = (), extras: Extras = NOTHING_MORE) -> None:
    """Move this process into new namespaces whose root holds the paths, read-only, under their own names.

    A failure half-way would leave the process without its files, so a child tries first.

    Args:
        paths: Folders and files; paths that do not exist are left out.
        writable: Files beneath the paths that stay writable.
        extras: Further rights. A folder to write in has the path `FOLDER`. If the program may start processes, the next child
            is the first process in a namespace of process ids.

    Raises:
        OSError: If the system does not let this user create namespaces.
    """
    paths, writable = list(paths), list(writable)
    if not _known_to_work:
        _try(paths, writable, extras)
    _enter(paths, writable, extras)


_known_to_work: list[bool] = []
"""Not empty once a trial has succeeded, in this process and in its children."""


def try_for_children() -> None:
    """Try once whether entering works, for all children of this process; this halves the time of each child's own entering."""
    with contextlib.suppress(OSError):  # each child then meets the error itself, and answers with it
        _try(library_paths(), [], NOTHING_MORE)
        _known_to_work.append(True)


def _try(paths: list[str], writable: list[str], extras: Extras) -> None:
    pid = syscalls.fork()
    if pid == 0:
        _try_and_exit(paths, writable, extras)
    error = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if error:
        raise OSError(error, f"namespaces: {os.strerror(abs(error))}")


def _try_and_exit(paths: list[str], writable: list[str], extras: Extras) -> NoReturn:
    try:
        _enter(paths, writable, extras)
    except OSError as error:
        os._exit(error.errno or 1)
    os._exit(0)


def _enter(paths: list[str], writable: list[str], extras: Extras) -> None:
    uid, gid = os.geteuid(), os.getegid()
    flags = _NEWNS | _NEWUTS | _NEWIPC | _NEWNET | (_NEWUSER if uid else 0) | (_NEWPID if extras.processes else 0)
    syscalls.check(syscalls.libc.unshare(ctypes.c_int(flags)), "unshare")
    if uid:
        _map_own_ids(uid, gid)
    _build_root([path for path in paths if os.path.lexists(path)], writable, extras)


def _map_own_ids(uid: int, gid: int) -> None:
    maps = {"setgroups": "deny", "uid_map": f"{uid} {uid} 1", "gid_map": f"{gid} {gid} 1"}
    for name, content in maps.items():
        with open(f"/proc/self/{name}", "w") as file:
            file.write(content)


def _build_root(paths: list[str], writable: list[str], extras: Extras) -> None:
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    # Opened before the new root covers the staging folder: a library folder may lie beneath it.
    handles = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in paths if not os.path.islink(path)}
    kept = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in writable}
    links = {path: os.readlink(path) for path in paths if os.path.islink(path)}
    _mount("tmpfs", _STAGING, "tmpfs", 0)
    for path, handle in handles.items():
        _bind(handle, _STAGING + path)
    for path, target in links.items():
        os.makedirs(os.path.dirname(_STAGING + path), exist_ok=True)
        os.symlink(target, _STAGING + path)
    if extras.stdin is not None:
        with open(_STAGING + STDIN, "wb") as file:
            file.write(extras.stdin)
    if extras.folder_mib:
        os.mkdir(_STAGING + FOLDER)
    _make_read_only(_STAGING)
    if extras.folder_mib:
        # The additional file is the folder itself. Root is about to become another user.
        options = f"size={extras.folder_mib}m,nr_inodes={extras.folder_files + 1},mode=777"
        _mount("tmpfs", _STAGING + FOLDER, "tmpfs", _MS_NOSUID | _MS_NODEV, options)
    for path, handle in kept.items():
        _mount_handle(handle, _STAGING + path)
    os.chdir(_STAGING)
    syscalls.syscall("pivot_root", b".", b".")
    syscalls.check(syscalls.libc.umount2(b".", ctypes.c_int(_MNT_DETACH)), "umount2")
    os.chdir("/")


def _bind(handle: int, target: str) -> None:
    if stat.S_ISDIR(os.fstat(handle).st_mode):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    _mount_handle(handle, target)


def _mount_handle(handle: int, target: str) -> None:
    _mount(f"/proc/self/fd/{handle}", target, None, _MS_BIND | _MS_REC)
    os.close(handle)


def _make_read_only(path: str) -> None:
    # mount_setattr adds the one flag and keeps the flags that a user namespace may not clear.
    attributes = struct.pack("=QQQQ", _ATTR_READ_ONLY, 0, 0, 0)
    syscalls.syscall(
        "mount_setattr",
        ctypes.c_int(-100),
        path.encode(),
        ctypes.c_uint(_AT_RECURSIVE),
        attributes,
        ctypes.c_size_t(len(attributes)),
    )


def _mount(source: str, target: str, filesystem: str | None, flags: int, options: str = "") -> None:
    result = syscalls.libc.mount(
        source.encode(),
        target.encode(),
        filesystem and filesystem.encode(),
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    syscalls.check(result, f"mount on {target}")


def drop_privileges() -> None:
    """Become a user without privileges: root takes an id that no other process has, and all capabilities are dropped.

    With an id of its own, the limit on processes counts only this sandbox. If root may not choose an id, or only root can read
    the interpreter, the capabilities are dropped all the same.
    """
    if os.geteuid() == 0:
        _leave_root()
    _drop_capabilities()


def drop_privileges_outside() -> None:
    """Become a user without privileges, but without namespaces; root stays root if another user can't read the libraries.

    The kernel does not limit the number of root's threads.
    """
    pid = syscalls.fork()
    if pid == 0:
        _leave_root_and_exit()
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0:
        _leave_root()
    _drop_capabilities()


def _leave_root_and_exit() -> NoReturn:
    _leave_root()
    os._exit(0 if os.geteuid() and os.access(os.__file__, os.R_OK) else 1)


def _drop_capabilities() -> None:
    header = struct.pack("=Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
    syscalls.syscall("capset", header, bytes(24))


def _leave_root() -> None:
    for uid in (0x70000000 + os.getpid(), NOBODY):
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        except OSError:
            continue
        return
