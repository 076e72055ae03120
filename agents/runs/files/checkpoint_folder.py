"""Folders that are replaced as a whole, so that a checkpoint is complete or absent."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from agents.runs.files.integrity import write_checksums
from verifiers import InvalidArgumentError


@contextlib.contextmanager
def replacing(folder: Path, marker: str) -> Iterator[Path]:
    """A temporary folder that replaces `folder` at the end of the block.

    The temporary folder gets checksums, is flushed to disk and then renamed. Before that, an existing checkpoint is renamed to
    `.NAME.previous`, which is removed in the end; after a crash between the two renames, `recover` restores it.

    Args:
        folder: The folder to replace.
        marker: Name of a file that every checkpoint of this kind has.
    """
    if folder.exists() and not (folder / marker).is_file() and any(folder.iterdir()):
        raise InvalidArgumentError(f"{folder} contains something other than a checkpoint: choose another folder")
    partial, previous = folder.with_name(f".{folder.name}.partial"), _previous(folder)
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        yield partial
        write_checksums(partial)
        for path in (*partial.rglob("*"), partial):
            _flush(path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)  # frees space if the disk is full
        raise
    if folder.exists():
        shutil.rmtree(previous, ignore_errors=True)
        os.replace(folder, previous)
    os.replace(partial, folder)
    _flush(folder.parent)
    shutil.rmtree(previous, ignore_errors=True)


def recover(folder: Path) -> None:
    """Restore a checkpoint whose replacement was interrupted between the two renames."""
    if not folder.exists() and _previous(folder).is_dir():
        os.replace(_previous(folder), folder)


def _previous(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.previous")


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
