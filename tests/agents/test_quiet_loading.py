"""transformers draws no bars of its own between ours, and those of downloads stay as the user set them."""

from __future__ import annotations

from pathlib import Path

import pytest
from huggingface_hub.utils import are_progress_bars_disabled
from transformers.utils import logging

from agents.policies.transformers.loading import load_model, save_model, tiny_model


def test_loading_and_saving_are_quiet_and_leave_the_settings_as_they_were(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logging.enable_progress_bar()
    save_model(tmp_path, tiny_model(16, layers=1, hidden_size=16, heads=2), None)
    load_model(tmp_path)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""
    assert logging.is_progress_bar_enabled()
    assert not are_progress_bars_disabled()
