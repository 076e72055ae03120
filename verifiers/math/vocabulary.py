"""The words and commands that the reader of mathematical text knows."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTIONS = _words(
    "sin cos tan cot sec csc arcsin arccos arctan arccot arcsec arccsc asin acos atan sinh cosh tanh coth sech "
    "csch arcsinh arccosh arctanh asinh acosh atanh log ln lg exp sqrt cbrt abs floor ceil max min gcd lcm det "
    "binom sgn"
)
"""Functions with a meaning of their own, in LaTeX and in plain text."""
GREEK = _words(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau "
    "upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega ell"
)
"""Commands that stand for one symbol."""
NAMES = {"pi": "pi", "infinity": "infty", "inf": "infty", "infty": "infty", "theta": "theta", "emptyset": "emptyset"}
"""Plain-text names of commands."""
SHORT_WORDS = _words(
    "am pm an and are as at be by do for if in is it no not of on or so the to yes all any but one two six ten "
    "men odd even per sq cu usd way east west north south none true day days he she we you up st nd rd th base"
)
"""Words of two or three letters, which would otherwise be read as products of symbols."""
TEXT_COMMANDS = _words("text mbox textbf textrm textit textsf hbox textnormal")
"""Commands whose argument is prose."""
ROMAN_COMMANDS = _words("mathrm operatorname mathsf mathit")
"""Commands whose argument is a name set upright: a unit, a function, a symbol."""
SILENT_COMMANDS = _words(
    "left right bigl bigr Bigl Bigr biggl biggr Biggl Biggr big Big bigg Bigg displaystyle textstyle scriptstyle "
    "limits nolimits mathbf boldsymbol bm bold boxed fbox underline mathopen mathclose quad qquad thinspace "
    "enspace "
    "large Large LARGE huge Huge small tiny normalsize rm bf it sf"
)
"""Commands that only change how something looks."""
_SYNONYMS = {
    "le": "leq leqslant",
    "ge": "geq geqslant",
    "ne": "neq",
    "frac": "dfrac tfrac cfrac",
    "binom": "dbinom tbinom",
    "emptyset": "varnothing",
    "in": "isin",
    "setminus": "backslash smallsetminus",
    "cdot": "ast",
    "circ": "degree",
    "{": "lbrace",
    "}": "rbrace",
    "[": "lbrack",
    "]": "rbrack",
    "|": "vert mid",
    ":": "colon",
    "approx": "simeq sim",
    "operatorname": "operatornamewithlimits",
    "cup": "bigcup",
    "lor": "vee",
    "land": "wedge",
    "implies": "Rightarrow",
}
SYNONYMS = {synonym: command for command, synonyms in _SYNONYMS.items() for synonym in synonyms.split()}
"""Commands that mean the same as another."""
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
}
RELATIONS = {sign: relation for relation, signs in _SIGNS_OF_RELATIONS.items() for sign in signs.split()}
"""Signs, commands and words of relations; `~` is an approximation, `mod` a congruence."""
FACTOR_COMMANDS = _words(
    "frac sqrt pi infty overline bar vec hat tilde overrightarrow binom lvert lfloor lceil sum prod begin angle "
    "triangle unicodefrac mathbb emptyset langle mathcal"
)
"""Commands, apart from functions and Greek letters, that a factor of a product can start with."""
_NUMERALS = (
    "zero one two three four five six seven eight nine ten "
    "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
)
NUMBER_WORDS = {word: value for value, word in enumerate(_NUMERALS.split())}
"""Numbers in words."""
NO_NOUNS = _words(
    "not no nor isn't is are was were be wrong incorrect false or and if but maybe perhaps unless cannot can't "
    "except plus minus times than less more least most fewer greater under over without else either neither both "
    "between while when where with that which because since so then hence therefore given approximately about "
    "roughly almost i we you it they he she do does don't doesn't did didn't other another mod modulo correct"
)
"""Words that change what a number means, so that they never name what is counted."""
