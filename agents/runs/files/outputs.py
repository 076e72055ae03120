"""Checks output paths before any work is done, so that nothing is overwritten unless requested."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from verifiers import InvalidArgumentError

LOCK = ".lock"
"""Name of the lock file in a folder; only one process at a time may write into the folder."""


def check_folder(folder: Path) -> None:
    """Check that files can be written into a folder, which need not exist yet; no files are left behind."""
    missing = missing_folders(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\n")
            file.flush()
    except OSError as error:
        said = "it is not a folder" if isinstance(error, FileExistsError) else error.strerror
        raise InvalidArgumentError(f"can't write to the folder {folder}: {said}; choose another") from error
    finally:
        remove_empty(missing)


def missing_folders(folder: Path) -> list[Path]:
    """The folder and its parents that do not exist, innermost first."""
    return [path for path in (folder, *folder.parents) if not os.path.lexists(path)]


def remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders, innermost first, except those that do not exist or are not empty."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


def check_new_folder(folder: Path, *, resumable: bool = False) -> None:
    """Check that a folder is missing or empty, and that files can be written into it."""
    check_folder(folder)
    if folder.exists() and any(folder.iterdir()):
        resume = ", or continue what was interrupted in it with --resume" if resumable else ""
        raise InvalidArgumentError(f"{folder} is not empty: choose another folder{resume}")


def check_new_file(file: Path, *, overwrite: bool) -> None:
    """Check that a file can be written, and does not exist unless `overwrite` is set."""
    if file.is_dir():
        raise InvalidArgumentError(f"{file} is a folder: expected the path of a file")
    if os.path.lexists(file) and not overwrite:
        raise InvalidArgumentError(f"{file} exists already: choose another path, or replace it with --overwrite")
    check_folder(file.parent)


def free_folder(parent: Path, name: str) -> Path:
    """The first of `parent/name-1`, `parent/name-2`, ... that does not exist."""
    number = 1
    while os.path.lexists(parent / f"{name}-{number}"):
        number += 1
    return parent / f"{name}-{number}"


def locked(folder: Path) -> IO[str]:
    """Lock a folder until the returned file is closed, or until the process ends."""
    file = (folder / LOCK).open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip()
        file.close()
        raise InvalidArgumentError(
            f"{folder} is in use by {holder or 'another process'}: wait for it to end, stop it, or choose another folder"
        ) from None
    except OSError as error:
        # Some network file systems do not support locks; a run is still possible on them.
        warnings.warn(
            f"{folder} can't be locked ({error.strerror}): make sure that nothing else writes there", stacklevel=3
        )
    file.truncate(0)
    file.write(f"process {os.getpid()} on {os.uname().nodename}\n")
    file.flush()
    return file


def check_unlocked(folder: Path) -> None:
    """Check that no other process has locked a folder, which need not exist.

    Raises:
        InvalidArgumentError: If another process has locked the folder.
    """
    if (folder / LOCK).is_file():
        locked(folder).close()


@contextlib.contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder that is renamed to `folder` in the end, so that `folder` is either complete or absent.

    Raises:
        OSError: If `folder` exists by then and is not empty.
    """
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        os.replace(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def follow_umask(folder: Path) -> None:
    """Give every file below a folder the permissions of a new file, from the umask or from the folder's defaults.

    safetensors lets only the owner read the files that it writes, whatever the umask is.
    """
    probe = folder / ".mode"
    probe.touch()
    mode = probe.stat().st_mode & 0o777
    probe.unlink()
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_mode & 0o777 != mode:
            path.chmod(mode)
