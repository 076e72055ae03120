"""Shows tokens of a completion, each with a background color for the token's value."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.color import Color
from rich.style import Style
from rich.text import Text

from agents.console.printable import printable

_RED, _GREEN = (240, 110, 110), (110, 200, 110)
_FAINTEST = 0.05
"""Share below which a token gets no color."""


def colored_tokens(texts: Sequence[str], shares: Sequence[float]) -> Text:
    """Tokens on backgrounds from red (share -1) through no color (0) to green (1); a share of NaN gives no color."""
    text = Text()
    for token, share in zip(texts, shares, strict=True):
        text.append(printable(token), _style(share))
    return text


def advantage_shares(advantages: Sequence[float]) -> list[float]:
    """The advantages as shares of the largest absolute advantage."""
    largest = max((abs(advantage) for advantage in advantages if math.isfinite(advantage)), default=0.0)
    return [advantage / largest if largest and math.isfinite(advantage) else math.nan for advantage in advantages]


def log_probability_shares(log_probabilities: Sequence[float]) -> list[float]:
    """For each token, the negative probability that another token would have been sampled."""
    return [math.exp(min(value, 0.0)) - 1 for value in log_probabilities]


def _style(share: float) -> Style:
    if math.isnan(share) or abs(share) < _FAINTEST:
        return Style.null()
    color = _GREEN if share > 0 else _RED
    red, green, blue = (round(255 + (part - 255) * min(abs(share), 1.0)) for part in color)
    return Style(color=Color.from_rgb(0, 0, 0), bgcolor=Color.from_rgb(red, green, blue))
