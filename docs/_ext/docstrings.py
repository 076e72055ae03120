"""Docstrings write headings, fences, tables and bars as Markdown does; autodoc reads reStructuredText."""

from __future__ import annotations

import re
from typing import Any

_ROW = re.compile(r"\| (.*) \|")
_CODE_OR_BAR = re.compile(r"(`[^`]*`)|\|")


def to_restructured_text(lines: list[str]) -> list[str]:
    """The same lines with what Markdown writes otherwise; code and indented blocks stay as they are."""
    done: list[str] = []
    in_fence = in_table = in_block = False
    last = ""
    for line in lines:
        text = line.strip()
        if text:
            starts_block = done[-1:] == [""] and line.startswith("    ") and not last.startswith((" ", "-", "*"))
            in_block = line.startswith("    ") and (in_block or starts_block)
            done += ["::", ""] if starts_block and not in_fence else []
            last = line
        row = None if in_fence else _ROW.fullmatch(text)
        if text.startswith("```"):
            in_fence = not in_fence
            done += [f".. code-block:: {text[3:] or 'text'}", ""] if in_fence else [""]
        elif in_fence:
            done.append(f"   {line}")
        elif row is not None:
            done += [] if in_table else [".. list-table::", "   :header-rows: 1", ""]
            done += _table_row(row[1])
        elif re.fullmatch(r"\|[-|]+\|", text):
            pass  # the rule below a table's head
        elif text.startswith("## "):
            done += [f".. rubric:: {text[3:]}", ""]
        else:
            done.append(line if in_block else _without_substitutions(line))
        in_table = row is not None or (in_table and text.startswith("|"))
    return done


def _table_row(row: str) -> list[str]:
    cells = [_without_substitutions(cell.strip()) for cell in row.split(" | ")]
    return [f"   {'*' if index == 0 else ' '} - {cell}" for index, cell in enumerate(cells)]


def _without_substitutions(line: str) -> str:
    return _CODE_OR_BAR.sub(lambda match: match[1] or "\\|", line)


def _on_docstring(app: Any, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    lines[:] = to_restructured_text(lines)
    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]  # else napoleon takes what stands before a colon in the first line for a type


def setup(app: Any) -> dict[str, bool]:
    """Register the handler with Sphinx."""
    app.connect("autodoc-process-docstring", _on_docstring, priority=100)  # before napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
