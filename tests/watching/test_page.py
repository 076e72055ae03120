"""The page of `rlvr watch` in a browser: it follows a run, and shows hostile completions as text; part of `make test-view`."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recorded import ODD
from tests.watching import append, rollouts, run_folder, served

pytest.importorskip("playwright.sync_api", reason="there is no playwright: make test-view installs it")

from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt install chromium")
LONG_MS = 60_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A proxy that is not there stands between the browser and everything but this machine."""
    options = ["--no-sandbox", "--proxy-server=127.0.0.1:9", "--proxy-bypass-list=127.0.0.1"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that must neither complain nor ask anything of another machine."""
    page = browser.new_page(viewport={"width": 1300, "height": 1000})
    page.set_default_timeout(LONG_MS)
    expect.set_options(timeout=LONG_MS)
    complaints: list[str] = []
    requests: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
    page.on("request", lambda request: requests.append(request.url))
    yield page
    page.close()
    assert [
        text for text in complaints if "ERR_CONNECTION_REFUSED" not in text
    ] == []  # the server ends before the page
    assert [url for url in requests if not url.startswith("http://127.0.0.1:")] == []


def test_it_follows_a_run_and_what_a_resumed_run_repeats(page: Page, tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    with served(folder) as server:
        page.goto(server.address)
        expect(page.locator("#runs")).to_contain_text("step 0 of 40")
        expect(page.locator("#curves")).to_contain_text("No training step is finished")
        expect(page.locator("#groups")).to_contain_text("This run has recorded no completions")
        append(folder / "metrics.jsonl", [{"step": step, "reward": step / 4, "odd": 1.0} for step in (1, 2, 3)])
        expect(page.locator("#runs")).to_contain_text("step 3 of 40")
        expect(page.locator("figcaption")).to_have_text(["reward0.5 at 3"])  # the mean of 0.25, 0.5 and 0.75
        assert page.locator("polyline.curve").get_attribute("points").count(",") == 3  # type: ignore[union-attr]
        page.get_by_text("Metrics", exact=True).click()
        page.get_by_label("odd").check()
        expect(page.locator("figcaption")).to_have_text(["reward0.5 at 3", "odd1 at 3"])
        page.locator("#smooth").select_option("1")
        expect(page.locator("figcaption").first).to_have_text("reward0.75 at 3")
        page.locator("figure svg").first.hover(position={"x": 50, "y": 50})
        expect(page.locator("figcaption").first).to_have_text("reward0.25 at 1")
        append(folder / "rollouts.jsonl", rollouts(3, 7, [1.0, 0.0]))
        expect(page.locator("#groups tr")).to_have_text(["step 3p7103 tokens at most"])
        (folder / "metrics.jsonl").write_text('{"step": 1, "reward": 0.25, "warnings": ["warning: <i>look</i>"]}\n')
        (folder / "rollouts.jsonl").write_text("")
        expect(page.locator("#runs")).to_contain_text("step 1 of 40")
        expect(page.locator("#warnings")).to_have_text("warning: <i>look</i>")
        expect(page.locator("#groups")).to_contain_text("This run has recorded no completions")


def test_hostile_completions_are_text(page: Page, tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "<img src=x onerror=alert(1)>")
    columns = {
        "problem_id": "<b>p</b>\x1b[2J",
        "prompt": [{"role": "<s>user</s>", "content": "<img src=http://x.org>"}],
    }
    group = rollouts(1, 0, [0.0] * len(ODD), **columns, detail={"<u>": "</script>"})
    lines = [line | {"completion": text} for line, text in zip(group, ODD, strict=True)]
    lines[0] |= {
        "token_texts": ["<i>a</i>", "\x1b[31m"],
        "token_advantages": [1.0, "NaN"],
        "log_probabilities": [-1, 0],
    }
    append(folder / "rollouts.jsonl", lines)
    append(folder / "metrics.jsonl", [{"step": 1, "<b>name</b>": 1.0, "warnings": ["<script>alert(2)</script>"]}])
    with served(folder) as server:
        page.goto(server.address)
        page.locator("#groups tr").first.click()
        cards = page.locator(".card")
        expect(cards).to_have_count(len(ODD))
        expect(page.locator("#group h2")).to_have_text("<b>p</b>⟨U+001B⟩[2J, step 1")
        expect(page.locator(".turn").first).to_have_text("<s>user</s><img src=http://x.org>")
        expect(cards.nth(0).locator(".token")).to_have_text(["<i>a</i>", "⟨U+001B⟩[31m"])
        for index in range(1, len(ODD) - 1):
            shown = ODD[index]
            for character in "\x00\x07\x1b\u202e\u2028":
                shown = shown.replace(character, f"⟨U+{ord(character):04X}⟩")
            assert cards.nth(index).locator("pre").first.text_content() == shown
        expect(cards.last.locator("pre").first).to_have_text("x" * 20_000)
        cards.last.get_by_role("button").click()
        expect(cards.last.locator("pre").first).to_have_text(ODD[-1])
        page.get_by_text("Metrics", exact=True).click()
        expect(page.locator("#metrics")).to_contain_text("<b>name</b>")
        expect(page.locator("#warnings")).to_contain_text("<script>alert(2)</script>")
        assert page.locator("img, script:not([src='page.js']), b, i, s, u, [src*='x.org']").count() == 0


def test_tokens_are_colored_relative_to_the_group(page: Page, tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    tokens = {"token_texts": ["a", "b", "c"], "log_probabilities": [0.0, -0.7, -9.0]}
    group = rollouts(1, 0, [1.0, 0.0, None], **tokens)
    values = ([1.0, 0.5, 0.0], [-2.0, -0.5, 0.0], [0.0, 0.0, 0.0])
    append(
        folder / "rollouts.jsonl", [line | {"token_advantages": own} for line, own in zip(group, values, strict=True)]
    )
    dialogue = [{"role": "assistant", "content": "search(2)"}, {"role": "tool", "content": "4", "name": "search"}]
    append(folder / "rollouts.jsonl", rollouts(2, 1, [1.0], dialogue=dialogue))

    def shares(card: int) -> list[float]:
        """Each token's opacity, negative where it is red."""
        tokens = page.locator(".card").nth(card).locator(".token")
        colors = tokens.evaluate_all("all => all.map(one => one.style.background)")
        parts = [re.findall(r"--(\w+)\), ([\d.]+)", color)[0] if color else ("good", "0") for color in colors]
        return [float(share) * (1 if name == "good" else -1) for name, share in parts]

    with served(folder) as server:
        page.goto(server.address)
        page.get_by_text("p0").click()
        assert [shares(card) for card in range(3)] == [[0.3, 0.15, 0], [-0.6, -0.15, 0], [0, 0, 0]]
        page.get_by_label("tokens colored by").select_option("log-probability")
        for share, wanted in zip(shares(0), [0.0, 0.5 - 1, -1.0], strict=True):
            assert share == pytest.approx(0.6 * wanted, abs=0.01)
        expect(page.locator(".card").nth(2)).to_contain_text("the pool died")
        page.locator("#filter").select_option("verifier broke")
        expect(page.locator("#groups tr")).to_have_count(1)
        page.locator("#filter").select_option("all")
        page.get_by_text("p1").click()
        expect(page.locator(".card .turn")).to_have_text(["assistantsearch(2)", "tool search4"])


def test_runs_stand_beside_each_other(page: Page, tmp_path: Path) -> None:
    folders = [run_folder(tmp_path / f"seed-{seed}", seed=seed) for seed in (0, 1)] + [
        run_folder(tmp_path / "b", env="b")
    ]
    for index, folder in enumerate(folders):
        append(folder / "metrics.jsonl", [{"step": step, "reward": index * step} for step in range(1, 6)])
        append(folder / "rollouts.jsonl", rollouts(1, index, [0.0]))
    with served(*folders) as server:
        page.goto(server.address)
        expect(page.locator(".swatch")).to_have_count(3)
        colors = page.locator(".swatch").evaluate_all("all => all.map(one => one.style.background)")
        assert (colors[0] == colors[1], colors[1] == colors[2]) == (True, False)
        expect(page.locator("polyline.curve")).to_have_count(2)
        assert len(page.locator("polygon.band").first.get_attribute("points").split()) == 10  # type: ignore[union-attr]
        page.locator("#run").select_option("2")
        expect(page.locator("#groups")).to_contain_text("p2")


def test_it_says_when_the_server_is_gone(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_page()
    with served(run_folder(tmp_path / "run")) as server:
        page.goto(server.address)
        expect(page.locator("#runs")).to_contain_text("step 0")
    expect(page.locator("#note")).to_contain_text("does rlvr watch still run?", timeout=LONG_MS)
    page.close()
