"""The entry points of docs/plugging-in.md work with the files that its pages write."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import rlvr_envs
import verifiers
from rlvr_envs import registration
from tests.docs import DOCS, FILES
from verifiers import registry


def test_the_entry_points_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name, source in FILES.items():
        (tmp_path / name).write_text(source, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
    [text] = re.findall(r"```toml\n(.*?)```", (DOCS / "plugging-in.md").read_text(encoding="utf-8"), re.DOTALL)
    groups = tomllib.loads(text)["project"]["entry-points"]
    points = {group: [EntryPoint(*pair, group) for pair in named.items()] for group, named in groups.items()}
    for module in (registry, registration):
        monkeypatch.setattr(module, "entry_points", lambda group: points.get(group, []))
    assert verifiers.verify("ends-right", "It is 4.", 4).outcome == "correct"
    assert rlvr_envs.environment_class("doubles").__name__ == "Doubles"
    with pytest.raises(verifiers.UnknownNameError, match=r"unknown environment 'dubles'.*doubles"):
        rlvr_envs.environment_class("dubles")
