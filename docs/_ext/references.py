"""Names of ours in pages and docstrings: a link where Sphinx has a target, else code; a warning where there is no such name."""

from __future__ import annotations

import pkgutil
import re
from typing import Any

from docutils import nodes

OURS = re.compile(r"(?:verifiers|rlvr_envs|agents)(?:\.\w+)+")
_IN_CODE = re.compile(rf"(?<![`}}])`({OURS.pattern})`(?!`)")
# The page benchmarks.md includes that file, which is outside of docs/.
_BENCHMARKS = re.compile(r"\]\(\.\./((?:\.\./)*)benchmarks/README\.md")
_FENCE = re.compile(r"^(`{3,}).*?^\1`*$", re.MULTILINE | re.DOTALL)


def link(text: str) -> str:
    """A page of Markdown in which names of ours in code are references, but for what stands in fences."""
    pieces, end = [], 0
    for fence in _FENCE.finditer(text):
        pieces += [_IN_CODE.sub(r"{py:obj}`\1`", text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*pieces, _IN_CODE.sub(r"{py:obj}`\1`", text[end:])])


def exists(name: str) -> bool:
    """Whether a dotted name is a module or what one has."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def _on_source_read(app: Any, docname: str, source: list[str]) -> None:
    source[0] = _BENCHMARKS.sub(r"](\1benchmarks.md", link(source[0]))


def _resolve(app: Any, env: Any, node: Any, content: nodes.Node) -> nodes.Node | None:
    """What stands for a reference that Sphinx can't resolve; None has Sphinx warn of it."""
    target = node["reftarget"]
    if exists(target) if OURS.fullmatch(target) else node.get("reftype") == "obj":
        return nodes.literal(target, content.astext())
    return None


def setup(app: Any) -> dict[str, bool]:
    """Register the handlers with Sphinx."""
    app.connect("source-read", _on_source_read)
    app.connect("missing-reference", _resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
