"""Names on the hub: asked for once, and not where the hub is not needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

huggingface_hub = pytest.importorskip("huggingface_hub", reason="the hub's library comes with transformers")

from verifiers.hub import ask_once  # noqa: E402 - after the check whether its library is there


class Unreachable:
    """Stands in for `huggingface_hub.HfApi` without a connection, and counts who asks."""

    asked = 0

    def repo_info(self, name: str, **_: Any) -> None:
        type(self).asked += 1
        raise ConnectionError("[Errno -2] Name or service not known\nTry again.")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[Unreachable]:
    api = type("Api", (Unreachable,), {"asked": 0})
    monkeypatch.setattr(huggingface_hub, "HfApi", api)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return api


@pytest.mark.parametrize("kind", ["model", "dataset"])
def test_an_unreachable_hub_is_asked_once_and_told_in_one_line(hub: type[Unreachable], kind: Any) -> None:
    with pytest.raises(OSError, match=r"no such folder here, .* can't be reached: \[Errno -2\] Name or service not"):
        ask_once("someone/something", kind)
    assert hub.asked == 1


@pytest.mark.parametrize("name", ["a b/c", "/no/such/folder", "", "one/two/three"])
def test_what_can_be_no_name_is_told_without_asking(hub: type[Unreachable], name: str) -> None:
    with pytest.raises(OSError, match="no name on the hub is spelled like that"):
        ask_once(name, "model")
    assert hub.asked == 0


def test_a_folder_and_what_the_cache_holds_need_no_hub(hub: type[Unreachable], tmp_path: Path) -> None:
    (tmp_path / "hub" / "models--someone--something").mkdir(parents=True)
    ask_once(tmp_path, "model")
    ask_once("someone/something", "model")
    assert hub.asked == 0
    with pytest.raises(OSError, match="can't be reached"):  # a data set of that name is another thing
        ask_once("someone/something", "dataset")
