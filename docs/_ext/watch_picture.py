"""Draws docs/how-to/watch.png, the page of `rlvr watch` over small runs: `python docs/_ext/watch_picture.py RUN RUN ...`.

Needs playwright and Chromium, as `make test-view` does.
"""

from __future__ import annotations

import shutil
import sys
import threading
from pathlib import Path

from playwright.sync_api import sync_playwright

from agents.loopback import listen
from agents.watching.runs import WatchedRun
from agents.watching.server import WatchServer

PICTURE = Path(__file__).parents[1] / "how-to" / "watch.png"


def main(folders: list[str]) -> None:
    """Draw the page of some runs."""
    with listen("127.0.0.1", 0) as listener, sync_playwright() as playwright:
        server = WatchServer(listener, [WatchedRun(Path(folder)) for folder in folders], "picture")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 1000})
        page.goto(server.address)
        page.get_by_text("Metrics", exact=True).click()
        shown = page.locator("#metrics label", has=page.locator(":checked")).all_inner_texts()
        for name in (name.strip() for name in shown):
            if name.startswith(("problems/", "eval_best/", "frac_all", "grad_norm", "tokens_per_s")):
                page.get_by_label(name, exact=True).uncheck()
        page.get_by_text("Metrics", exact=True).click()
        page.locator("#filter").select_option("solved by one")
        page.wait_for_timeout(1000)  # until the list is that of the filter
        page.locator("#groups tr").first.click()
        page.locator(".card").first.wait_for()
        page.screenshot(path=PICTURE, full_page=True)
        browser.close()
        server.shutdown()


if __name__ == "__main__":
    main(sys.argv[1:])
