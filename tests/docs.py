"""The pages of docs/, for the tests that read them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.M | re.S
)
QUOTED = re.compile(r"^````\w*\n.*?^````$", re.M | re.S)
"""A block of text, in which a shorter fence stands for itself."""
FILE = re.compile(r"# (\w+\.py)\n")


def name_of(page: Path) -> str:
    """A page's path below docs/."""
    return page.relative_to(DOCS).as_posix()


def blocks(page: Path, *languages: str) -> list[tuple[str, str]]:
    """Language and code of the blocks that are to run."""
    matches = BLOCK.finditer(QUOTED.sub("", page.read_text(encoding="utf-8")))
    return [
        (block["language"], block["code"])
        for block in matches
        if block["language"] in languages and not block["reason"]
    ]


FILES = {match[1]: code for page in PAGES for _, code in blocks(page, "python") if (match := FILE.match(code))}
"""Those blocks that are files, which all pages may import."""


def extension(name: str) -> ModuleType:
    """A module of docs/_ext."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type] # the file is there
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module
