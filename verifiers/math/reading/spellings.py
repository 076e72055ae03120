"""Removes typography without meaning, and replaces rare spellings of TeX and plain text by usual ones."""

from __future__ import annotations

import re
from collections.abc import Callable

from verifiers.math.vocabulary import FUNCTIONS


def _roman_group(match: re.Match[str]) -> str:
    r"""Write TeX's font switches as commands with an argument: `{\\rm cm}` and `\\rm cm` as `\\mathrm{cm}`."""
    content = match[2] if match[1] else match[4]
    return r"\mathrm" if content is None else rf"\mathrm{{{content}}}"


def _micro_unit(match: re.Match[str]) -> str:
    unit = match["upright"] or (match["plain"] if match["gap"] else None)
    return match[0] if unit is None else rf"\text{{ micro{unit}}}"


def _counted_choices(match: re.Match[str]) -> str:
    r"""Write combinations as `\\binom`, and permutations as a quotient of factorials."""
    upper, lower = match[1] or match[2], match[5] or match[6]
    if "C" in (match[3], match[4]):
        return rf"\binom{{{upper}}}{{{lower}}}"
    return rf"\frac{{({upper})!}}{{(({upper})-({lower}))!}}"


def _all_but(match: re.Match[str]) -> str:
    """Write "all real numbers except ..." as plain TeX, without text commands."""
    return plain_tex(match[1].strip() + " " + match[2].strip(" $"))


def _with_round_brackets(match: re.Match[str]) -> str:
    """Write intervals such as `]0,1[` with round brackets at their open ends."""
    return re.sub(
        r"([][])\s*([^][,;]+[,;][^][,;]+?)\s*([][])",
        lambda piece: f"{piece[1].replace(']', '(')}{piece[2]}{piece[3].replace('[', ')')}",
        match[0],
    )


def _degrees(match: re.Match[str]) -> str:
    """Write degrees with minutes and seconds of arc as a sum in degrees."""
    return rf"({match[1]}+{match[2]}/60+{match[3] or 0}/3600)^\circ"


def _called(match: re.Match[str]) -> str:
    r"""Write an operator before a bracketed argument as a word, as in `\\text{dim}(V)=`, unless it is a known function."""
    name, argument = match[1] or match[2], match[3]
    return match[0] if name in FUNCTIONS else rf"\text{{{name}}}" + (f"({argument})" if argument else "")


def _derivative(match: re.Match[str]) -> str:
    r"""Write a derivative as a name, in which nothing may cancel: `y'` by x, `x'` by t, `f_{xy}` if partial, else `D_{yt}`."""
    function, total = match["function"], match["sign"] == "d"
    by = "".join(letter * int(power or 1) for letter, power in re.findall(_BY, match["by"]))
    if len(by) != int(match["order"] or 1) or (total and len({*by}) > 1):
        return match[0]
    if total and by[0] == ("t" if function in "rsvx" else "x"):
        return f" {function}" + "'" * len(by)
    return rf" D_{{{function}{by}}}" if total else rf" {function}_{{{''.join(sorted(by))}}}"


_BY = r"(?:d|\\partial)\s*([A-Za-z])\s*(?:\^\s*\{?\s*([1-9])\s*\}?\s*)?"
_REMARK = r"(?:\s|\\[ ,;]|\\q?quad(?![A-Za-z])|[,($]|\\text\s?\{){1,12}+"
_NAME = r"([A-Za-z](?:_[0-9])?)"
_IS = r"(?:\s|\\[ ,;]|[$]|\\text\s?\{){1,9}+(?:is\s)?(?:an?|any|some)\s"
_WHERE = r"(?:for|where|with)[\s}$]*"
_REAL, _WHOLE = (rf", \1\\in\\mathbb{{{name}}}" for name in "RZ")
_ORDINAL = r"(?:\\(?:text|mathrm)\s?\{\s*(?:st|nd|rd|th)\s*\}|(?:st|nd|rd|th)\b)"
_MONTHS = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_UPRIGHT_UNIT = r"\\(?:text|mathrm)\s?\{[^{}]*\}(?:\s?\^\s?\{?[0-9]\}?)?"
_ABOUT = r"(?:\\approx(?![A-Za-z])|(?:approximately|approx\.?|about|roughly)\s)"
# A required substring, a pattern of typography or a rare spelling, and its replacement.
_REWRITINGS: list[tuple[str, str, str | Callable[[re.Match[str]], str]]] = [
    ("\\", r"\\(?:hspace|vspace|phantom|color|textcolor|label|tag)\*?\s*\{[^{}]*\}", " "),
    ("\\", r"\\\\\s*\[\s*-?[0-9.]+\s*(?:pt|em|ex|mm|cm)\s*\]", r"\\\\"),
    ("mathbb", r"\\mathbb\s*\{?\s*([EP])\s*\}?", r"\1"),  # a probability or an expectation, not a set
    ("\\", r"\{\s*\\(rm|it|sf)\b\s*([^{}]*)\}|\\(rm|it|sf)\b\s*(?:(?=\{)|([A-Za-z]+))", _roman_group),
    # The name of a value at the start of an answer: its argument gets brackets, and a trace loses its typography.
    (
        "[",
        r"((?:^|[,;]\s*)(?:\\ |\s)*(?:\\(?:operatorname|mathrm|mathsf|mathit|text)\*?\s*\{\s*)?[A-Za-z]{1,4}(?:\s*\})?)"
        r"\s*(?:\\left\s*)?\[([^][=]*?)(?:\\right\s*)?\](?=\s*=)",
        r"\1(\2)",
    ),
    ("nabla", r"^\\nabla\s*([A-Za-z])\s*(?:\([a-z, ]*\))?(?=\s*=)", r"\\text{grad}(\1)"),
    (
        "nabla",
        r"^\\nabla\s*\\(cdot|times)\s*(?:\\(?:mathbf|vec|boldsymbol)\s*)?\{?\s*([A-Za-z])\s*\}?(?=\s*=)",
        lambda match: rf"\text{{{'div' if match[1] == 'cdot' else 'curl'}}}({match[2]})",
    ),
    ("(", r"^\\(?:vec|mathbf|boldsymbol|overrightarrow)\s*\{?\s*([A-Za-z])\s*\}?(?=\s*\([a-z]\)\s*=)", r"\1"),
    ("^", r"^([a-z])\s*\^\s*\{?\s*\(([a-z0-9])\)\s*\}?(?=\s*(?:\([a-z]\))?\s*=)", r"\1_{order \2}"),
    ("tr", r"^tr(?=\s*\(\s*[A-Z][^()=]*\)\s*=)", r"\\text{tr}"),
    (
        "=",
        r"^\\(?:(?:operatorname|mathrm|mathsf|mathit)\*?\s*\{\s*([A-Za-z][a-z]+)\s*\}|(arg|deg|dim|hom|ker|Pr|sup|inf)(?![A-Za-z]))"
        r"(?:\s|\\[,;:! ])*(?:([A-Za-z](?:_\w|')?)(?=\s*=)|(?=(?:\\left\s*)?\([^=()]*(?:\([^=()]*\)[^=()]*)?\)\s*=))",
        _called,
    ),
    ("_", r"\\(?:mathrm|text)\s?\{\s{0,3}([0-9A-Z]{1,20})\s{0,3}\}(?=\s{0,3}_\s{0,3}\{?\s{0,3}[0-9])", r"\1"),
    ("\\not", r"\\not\s{0,3}=", r"\\ne "),
    (
        "\\in",
        r"(?:\s|\\[ ,;:!]|\\quad){0,9}\(\s?([a-z])\s?\\in\s?(?:Z|\\mathbb\s?\{?\s?Z\s?\}?)\s?\)\s?$",
        r", \1\\in\\mathbb{Z}",
    ),
    (
        "(",
        r"(?:\s|\\[ ,;:!]|\\q?quad){1,9}\(\s*([a-z]\s*(?:[<>]|\\(?:[lg]e(?:q|qslant)?|neq?)(?![A-Za-z]))[^()]{1,60})\)\s*$",
        r", \1",
    ),  # a condition in brackets
    *((ending, rf"\b({_MONTHS} [0-9]{{1,2}}){ending}\b", r"\1") for ending in ("st", "nd", "rd", "th")),
    # Read as a unit only if upright, or separate from its number.
    (
        "\\mu",
        r"(?<=[0-9}])(?P<gap>(?:\s|\\[ ,;:]|~|\\text\s?\{\s?\}){0,4})\\mu\s{0,3}"
        r"(?:\\(?:text|mathrm|rm)\s?\{\s{0,3}(?P<upright>m|s|g|[lL]|F|C|A|V|W|Pa|mol)\s{0,3}\}|(?P<plain>[msgF]))(?=\s{0,3}$)",
        _micro_unit,
    ),
    ("\\frac", rf"\\frac\s*\{{\s*({_UPRIGHT_UNIT})\s*\}}\s*\{{\s*({_UPRIGHT_UNIT})\s*\}}", r"\1/\2"),
    # An integral whose differential is in the numerator after the integral sign.
    (
        "\\int",
        r"(\\int\s*(?:[_^]\s*(?:\{[^{}]*\}|\\?\w+)\s*){0,2})\\frac\s*\{([^{}]*?)d\s?([a-z])\s*\}\s*\{((?:[^{}]|\{[^{}]*\})*)\}",
        lambda match: rf"{match[1]}\frac{{{match[2].strip() or 1}}}{{{match[4]}}}\,d {match[3]}",
    ),
    (
        "real",
        r"^all real (?:numbers|values|x)(?: of x)?,? ex(?:cept|cluding)(?: for)? (.+)$",
        r"\\mathbb{R}\\setminus\\{\1\\}",
    ),
    ("real", r"^\\text\s?\{\s?(all real [^{}]*)\}(.*)$", _all_but),
    ("all ", r"^(?:\\text\s?\{\s*)?all(?: real(?: numbers)?)?[\s}$]*(?=[a-z]\s*(?:[<>]|\\[lgn]eq?(?![a-z])))", ""),
    # Symbols with a meaning in words.
    ("const", r"\+\s*(?:\\(?:text|mathrm)\s*\{\s*)?const(?:ant|\.)?\s*\}?\s*$", "+C"),
    ("constant", rf"{_REMARK}(?:for|where)\s(?:(?:some|any|arbitrary|real)\s)*constants?[\s}}$]*{_NAME}[\s$]*$", _REAL),
    ("constant", rf"{_REMARK}{_WHERE}{_NAME}{_IS}(?:arbitrary\s|real\s)*constant\s*\}}?\s*$", _REAL),
    ("integer", rf"{_REMARK}(?:{_WHERE})?{_NAME}{_IS}(?:arbitrary\s)?integer\s*\}}?\s*\)?\s*$", _WHOLE),
    (
        "pm",
        rf"{_REMARK}(?:{_WHERE})?{_NAME}\s*=\s*0\s*,\s*\\pm\s*1\s*,\s*\\pm\s*2\s*,[\s\\]*(?:\\[lc]?dots|\.\.\.)\s*$",
        _WHOLE,
    ),
    ("Omega", r"(?<=[0-9}])(?:\s|\\[,;: ])*\\Omega\s*$", r"\\text{ ohm}"),
    (
        "cup",
        r"([<>]|\\[lg]eq?(?:slant)?(?![A-Za-z]))([^<>]*?)\\cup(?=\s*[A-Za-z]\s*(?:[<>]|\\[lg]e))",
        r"\1\2\\text{ or }",
    ),
    (
        "cap",
        r"([<>]|\\[lg]eq?(?:slant)?(?![A-Za-z]))([^<>]*?)\\cap(?=\s*[A-Za-z]\s*(?:[<>]|\\[lg]e))",
        r"\1\2\\text{ and }",
    ),
    ("_", r"(\\log\s*_\s*)([0-9])([0-9]+)(?=\s*(?:$|[-+=,)}]))", r"\1{\2}\3"),  # TeX reads one digit
    ("]", r"^[^][()]*\].*", _with_round_brackets),  # intervals such as ]0,1[
    ("[", r".*\[[^][()]*$", _with_round_brackets),
    ("(", r"\(\s*or\s+([^()]*)\)$", r" or \1"),
    (
        "(",
        r"(?<=[0-9}%])[\s$]+\([\s$]*([0-9]*\.[0-9]+|[0-9]+/[0-9]+|[0-9.]+(?=\s?\\?%))(\s?\\?%)?[\s$]*\)$",
        r" or \1\2",
    ),  # not a factor
    ("(", rf"\(\s*{_ABOUT}([^()]*)\)$", r"\\approx \1"),
    ("or ", rf",?\s*\bor\s+{_ABOUT}", r"\\approx "),
    ("circ", r"\^\s*\{\s*\\circ\s*\}", r"^\\circ "),
    ("^", rf"(?<=[0-9])\s*\^\s*(?:\{{\s*{_ORDINAL}\s*\}}|{_ORDINAL})", ""),
    (
        "prime",
        r"\^\s*(?:\{\s*((?:\\prime\s*)+)\}|\\prime(?![A-Za-z]))",
        lambda match: "'" * (match[1] or " \\").count("\\"),
    ),
    (
        "\\math",
        r"\\math(?:rm|it)\s*(?:\{\s*d\s*\}|d(?=\s*[A-Za-z](?![A-Za-z])))\s*(?=[A-Za-z\\{}^])",
        "d ",
    ),  # a differential
    # A name, in which nothing may cancel.
    (
        "frac",
        r"\\[dtc]?frac\s*\{\s*(?P<sign>d|\\partial)\s*(?:\^\s*\{?\s*(?P<order>[1-9])\s*\}?\s*)?(?P<function>[A-Za-z])\s*\}"
        r"\s*\{\s*(?P<by>(?:(?P=sign)\s*[A-Za-z]\s*(?:\^\s*\{?\s*[1-9]\s*\}?\s*)?(?:\\,\s*)?){1,4})\}",
        _derivative,
    ),
    ("_", r"(?<![A-Za-z])([cC]_[1-9])([1-9][0-9]?)(?=\s*\^\s*\{?\s*[a-z])", r"\1 \2"),  # TeX reads one digit
    ("base", r"\b([0-9][0-9A-Z]*)\s*(?:\\text\s?\{\s*base\s*\}|\(?base)\s*([0-9]{1,2})\b\)?", r"\1_{\2}"),
    ("m", r"(?<=[0-9])\s*((?:\\(?:text|mathrm)\s?\{\s*)?)([AaPp])\.\s?[Mm]\b\.?", r" \1\2m"),
    ("'", r"([0-9]+)\s*'\s*([0-9.]+)\s*(?:\"|'')", r"\1\\text{ ft }\2\\text{ in}"),
    ("'", r"([0-9]+)\s*\^\s*\{?\s*\\circ\s*\}?\s*([0-9]+)\s*'(?:\s*([0-9]+)\s*'')?", _degrees),
    ("array", r"\\begin\s*\{array\}\s*\{(?:[^{}]|\{[^{}]*\})*\}", r"\\begin{array}"),  # the alignment of columns
    (
        "array",
        r"\\left\s*\\(?:\{|lbrace)\s*\\begin\{array\}(.*?)\\end\s*\{array\}(?=\s*\\right\s*(?:\.|$))",
        r"\\begin{cases}\1\\end{cases}",
    ),
    ("\\right", r"\\left\s*\\(?:\{|lbrace)\s*(?=\\begin)(?=.*\\right\s*(?:\.|$))", ""),
    ("@", "@", r"\\text{ at }"),
    ("\\\\", r"\\\\(?=[A-Za-z]{2})", r"\\"),
    ("{", r"(?<![\\A-Za-z*])\{\s*([-+=:.])\s*\}", r"\1"),
    ("{", r"(?:\\mathbf|(?<![A-Za-z]))\{\s{0,3}(\([A-J]\))\s{0,3}\}", r"\1"),
    ("{", r"(?<![^-+=(,$])\{\s{0,3}([0-9]{1,9})\s{0,3}\}(?=\s{0,3}\\[dtc]?frac)", r"\1"),  # of a mixed number
    # Combinations and permutations with both numbers as scripts: "10 C 3" and "10 P 3".
    (
        "_",
        r"(?<![\w)\]}])(?:\{\s*\})?\s*[_^]\s*(?:\{([^{}]{1,20})\}|(\w))"
        r"\s*(?:\\(?:mathrm|text|rm)\s*\{\s*([CP])\s*\}|([CP]))\s*_\s*(?:\{([^{}]{1,20})\}|(\w))",
        _counted_choices,
    ),
]
_COMPILED = [(sign, re.compile(pattern, re.DOTALL), replacement) for sign, pattern, replacement in _REWRITINGS]


def plain_tex(text: str) -> str:
    """Rewrite a text without typography, and with usual spellings in place of rare ones."""
    for sign, pattern, replacement in _COMPILED:
        if sign in text and not (sign == "\\\\" and "\\begin" in text):  # an environment has rows
            text = pattern.sub(replacement, text)
    return text
