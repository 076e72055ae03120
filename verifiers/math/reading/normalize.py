"""Cleans answer text before parsing: Unicode, wrappers of Markdown and TeX, and a normal form for equality checks."""

from __future__ import annotations

import functools
import re
import unicodedata

_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ", "0123456789+-=()ni", strict=True))
_SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
_FRACTIONS = {
    "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5", "⅗": "3/5", "⅘": "4/5",
    "⅙": "1/6", "⅚": "5/6", "⅐": "1/7", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8", "⅑": "1/9", "⅒": "1/10",
}  # fmt: skip
_COMMANDS = {
    "×": "times", "·": "cdot", "⋅": "cdot", "∙": "cdot", "÷": "div", "√": "sqrt", "∛": "sqrt[3]", "∜": "sqrt[4]",
    "∞": "infty", "≤": "le", "⩽": "le", "≥": "ge", "⩾": "ge", "≠": "ne", "≈": "approx", "≡": "equiv", "∈": "in",
    "∪": "cup", "∩": "cap", "∖": "setminus", "∅": "emptyset", "⌀": "emptyset",
    "→": "to", "∨": "lor", "∧": "land", "¬": "neg", "±": "pm", "∓": "mp", "°": "circ@",
    "º": "circ@", "˚": "circ@", "⌊": "lfloor", "⌋": "rfloor", "⌈": "lceil", "⌉": "rceil", "⟨": "langle",
    "⟩": "rangle", "∑": "sum", "∏": "prod", "ℝ": "mathbb{R}", "ℤ": "mathbb{Z}", "ℕ": "mathbb{N}", "ℚ": "mathbb{Q}",
    "ℂ": "mathbb{C}", "∠": "angle", "△": "triangle", "π": "pi", "𝜋": "pi", "α": "alpha", "β": "beta", "γ": "gamma",
    "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta", "θ": "theta", "κ": "kappa", "λ": "lambda", "μ": "mu",
    "ν": "nu", "ξ": "xi", "ρ": "rho", "σ": "sigma", "τ": "tau", "φ": "phi", "ϕ": "phi", "χ": "chi", "ψ": "psi",
    "ω": "omega", "Δ": "Delta", "Γ": "Gamma", "Σ": "Sigma", "Ω": "Omega", "Φ": "Phi", "Θ": "Theta",
}  # fmt: skip
_PLAIN = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "‒": "-", "﹣": "-", "－": "-", "∶": ":", "∕": "/", "⁄": "/",
    "∗": "*", "“": '"', "”": '"', "‘": "'", "’": "'", "′": "'", "…": "...", "∣": "|", "，": ",", "。": ".", "、": ",",
    "；": ";", "：": ":", "（": "(", "）": ")", "\u200b": "", "\u200c": "", "\u200d": "", "\u2060": "", "\ufeff": "",
    "\u00ad": "", "\u202f": "\\,", "\u2009": "\\,", "\u00a0": " ", "\u2062": " ", "\u2061": "",
}  # fmt: skip
_TRANSLATION = str.maketrans(
    _PLAIN
    | {sign: f"\\{command} " if "@" not in command else "^\\circ " for sign, command in _COMMANDS.items()}
    | {sign: f"\\unicodefrac{{{value.replace('/', '}{')}}}" for sign, value in _FRACTIONS.items()}
)
_SUPERSCRIPT_RUN = re.compile(f"[{''.join(_SUPERSCRIPTS)}]+")
_SUBSCRIPT_RUN = re.compile(f"[{''.join(_SUBSCRIPTS)}]+")
_ROOT_DEGREE = re.compile(r"([²³⁴])√")
_ROOT_OPERAND = re.compile(r"([√∛∜])\s*([0-9.]+|[A-Za-zπ])")


def to_ascii(text: str) -> str:
    """Write Unicode mathematics as TeX; plain ASCII text is returned unchanged."""
    if text.isascii():
        return text
    text = _ROOT_DEGREE.sub(lambda match: {"²": "√", "³": "∛", "⁴": "∜"}[match[1]], text)
    text = _ROOT_OPERAND.sub(r"\1{\2}", text)
    text = _SUPERSCRIPT_RUN.sub(lambda match: "^{" + "".join(_SUPERSCRIPTS[sign] for sign in match[0]) + "}", text)
    text = _SUBSCRIPT_RUN.sub(lambda match: "_{" + "".join(_SUBSCRIPTS[sign] for sign in match[0]) + "}", text)
    text = text.translate(_TRANSLATION)
    return text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_TRANSLATION)


_DELIMITERS = re.compile(r"(?<!\\)\\[()\[\]]")
_WRAPPERS = ("$$", "$", "**", "__", "```", "`", '"', "'", "*")
_TRAILING = " \t\r\n.,;:✓✔✅☑\ufe0f"


def unwrap(text: str) -> str:
    """Remove wrappers of an answer: spaces, final punctuation, mathematics delimiters, Markdown emphasis."""
    text = _DELIMITERS.sub("$", text).strip() if "\\" in text else text.strip()
    while True:
        shorter = _unwrap_once(text)
        if shorter == text:
            return text
        text = shorter


def _unwrap_once(text: str) -> str:
    for mark in _WRAPPERS if text.startswith(_WRAPPERS) else ():
        inner = text.removeprefix(mark).removesuffix(mark)
        if len(inner) == len(text) - 2 * len(mark) > 0 and mark not in inner and not inner.endswith("\\"):
            return inner.strip()
    return _without_final_punctuation(text)


def _without_final_punctuation(text: str) -> str:
    shorter = text.rstrip(_TRAILING)
    if shorter.endswith("quad"):
        shorter = shorter.removesuffix("\\quad").removesuffix("\\qquad").rstrip(_TRAILING)
    if shorter.endswith("\\"):  # the last sign was a TeX spacing command
        return shorter.rstrip("\\ ")
    return text if text.endswith("...") else shorter


_TYPOGRAPHY = re.compile(
    r"\\(?:left|right|bigl|bigr|Bigl|Bigr|big|Big|displaystyle|textstyle|limits)(?![A-Za-z])"
    r"|\\[!,;: ]|\\q?quad(?![A-Za-z])|(?<!\\)\$"
)
_FRACTION_STYLE = re.compile(r"\\[dtc]frac(?![A-Za-z])")
_TEXT = re.compile(r"\\(?:text(?:bf|rm|it|sf|tt|normal)?|mbox|hbox|mathrm)\s*\{([^{}\\]*)\}")
_SPACES = re.compile(r"\s+")
_LOOSE_SPACE = re.compile(r"(?<![A-Za-z0-9.,]) | (?![A-Za-z0-9.])")


def normal_text(text: str) -> str:
    """A normal form: answers that differ only in typography get equal strings.

    Different answers never get the same form: a space between two letters or digits, or after a comma, is kept.
    """
    if text.isalnum() and text.isascii():
        return text
    return (_normal_cached if len(text) <= _CACHED_LENGTH else _normal)(text)


def _normal(text: str) -> str:
    text = unwrap(to_ascii(text))
    if "\\" in text or "$" in text:
        text = _TEXT.sub(r" \1 ", text)
        text = _TYPOGRAPHY.sub(" ", text.replace("\\!", ""))
        text = _FRACTION_STYLE.sub(r"\\frac", text)
    return _LOOSE_SPACE.sub("", _SPACES.sub(" ", text.strip()))


_CACHED_LENGTH = 200
# Cached, since an answer is both read and shown in its verdict's detail, and so is the gold for each completion of a problem.
_normal_cached = functools.lru_cache(maxsize=4096)(_normal)


_WORD = re.compile(r"[^\W_]+(?:(?:['.]|-(?=[0-9]))[^\W_]+)*")
_DIGIT = re.compile(r"[0-9]")
_ORDINAL = re.compile(r"(?<=[0-9])(?:\s?\^\s?\{?\s?)?(?:st|nd|rd|th)\b")
_ARTICLE = re.compile(r"\b(?:a|an|the)\s+(?=\w)")


def folded_words(text: str) -> str:
    """Prose without case, articles, punctuation and TeX text commands."""
    text = _ORDINAL.sub("", _TEXT.sub(r" \1 ", unicodedata.normalize("NFKC", text)))
    words = _WORD.findall(_ARTICLE.sub(" ", text.casefold()))
    return " ".join(word if _DIGIT.search(word) else word.replace(".", "") for word in words)
