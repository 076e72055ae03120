"""From completion to the text of a proof."""

from __future__ import annotations

from collections.abc import Collection

from verifiers.answers import after_thinking, without_special_tokens
from verifiers.unit_tests.extraction.markdown import fenced_blocks


def last_block(completion: str, languages: Collection[str]) -> str | None:
    """Return the last code block after a completion's thoughts; None if there is no text.

    A block of one of the languages goes before one without a label, and that before one of another language; without a block
    it is the whole text.
    """
    answer, _ = after_thinking(without_special_tokens(completion.replace("\r\n", "\n")))
    fenced = fenced_blocks(answer)
    blocks = [block for block in fenced if block.content.strip()]
    for wanted in (languages, ("",)):
        if chosen := [block for block in blocks if block.language in wanted]:
            return chosen[-1].content
    if fenced:
        return blocks[-1].content if blocks else None
    return answer if answer.strip() else None
