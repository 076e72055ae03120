"""Finds the class that gives a Java program's file its name, and the class that is run."""

from __future__ import annotations

import re

# No pattern may backtrack: an unclosed comment or string ends with the text.
_NO_CODE = re.compile(
    r"//[^\n]*+|/\*.*?(?:\*/|\Z)|\"\"\"(?:\\.|[^\\])*?(?:\"\"\"|\Z)|\"(?:\\.|[^\"\\\n])*+\"?|'(?:\\.|[^'\\\n])*+'?",
    re.DOTALL,
)
"""Matches comments, strings and characters."""
_TYPE = re.compile(r"\b(?:class|interface|enum|record)\s+([\w$]+)")
_MAIN = re.compile(r"\bvoid\s+main\s*\(")
_PACKAGE = re.compile(r"\s*package\s+([\w$.]+)\s*")
_LONGEST = 100
"""Maximum number of characters of a name; a file's name has at most 255 bytes."""


def java_names(source: str) -> tuple[str, str]:
    """The name of a program's file, without its suffix, and the qualified name of the class that is run.

    The file has the name of the public type. The class that is run has a `main` method: it is the public type, else `Main`,
    else the first such class.
    """
    package, public, types, mains, depth = "", "", [], [], 0
    parts = re.split(r"([{};])", _NO_CODE.sub(" ", source))
    for head, sign in zip(parts[::2], parts[1::2], strict=False):
        if depth == 0 and sign == ";" and (match := _PACKAGE.fullmatch(head)):
            package = f"{match[1]}."
        if depth == 0 and sign == "{" and (match := _TYPE.search(head)):
            types.append(match[1])
            if re.search(r"\bpublic\b", head):
                public = match[1]
        if depth == 1 and sign == "{" and types and _MAIN.search(head) and re.search(r"\bstatic\b", head):
            mains.append(types[-1])
        depth += {"{": 1, "}": -1, ";": 0}[sign]
    first = next((name for name in (public, "Main") if name in mains), (mains or [public or "Main"])[0])
    name, main = public or "Main", f"{package}{first}"
    return (
        (name, main) if max(len(name), len(first)) <= _LONGEST and len(package) <= 10 * _LONGEST else ("Main", "Main")
    )
