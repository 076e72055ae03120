"""Run the notebooks of the course, as `make course` does: each must run to its end and check its own exercise.

With `--write` the outputs are stored in the notebooks, where GitHub and the site show them.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from nbclient import NotebookClient

COURSE = Path(__file__).parent
TIMEOUT = 120
"""Seconds for one cell. It is to end a notebook that hangs; the slowest takes a few."""


def printed(cell: nbformat.NotebookNode) -> str:
    """What a cell wrote."""
    return "".join(output.get("text", "") for output in cell.get("outputs", ()))


def faults(notebook: nbformat.NotebookNode) -> list[str]:
    """What is wrong with a notebook that has run."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]
    solutions = [cell for cell in cells if cell.source.startswith("# Solution")]
    exercises = [cell for cell in cells if cell.source.splitlines()[-1].startswith("check(") and cell not in solutions]
    wrong = [f"stderr: {output.text}" for output in outputs if output.get("name") == "stderr"]
    if not any("image/png" in output.get("data", {}) for output in outputs):
        wrong.append("there is no figure")
    if not solutions or not all(printed(cell).startswith("Right") for cell in solutions):
        wrong.append("a solution is missing, or its check does not accept it")
    if not exercises or not all(printed(cell).startswith("Not yet") for cell in exercises):
        wrong.append("an exercise is missing, or its check accepts an answer that nobody gave")
    return wrong


def run(path: Path, write: bool) -> list[str]:
    """Run one notebook from its folder, and return its faults."""
    notebook = nbformat.read(path, as_version=4)
    started = time.monotonic()
    client = NotebookClient(
        notebook, timeout=TIMEOUT, resources={"metadata": {"path": str(COURSE)}}, record_timing=False
    )
    client.execute()  # raises at the first cell that fails
    print(f"{path.name}: {time.monotonic() - started:.1f} s", flush=True)
    if write:
        nbformat.write(notebook, path)
    return [f"{path.name}: {fault}" for fault in faults(notebook)]


def main() -> None:
    """Run all notebooks, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, help="Notebooks to run; all of them by default.")
    parser.add_argument("--write", action="store_true", help="Store the outputs in the notebooks.")
    options = parser.parse_args()
    paths = options.notebooks or sorted(COURSE.glob("*.ipynb"))
    with ThreadPoolExecutor(2) as pool:
        found = [fault for wrong in pool.map(lambda path: run(path, options.write), paths) for fault in wrong]
    if found or not paths:
        raise SystemExit("\n".join(found) or f"no notebooks in {COURSE}")


if __name__ == "__main__":
    main()
