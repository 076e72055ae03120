"""OpenRLHF's own client asks a real server. Its package is loaded without its `__init__`s, which need a GPU's libraries."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serving.service import serving


@pytest.fixture(scope="module")
def client_class() -> Iterator[Any]:
    """OpenRLHF's `SingleTurnAgentExecutor`, from the file that has it."""
    spec = importlib.util.find_spec("openrlhf")
    folder = Path(spec.submodule_search_locations[0])
    for name, path in (("openrlhf", folder), ("openrlhf.utils", folder / "utils")):
        package = types.ModuleType(name)
        package.__path__ = [str(path)]
        sys.modules[name] = package
    yield importlib.import_module("openrlhf.utils.agent").SingleTurnAgentExecutor
    for name in [name for name in sys.modules if name.partition(".")[0] == "openrlhf"]:
        del sys.modules[name]


def test_its_client_reads_the_rewards(client_class: Any) -> None:
    with serving(end_of_text=["<e>"]) as client:
        remote = client_class(f"http://127.0.0.1:{client.port}/get_reward")
        (answer,) = asyncio.run(remote._fetch_rewards_via_http(["2+2=4<e>"], ["2+2="], ["4"]))
    assert answer["rewards"] == [1.0]
    assert answer["scores"] == [1.0]


def test_its_client_gives_up_where_the_verifier_breaks(client_class: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(seconds: float) -> None:
        pass

    with serving() as client:
        remote = client_class(f"http://127.0.0.1:{client.port}/get_reward")
        without_waiting = types.SimpleNamespace(**vars(asyncio) | {"sleep": at_once})
        monkeypatch.setattr(sys.modules["openrlhf.utils.agent"], "asyncio", without_waiting)
        with pytest.raises(RuntimeError, match="Request error for 5 times"):
            asyncio.run(remote._fetch_rewards_via_http(["2+2=break"], ["2+2="], ["4"]))
        assert client.raw("GET", "/health")[1]["verifier_errors"] == 5
