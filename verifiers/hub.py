"""The Hugging Face hub, asked once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

_PATIENCE_S = 10.0


def ask_once(name: str | os.PathLike[str], kind: Literal["model", "dataset"]) -> None:
    """Ask the hub whether it has a model or a data set, where `transformers` and `datasets` would ask for a minute.

    Nothing is asked of a path that exists, nor of what the hub's cache holds a part of: that may be loaded without the hub.

    Raises:
        OSError: If the hub can't be reached, or has nothing of that name that may be read; the message is one line.
    """
    from huggingface_hub import HfApi, constants
    from huggingface_hub.file_download import repo_folder_name

    name = os.fspath(name)
    if os.path.exists(name):
        return
    try:
        if not (Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=name, repo_type=kind)).exists():
            HfApi().repo_info(name, repo_type=kind, timeout=_PATIENCE_S)
    except Exception as error:  # of the library that connects, which is another with each version of the hub's
        lines = [line for line in str(error).splitlines() if line]
        told = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
        raise OSError(f"there is no such folder here, and it can't be had from {constants.ENDPOINT}: {told}") from error
