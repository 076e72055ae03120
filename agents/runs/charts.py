"""Small charts as SVG, for a page without scripts: points with intervals, and curves."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

from agents.console.printable import in_one_line

_WIDTH, _HEIGHT = 560, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 150, 14, 40
_ROW = 16
"""Height of a line of the legend."""
_LONGEST = 20
"""Maximum number of letters of a label in the legend; the rest is cut off."""
_COLORS = ("#1b6ca8", "#c8553d", "#3a7d44", "#8a5a9e", "#b8860b", "#4a4a4a", "#0f8b8d", "#d1495b")


@dataclass(frozen=True)
class Line:
    """A curve, or a single point."""

    label: str
    points: Sequence[tuple[float, float]]
    ranges: Sequence[tuple[float, float]] = ()
    """The interval of each point's height; empty to draw none."""


def shown(text: object) -> str:
    """Any text as one line of HTML, without mark-up or unprintable characters, and with its writing direction isolated."""
    return f"<bdi>{html.escape(in_one_line(str(text)))}</bdi>"


@dataclass(frozen=True)
class _Frame:
    """The positions of numbers in a chart."""

    low: float
    high: float
    top: float
    height: int

    @property
    def bottom(self) -> int:
        return self.height - _BOTTOM

    def across(self, x: float) -> float:
        share = math.log(x / self.low) / math.log(self.high / self.low) if self.high > self.low else 0.5
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def up(self, y: float) -> float:
        return self.bottom - max(0.0, y) / self.top * (self.bottom - _TOP)


def chart(lines: Sequence[Line], horizontal: str, vertical: str) -> str:
    """Draw lines over a logarithmic horizontal axis and a vertical axis that begins at 0.

    Args:
        lines: The lines to draw; points that are not finite, or not to the right of 0, are left out.
        horizontal: The label of the horizontal axis.
        vertical: The label of the vertical axis.

    Returns:
        An element `<svg>`; empty if no point is left.
    """
    drawn = [Line(line.label, *_drawable(line)) for line in lines]
    drawn = [line for line in drawn if line.points]
    if not drawn:
        return ""
    widths = [x for line in drawn for x, _ in line.points]
    heights = [y for line in drawn for _, y in [*line.points, *line.ranges]]
    height = max(_HEIGHT, _TOP + _BOTTOM + _ROW * len(drawn))
    frame = _Frame(min(widths), max(widths), max(1e-9, *heights), height)
    parts = [_axes(frame, horizontal, vertical), *(_line(line, frame, number) for number, line in enumerate(drawn))]
    label = html.escape(f"{vertical} by {horizontal}")
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _drawable(line: Line) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    ranges = line.ranges or [(math.nan, math.nan)] * len(line.points)
    kept = [
        (point, ends)
        for point, ends in zip(line.points, ranges, strict=True)
        if point[0] > 0 and all(map(math.isfinite, point))
    ]
    ends = [pair for _, pair in kept if all(map(math.isfinite, pair))]
    return [point for point, _ in kept], ends if len(ends) == len(kept) else []


def _axes(frame: _Frame, horizontal: str, vertical: str) -> str:
    right = _WIDTH - _RIGHT
    marks = [f'<path class="axis" d="M{_LEFT} {_TOP}V{frame.bottom}H{right}"/>']
    for value in (0.0, frame.top / 2, frame.top):
        marks.append(_text(_LEFT - 6, frame.up(value) + 4, f"{value:.2f}", "end"))
    for value, anchor in ((frame.low, "start"), (frame.high, "end"))[frame.low == frame.high :]:
        marks.append(_text(frame.across(value), frame.bottom + 16, f"{value:.4g}", anchor))
    marks.append(_text((_LEFT + right) / 2, frame.height - 6, horizontal, "middle"))
    marks.append(_text(_LEFT, _TOP - 3, vertical, "start"))
    return "".join(marks)


def _line(line: Line, frame: _Frame, number: int) -> str:
    color = _COLORS[number % len(_COLORS)]
    places = [(frame.across(x), frame.up(y)) for x, y in line.points]
    paths = ["M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)] if len(places) > 1 else []
    paths += [
        f"M{x:.1f} {frame.up(low):.1f}V{frame.up(high):.1f}"
        for (x, _), (low, high) in zip(places, line.ranges, strict=False)
    ]
    parts = [f'<path class="line" stroke="{color}" d="{path}"/>' for path in paths]
    top = _TOP + 8 + _ROW * number
    dots = [(x, y, 3) for x, y in places] + [(_WIDTH - _RIGHT + 12, top - 4, 4)]
    parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{color}"/>' for x, y, radius in dots]
    name = in_one_line(line.label)
    parts.append(
        _text(_WIDTH - _RIGHT + 20, top, name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…", "start")
    )
    return "".join(parts)


def _text(x: float, y: float, said: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(in_one_line(said))}</text>'
