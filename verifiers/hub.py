"""Asks the Hugging Face hub only once, and silences the libraries that load from it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

_PATIENCE_S = 10.0
_UNREACHABLE = {"ConnectError", "ConnectTimeout", "ConnectionError", "ReadTimeout"}
"""Names of connection errors; versions of `huggingface_hub` connect with different libraries."""


class HubError(OSError):
    """The hub can't be reached, or has no such model or data set; the message stands on its own."""


def ask_once(name: str | os.PathLike[str], repo_type: Literal["model", "dataset"]) -> None:
    """Ask the hub once whether it has a model or a data set; `transformers` and `datasets` would keep asking for a minute.

    The hub is not asked about an existing path or about a name that is partly in the cache, since both may load without the
    hub.

    Raises:
        HubError: If the hub can't be reached, or has nothing readable of that name; the message is one line.
    """
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.file_download import repo_folder_name
    from huggingface_hub.utils._validators import validate_repo_id

    name = os.fspath(name)
    if os.path.exists(name):
        return
    try:
        validate_repo_id(name)
    except HFValidationError:
        raise HubError("there is no such folder here, and no name on the hub is spelled like that") from None
    try:
        if not (Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=name, repo_type=repo_type)).exists():
            HfApi().repo_info(name, repo_type=repo_type, timeout=_PATIENCE_S)
    except Exception as error:  # from the library that connects, which differs between versions of huggingface_hub
        lines = [line for line in str(error).splitlines() if line]
        if lines and type(error).__name__ in _UNREACHABLE:
            raise HubError(
                f"there is no such folder here, and the hub at {constants.ENDPOINT} can't be reached: {lines[0]}"
            ) from error
        reason = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
        raise HubError(
            f"there is no such folder here, and it could not be downloaded from {constants.ENDPOINT}: {reason}"
        ) from error


@contextlib.contextmanager
def without_loading_bars() -> Iterator[None]:
    """Within the block, keep `transformers` from printing bars and tables among our lines; download bars stay.

    The caller must check for missing weights, since their table is hidden.
    """
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
    from transformers.utils import logging

    shown, downloads_hidden = logging.is_progress_bar_enabled(), are_progress_bars_disabled()
    verbosity = logging.get_verbosity()
    logging.disable_progress_bar()  # this also hides download bars
    logging.set_verbosity_error()
    if not downloads_hidden:
        enable_progress_bars()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if shown:
            logging.enable_progress_bar()
        if downloads_hidden:
            disable_progress_bars()
