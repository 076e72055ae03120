"""The contents of a problem's prompt: expressions, equations, and the options of a multiple-choice question."""

from __future__ import annotations

import functools
import re

from verifiers.math.carried_out import without_neutral
from verifiers.math.forms import unordered
from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.normalize import normal_text
from verifiers.math.reading.parse import parse
from verifiers.math.tree import Node, Relation, Symbol, walk

MAX_PROMPT = 20_000
"""Maximum number of characters of a prompt that are searched."""
_FORMULA = re.compile(
    r"\$\$(.{1,1000}?)\$\$|(?<!\\)\$(.{1,1000}?)(?<!\\)\$|\\\((.{1,1000}?)\\\)|\\\[(.{1,1000}?)\\\]", re.DOTALL
)
# Formulas in plain text that consist only of numbers, single letters, function names and signs; possessive, so linear.
_PLAIN_FORMULA = re.compile(
    r"(?:(?:sqrt|sin|cos|tan|log|ln|pi|\\(?:cdot|times|div|d?frac|sqrt)(?![A-Za-z])|(?<![A-Za-z])[A-Za-z](?![A-Za-z])|(?<![0-9])[0-9]++(?:\.[0-9]++)?+|[-+*/^()!%{}×·÷−√²³])\s*+){3,}"
)
_PUNCTUATION = " .,;:?!"
_OPTION = re.compile(r"(?<!\S)(?:\(([A-Ja-j])\)|([A-J])[.:)](?=\s))")
_STYLE = re.compile(r"\\(?:text|math)[a-z]*\s*\{([^{}]*)\}|\\[ ,;:!]|\\q?quad(?![A-Za-z])|(?<!\\)\$|~|\*\*")
_AROUND_OPTION = " \t\r\n.,;-"  # as in a list with dashes
_END_OF_LAST = re.compile(r"\n|[.?!]\s")
_EDGES = "[A-Za-z0-9.^_]"
_ARTICLES = frozenset("aAI")  # letters that are words in prose
_TOPICS = {
    "ratios": re.compile(r"\bratios?\b"),
    "flats": re.compile(  # a line counts only if the prompt asks for one; otherwise it may be the path of something that moves
        r"\A(?!.*\b(?:time|speed|velocity|moves|moving|particle)\b).*\b(?=(?:find|solve|give|determine|describe|write|state"
        r"|express|compute|what|parametri\w+)\b)[^.?!]{0,300}\b(?:(?:equations?|parametri\w+|representation)\s(?:\w+\s){0,6}(?:lines?"
        r"|planes?)|lines?\sof\sintersection|intersection\sof\s(?:\w+\s){0,3}planes|null\s?space|kernel|eigenspace|span|locus"
        r"|solution\s(?:set|space)|(?:all|general)\s(?:\w+\s)?solutions?|(?:solve|linear)\s(?:\w+\s){0,3}systems?"
        r"|systems?\sof\s(?:\w+\s){0,3}equations)\b",
        re.DOTALL | re.IGNORECASE,
    ),
    "constants": re.compile(
        r"\bintegra[lnt]|antiderivative|\bprimitive|differential|derivative|\bODEs?\b|general\ssolution|recurrence|trajector"
        r"|\bfamil(?:y|ies)\b|potential\sfunction|all\sfunctions|\\int(?![a-z])|∫|[a-z](?:'|\^\{?\\prime|′)(?![a-z])"
        r"|\\d?frac\s?\{\s?(?:d|\\partial)\b|\bd[a-z]\s?/\s?d[a-z]\b|\\d?dot\b",
        re.IGNORECASE,
    ),
}
"""Words and signs that show that a prompt asks for ratios, for points with free numbers, or for something with arbitrary
constants.
"""


def occurs_in(node: Node, *, prompt: str, text: str | None = None) -> bool:
    """Whether an expression occurs in a prompt, either as an expression or as part of the text.

    Args:
        node: The expression.
        prompt: The prompt.
        text: The expression's normal text, which is also searched for.
    """
    prompt = prompt[:MAX_PROMPT]
    if unordered(without_neutral(node)) in _expressions(prompt) or (
        isinstance(node, Symbol) and _is_named(node.name, _without_letters(prompt))
    ):
        return True
    pattern = rf"(?<!{_EDGES}){re.escape(text or '')}(?![A-Za-z0-9^_]|\.[0-9])"
    return text is not None and re.search(pattern, _normal_prompt(prompt)) is not None


@functools.lru_cache(maxsize=1024)
def topics(prompt: str) -> frozenset[str]:
    """The topics of a prompt, among `"ratios"`, `"flats"` and `"constants"`."""
    return frozenset(topic for topic, pattern in _TOPICS.items() if pattern.search(prompt[:MAX_PROMPT]))


def _is_named(name: str, text: str) -> bool:
    """Whether a symbol occurs in prose, as in `speeds c1 and c2` or `lengths c_i`."""
    letter, _, index = name.partition("_")
    index = rf"(?:{re.escape(index)}|[ijkn])" if index else ""
    end = rf"_?(?:\{{{index}\}}|{index}(?![A-Za-z0-9]))" if index else "(?![A-Za-z0-9_])"
    pattern = rf"(?<![A-Za-z'’_])\\?{re.escape(letter)}{end}"
    return name not in _ARTICLES and re.search(pattern, text) is not None


@functools.lru_cache(maxsize=1024)
def _without_letters(prompt: str) -> str:
    """A prompt in normal form, without the letters of its options."""
    return _normal_prompt(_OPTION.sub(" ", prompt) if options_in(prompt) else prompt)


def equations_in(prompt: str) -> tuple[Relation, ...]:
    """The equations between two expressions that a prompt states."""
    return tuple(
        tree for tree in _formulas(prompt[:MAX_PROMPT]) if isinstance(tree, Relation) and tree.operators == ("=",)
    )


@functools.lru_cache(maxsize=1024)
def options_in(prompt: str) -> dict[str, str]:
    """The text after each letter of the last group of options in a prompt, such as `(A) 5 (B) 7`, on one line or several."""
    text = _STYLE.sub(r" \1 ", prompt[:MAX_PROMPT])
    rows: list[list[re.Match[str]]] = []
    for mark in _OPTION.finditer(text):
        letter = (mark[1] or mark[2]).upper()
        if letter == "A":
            rows.append([])
        if rows and letter == chr(ord("A") + len(rows[-1])):
            rows[-1].append(mark)
    for row in reversed(rows):
        ends = [mark.start() for mark in row[1:]] + [len(text)]
        texts = [text[mark.end() : end].strip() for mark, end in zip(row, ends, strict=True)]
        texts[-1] = _END_OF_LAST.split(texts[-1], maxsplit=1)[0]
        options = {chr(ord("A") + index): option.rstrip(_AROUND_OPTION) for index, option in enumerate(texts)}
        if len(options) > 1 and all(options.values()):
            return options
    return {}


@functools.lru_cache(maxsize=1024)
def _expressions(prompt: str) -> frozenset[object]:
    """Keys of every expression in the prompt, from `unordered`; a sum or product has one key, which covers all its terms."""
    return frozenset(unordered(node) for tree in _formulas(prompt) for node in walk(without_neutral(tree)))


@functools.lru_cache(maxsize=1024)
def _formulas(prompt: str) -> tuple[Node, ...]:
    """The formulas in the prompt that can be read."""
    trees: list[Node] = []
    formulas = [next(group for group in match.groups() if group) for match in _FORMULA.finditer(prompt)]
    plain = [match[0] for match in _PLAIN_FORMULA.finditer(_FORMULA.sub(" . ", prompt))]
    for formula in (*formulas, *plain):
        try:
            trees.append(parse(formula.strip(_PUNCTUATION)))
        except UnreadableError:
            continue  # not an expression by itself; the text is searched instead
    return tuple(trees)


@functools.lru_cache(maxsize=1024)
def _normal_prompt(prompt: str) -> str:
    return normal_text(prompt)
