"""A Python interpreter in the sandbox that works like a notebook.

A call is a cell, and sees the definitions of earlier cells.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_envs.tools.notebook import notebook
from rlvr_envs.tools.tool import Arguments, ToolUseError
from verifiers.sandbox import ProgramRunner

_NOTEBOOK = inspect.getsource(notebook)


class PythonTool:
    """Runs Python in the sandbox, without files, network or processes, and with limits on time and memory.

    The answer is the cell's output and the value of its last line. The state consists of the earlier cells, which run again at
    each call. So an episode can be forked and resumed, episodes share nothing, and a call takes the time of all cells so far.
    `random` is seeded. A cell that reads the clock sees different values in each run.

    Args:
        timeout_s: Limit on the CPU seconds of a cell. In addition, the cell may wait for the same time.
        memory_mib: Limit on the address space, in MiB.
        packages: Installed packages that cells may import in addition to the standard library.
        max_characters: Maximum length of an answer. A longer answer is cut, and a mark shows the cut.
        isolation: As for `UnitTestVerifier`.

    Raises:
        InvalidArgumentError: If a setting is out of range, or a package is not installed.
    """

    name = "python"
    description = (
        "Runs Python code and answers with what it prints and the value of its last line. "
        "Later calls see what earlier ones defined."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {"code": {"type": "string", "description": "the code to run"}},
        "required": ["code"],
        "additionalProperties": False,
    }

    def __init__(
        self,
        *,
        timeout_s: float = 5.0,
        memory_mib: int = 1024,
        packages: str | Sequence[str] = (),
        max_characters: int = 4000,
        isolation: str = "auto",
    ) -> None:
        self._cell_s = timeout_s
        self.timeout_s = 600.0  # the sandbox has its own limits
        self.max_characters = max_characters
        self._runner = ProgramRunner(memory_mib=memory_mib, packages=packages, isolation=isolation)

    def __call__(self, arguments: Arguments, earlier: Sequence[Arguments]) -> str:
        """Run the cells so far, and answer with the output of the last cell.

        Raises:
            ToolUseError: If the code exceeded a limit, or ended the interpreter.
        """
        cells = [str(call["code"]) for call in (*earlier, arguments)]
        program = f"{_NOTEBOOK}notebook({json.dumps(cells)}, {self._cell_s!r})\n"
        output = self._runner(program, timeout_s=len(cells) * self._cell_s + 1)
        written = output.stdout.strip("\n")
        if output.failure is None:
            return written or "(no output)"
        raise ToolUseError(
            f"{_REASONS.get(output.failure, f'the interpreter ended: {output.failure}')}\n{written}".strip()
        )


_REASONS = {
    "timeout": "the code took too much time",
    "memory": "the code took too much memory",
    "output_limit": "the code printed too much",
    "forbidden": "the code did what the sandbox forbids: there are no files, processes or network",
}
