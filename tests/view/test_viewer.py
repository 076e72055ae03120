"""`rlvr view` in a browser: 10,000 rows, hostile completions as text, and nothing that leaves this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.recorded import ODD
from tests.view.conftest import SAMPLES

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt install chromium")
LONG_MS = 60_000
OPTIONAL = "/api/flow"
"""What the viewer asks its own server for and goes without where it is not there."""


@pytest.fixture(scope="module")
def address(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The viewer as the command starts it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = "from rlvr_envs.console import main; main()"
    home = tmp_path_factory.mktemp("home")
    environment = os.environ | {"HOME": str(home), "XDG_DATA_HOME": str(home)}  # where Inspect notes its processes
    command = [sys.executable, "-c", program, "view", str(run_folder), "--port", str(port)]
    with subprocess.Popen(command, env=environment, cwd=home) as viewer:
        try:
            wait_for(f"http://127.0.0.1:{port}/", viewer)
            yield f"http://127.0.0.1:{port}/"
        finally:
            viewer.terminate()


def wait_for(address: str, viewer: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert viewer.poll() is None, "the viewer ended"
        try:
            urllib.request.urlopen(address, timeout=5).close()
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.2)
        else:
            return
    raise AssertionError("the viewer did not start")


@pytest.fixture(scope="module")
def page(address: str) -> Iterator[Page]:
    """The table of samples; a proxy that is not there stands between the browser and everything but this machine."""
    options = ["--no-sandbox", "--proxy-server=127.0.0.1:9", "--proxy-bypass-list=127.0.0.1"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        page = browser.new_page(viewport={"width": 1400, "height": 800})
        requests: list[str] = []
        complaints: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console", lambda said: complaints.append(f"{said.text} {said.location}") if said.type == "error" else None
        )
        page.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
        page.goto(address)
        yield page
        page.wait_for_timeout(1000)
        browser.close()
    assert [url for url in requests if not url.startswith((address, "data:", "blob:"))] == []
    assert len(requests) > 20
    assert [text for text in complaints if OPTIONAL not in text] == []


def open_sample(page: Page, address: str, name: str, epoch: int, tab: str = "messages") -> None:
    page.goto(f"{address}#/tasks/inspect.eval/samples/sample/{urllib.parse.quote(name, safe='')}/{epoch}/{tab}")
    expect(page.get_by_text(f"Sample {name} (Epoch {epoch})")).to_be_visible(timeout=LONG_MS)


def test_ten_thousand_rows_are_a_table(page: Page, address: str) -> None:
    page.goto(f"{address}#/tasks/inspect.eval/samples")
    expect(page.get_by_text(f"{SAMPLES} Samples", exact=True)).to_be_visible(timeout=LONG_MS)
    expect(page.get_by_text("runs/<b>grpo</b>").first).to_be_visible()
    for outcome in ("correct", "incorrect", "no_answer", "timeout", "scored", "verifier_error"):
        expect(page.get_by_text(outcome, exact=True).first).to_be_visible()


@pytest.mark.parametrize("number", range(len(ODD)))
def test_a_completion_is_shown_as_text(page: Page, address: str, number: int) -> None:
    open_sample(page, address, "p0", number + 1)
    shown = ODD[number][:200_000].encode("utf-8", "backslashreplace").decode()
    for character in "\x00\x07\x1b\u202e\u2028":
        shown = shown.replace(character, f"⟨U+{ord(character):04X}⟩")
    expect(page.locator("body")).to_contain_text(" ".join(shown.split()), timeout=LONG_MS)
    assert page.locator("[src*='example.com'], [href*='example.com']").count() == 0


def test_a_name_is_no_address_and_an_errored_sample_an_error(page: Page, address: str) -> None:
    open_sample(page, address, "a/b c?d#e%41&é<b>", 1)
    expect(page.get_by_text("Problem 1: so that leaves").first).to_be_visible()
    open_sample(page, address, "p0", 6, "error")
    expect(page.get_by_text("the pool died").first).to_be_visible()
