"""Draws docs/leaderboard.png, the page of a leaderboard: `python docs/_ext/leaderboard_picture.py runs/bench/NAME`.

Needs Chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

PICTURE = Path(__file__).parents[1] / "leaderboard.png"
WIDTH, HEIGHT = 1000, 1290
"""Size of the window in pixels; what is below it is not in the picture."""


def main(folder: str) -> None:
    """Draw the page of a bench."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.exit("there is no Chromium: apt install chromium")
    page = (Path(folder) / "leaderboard.html").resolve()
    options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={WIDTH},{HEIGHT}"]
    subprocess.run([browser, *options, f"--screenshot={PICTURE}", page.as_uri()], check=True)


if __name__ == "__main__":
    main(sys.argv[1])
