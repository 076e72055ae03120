"""The words and commands that the reader of mathematical text recognises."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTIONS = _words(
    "sin cos tan cot sec csc arcsin arccos arctan arccot arcsec arccsc asin acos atan sinh cosh tanh coth sech "
    "csch arcsinh arccosh arctanh asinh acosh atanh log ln lg exp sqrt cbrt abs floor ceil max min gcd lcm det "
    "binom sgn cis"
)
"""Functions with a known meaning, in LaTeX and in plain text."""
GREEK = _words(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau "
    "upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega ell hbar aleph imath jmath"
)
"""Commands that denote one symbol."""
NAMES = {
    "pi": "pi",
    "infinity": "infty",
    "oo": "infty",
    "inf": "infty",
    "infty": "infty",
    "theta": "theta",
    "emptyset": "emptyset",
}
"""The command for each plain-text name."""
GRAMMAR_WORDS = _words(
    "and or is in of to at by for if on per mod an the no yes not all any one two six ten am pm sq cu st nd rd th "
    "usd eur gbp inr jpy pct"
)
"""Words of two or three letters that the grammar knows, or that join sentences; other short runs are products of symbols."""
TEXT_COMMANDS = _words("text emph mbox textbf textrm textit textsf texttt hbox textnormal")
"""Commands whose argument is prose."""
ROMAN_COMMANDS = _words("mathrm operatorname mathsf mathit")
"""Commands whose argument is an upright name: a unit, a function, a symbol."""
SILENT_COMMANDS = _words(
    "left right middle bigl bigr Bigl Bigr biggl biggr Biggl Biggr big Big bigg Bigg displaystyle textstyle scriptstyle "
    "limits nolimits mathbf boldsymbol bm bold boxed fbox underline mathopen mathclose quad qquad thinspace "
    "enspace "
    "therefore blacksquare checkmark qedsymbol "
    "large Large LARGE huge Huge small tiny normalsize rm bf it sf"
)
"""Commands that only change the typography."""
BOLD_COMMANDS = _words("mathbf boldsymbol bm bold")
"""Silent commands that set letters in bold."""
COMPLEX_NAMES = frozenset("zw")
"""Letters that denote complex numbers if there is a conjugate or an absolute value."""
_SYNONYMS = {
    "le": "leq leqslant",
    "ge": "geq geqslant",
    "ne": "neq",
    "frac": "dfrac tfrac cfrac nicefrac sfrac",
    "binom": "dbinom tbinom",
    "emptyset": "varnothing",
    "in": "isin",
    "setminus": "backslash smallsetminus",
    "cdot": "ast bullet",
    "circ": "degree",
    "{": "lbrace",
    "}": "rbrace",
    "(": "lparen",
    ")": "rparen",
    "[": "lbrack",
    "]": "rbrack",
    "|": "vert mid",
    ":": "colon",
    "approx": "simeq sim",
    "operatorname": "operatornamewithlimits",
    "lor": "vee",
    "land": "wedge",
    "implies": "Rightarrow",
    "neg": "lnot",
    "to": "rightarrow longrightarrow",
    "pi": "uppi",
    "phi": "varphi",
    "epsilon": "varepsilon",
    "theta": "vartheta",
}
SYNONYMS = {synonym: command for command, synonyms in _SYNONYMS.items() for synonym in synonyms.split()}
"""The usual command for each synonym."""
_SIGNS_OF_RELATIONS = {
    "=": "= == is equals",
    "<": "< lt",
    ">": "> gt",
    "<=": "<= le",
    ">=": ">= ge",
    "!=": "!= ne",
    "~": "approx",
    "mod": "equiv",
    "in": "in",
    "notin": "notin",
}
RELATIONS = {sign: relation for relation, signs in _SIGNS_OF_RELATIONS.items() for sign in signs.split()}
"""Signs, commands and words of relations; `~` is an approximation, `mod` a congruence."""
SIGNS_OF_STATEMENTS = _words(
    "forall exists nexists cong parallel perp to leftrightarrow leftarrow iff Leftrightarrow neg subset subseteq supset "
    "supseteq mapsto"
)
"""Signs that join formulas into a statement. A statement has no value to compare, so it is read as words."""
FACTOR_STARTS = (
    FUNCTIONS
    | GREEK
    | _words(
        "frac sqrt pi infty overline bar dot ddot vec hat tilde overrightarrow binom lvert lfloor lceil sum prod int lim begin "
        "angle triangle unicodefrac mathbb emptyset langle mathcal cdots ldots dots"
    )
)
"""Commands that a factor of a product can start with."""
_NUMERALS = (
    "zero one two three four five six seven eight nine ten "
    "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
)
NUMBER_WORDS = {word: value for value, word in enumerate(_NUMERALS.split())}
"""Numbers in words."""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
TENS = {word: 10 * value for value, word in enumerate(_TENS.split(), 2)}
_PARTS = "third fourth fifth sixth seventh eighth ninth tenth"
FRACTION_WORDS = {
    "half": 2, "halves": 2, "hundredth": 100, "hundredths": 100, "thousandth": 1000, "thousandths": 1000,
    **{f"{word}{plural}": value for value, word in enumerate(_PARTS.split(), 3) for plural in ("", "s")},
}  # fmt: skip
"""Fractions in words; quarters can also be coins, so they are read only after a number in words."""
NO_NOUNS = _words(
    "yes not no nor never isn't is are was were be wrong incorrect false or and if but maybe perhaps unless cannot can't "
    "except plus minus times than less more least most fewer greater under over without else either neither both "
    "between while when where with that which because since so then hence therefore given approximately about "
    "minimum maximum matrix "
    "nope excluded unlikely divided multiplied doubled halved tripled twice fold root pi point negative below zero "
    "followed inverse reciprocal imaginary bn mil score gross off millionths twelfths eights "
    "roughly almost factorial lakh lakhs crore crores squared cubed percent half quarter "
    "i we you it they he she do does don't doesn't did didn't other another mod modulo correct"
)
"""Words that change the meaning of a number or an equation, so that they can't name the counted thing or the value.

This list affects verdicts. It is needed because any other word after a number is taken as the counted thing: answers say `12
ways` when the problem asks for orders, and no structural rule distinguishes `6 ways` from `6 doubled`. It contains words of
arithmetic and of closed classes (negations, conjunctions, comparisons, pronouns), never nouns. A word in it can only cause the
rejection of an answer that a gold without words would accept.
"""
