"""The permissions of files that libraries write."""

from __future__ import annotations

from pathlib import Path


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
