"""Formulas as MathML, which browsers draw by themselves: MathJax would be fetched from elsewhere by every reader."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

_LOGGER = logging.getLogger(__name__)


def _mathml(node: nodes.Node, block: bool) -> str:
    try:
        return str(tex2mathml(node.astext(), as_block=block))
    except MathError as error:
        _LOGGER.warning("formula: %s", error, location=node)
        return ""


def visit_inline(writer: Any, node: nodes.Node) -> None:
    """Write a formula within a line."""
    writer.body.append(_mathml(node, block=False))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.Node) -> None:
    """Write a formula on lines of its own."""
    writer.body.append(f'<div style="overflow-x: auto; padding: 0.5em 0">{_mathml(node, block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer with Sphinx."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
