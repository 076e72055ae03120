"""The notebooks of the course as they are stored; `make course` runs them."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs import DOCS

COURSE = DOCS / "course"
DECIMAL = re.compile(r" *[-+]?[0-9]+\.[0-9]+(?:e[-+]?[0-9]+)?")


def code_cells(notebook: Path) -> list[dict[str, Any]]:
    """Those with code, which a notebook stores with what they printed."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("notebook", sorted(COURSE.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_stored_with_its_outputs_and_still_prints_them(
    notebook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Site and GitHub show what is stored: `docs/course/run.py --write` stores it.

    Its cells run in order, as in a notebook, but in this process. Decimals, which other kernels round otherwise, and figures
    are not compared.
    """
    cells = code_cells(notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]
    solution = cells[-1]
    assert solution["source"][0] == "# Solution\n"
    assert solution["metadata"] == {"jupyter": {"source_hidden": True}, "tags": ["hide-input"]}
    assert "".join(solution["outputs"][0]["text"]).startswith("Right")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    monkeypatch.chdir(COURSE)
    monkeypatch.syspath_prepend(COURSE)
    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        for cell in cells:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile("".join(cell["source"]), notebook.name, "exec"), names)
            stored = "".join("".join(output.get("text", "")) for output in cell["outputs"])
            assert DECIMAL.sub("#", printed.getvalue()) == DECIMAL.sub("#", stored), "".join(cell["source"])
    finally:
        pyplot.close("all")
