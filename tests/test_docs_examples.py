"""Every Python and shell block of the documentation runs, page by page from top to bottom, as a reader would run it.

A block whose first line is `# name.py` is a file, which all pages may import. What needs a GPU, vLLM or the hub stands below
`<!-- not run: REASON -->`; sessions with their output (`console`) are not run.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import shlex
import sys
import warnings
from pathlib import Path
from types import ModuleType

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


# Each page has a process of its own; what all of them import is imported once.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["agents.commands.main", "torch", "transformers.models.qwen2.modeling_qwen2"])


def run(program: str, folder: Path) -> None:
    """Run a page's program as `python -c` in a folder would, with its output in the file `output`."""
    output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    warnings.simplefilter("error", UserWarning)
    page = sys.modules["__main__"] = ModuleType("__main__")
    exec(compile(program, "page", "exec"), page.__dict__)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_blocks_of_a_page_run(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    for file, source in FILES.items():
        (tmp_path / file).write_text(source, encoding="utf-8")
    process = PROCESSES.Process(target=run, args=(PROGRAMS[name], tmp_path))
    process.start()
    process.join(600)  # ends a hang
    process.kill()
    output = (tmp_path / "output").read_text(encoding="utf-8")
    assert process.exitcode == 0, output
    for promised in re.findall(r"^print.*  # (.+)$", PROGRAMS[name], re.MULTILINE):
        assert promised.startswith("the ") or promised in output


def test_pages_with_blocks_are_found() -> None:
    assert {"how-to/verifier.md", "how-to/agent.md", "tutorial.md", "math.md"} <= set(PROGRAMS)
    assert {"my_verifiers.py", "my_data.py", "my_envs.py", "my_prompts.py", "rewards.py"} == set(FILES)
