"""Markings around an answer that do not change it, such as dollar signs, and how common they are."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A marking around an answer that does not change the answer."""

    name: str
    before: str
    after: str
    usual: bool = False
    """Whether every grader of chat completions should know the marking."""
    formula: bool = False

    def __call__(self, text: str) -> str:
        """The text with this marking around it."""
        return f"{self.before}{text}{self.after}"

    def fits(self, text: str) -> bool:
        """Whether no character of the text can be mistaken for a character of this marking."""
        sign_of_text = self.before in ("*", "_", "'") and self.before in text
        return not sign_of_text and not ("$" in self.before and re.search(r"(?<!\\)\$", text))


HTML = ("b", "strong", "i", "em", "u", "p", "span", "mark", "center", "div")
TEX = ("text", "textbf", "textit", "mathbf", "mathrm", "boldsymbol")
WRAPPERS = (
    Wrapper("$", "$", "$", usual=True, formula=True),
    Wrapper("$$", "$$", "$$", usual=True, formula=True),
    Wrapper(r"\(", r"\(", r"\)", usual=True, formula=True),
    Wrapper(r"\[", r"\[", r"\]", usual=True, formula=True),
    Wrapper("**", "**", "**", usual=True),
    *(Wrapper(sign, sign, sign) for sign in ("*", "__", "_", "`", '"', "'")),
    Wrapper("“", "“", "”"),
    Wrapper("‘", "‘", "’"),
    *(Wrapper(f"<{tag}>", f"<{tag}>", f"</{tag}>") for tag in HTML),
    *(Wrapper(f"\\{command}", f"\\{command}{{", "}", usual=command == "text") for command in TEX),
)
"""The markings that every verifier of this package ignores."""
