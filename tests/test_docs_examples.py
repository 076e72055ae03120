"""Every Python and shell block of the documentation runs, page by page from top to bottom, as a reader would run it.

A block whose first line is `# name.py` is a file, which all pages may import. What needs a GPU, vLLM or the hub stands below
`<!-- not run: REASON -->`; sessions with their output (`console`) are not run.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import FILE, FILES, PAGES, blocks, name_of

# Commands run in the page's own process, where torch is loaded already.
START = """
from agents.commands.main import main

def rlvr(*arguments):
    try:
        main(arguments)
    except SystemExit as ended:
        assert ended.code == 0, arguments
"""


def as_program(page: Path) -> str:
    """The blocks of a page as one program."""
    lines = []
    for language, code in blocks(page, "python", "sh"):
        if language == "sh":
            for command in code.splitlines():
                program, *arguments = shlex.split(command)
                assert program == "rlvr", f"{name_of(page)} has a command that is not ours: {command}"
                lines.append(f"rlvr(*{arguments!r})")
        elif not FILE.match(code):
            lines.append(code)
    return "\n".join(lines if "rlvr(*" not in "".join(lines) else [START, *lines])


PROGRAMS = {name_of(page): program for page in PAGES if (program := as_program(page))}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_blocks_of_a_page_run(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    for file, source in FILES.items():
        (tmp_path / file).write_text(source, encoding="utf-8")
    paths = os.pathsep.join([str(tmp_path), *(path for path in sys.path if path)])
    done = subprocess.run(
        [sys.executable, "-P", "-W", "error::UserWarning", "-c", PROGRAMS[name]],
        capture_output=True,
        text=True,
        timeout=600,  # ends a hang
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for promised in re.findall(r"^print.*  # (.+)$", PROGRAMS[name], re.MULTILINE):
        assert promised.startswith("the ") or promised in done.stdout


def test_pages_with_blocks_are_found() -> None:
    assert {"how-to/verifier.md", "how-to/agent.md", "tutorial.md", "math.md"} <= set(PROGRAMS)
    assert {"my_verifiers.py", "my_data.py", "my_envs.py"} == set(FILES)
