"""Reads completions in one way for every verifier: their thoughts, their ends, blocks of code, and marks of answers.

`cut` gives the response of a completion. `find` gives the answer of a response; a `Kind` defines what can be an answer.
`last_block` gives the last fenced block of a response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verifiers.lazy import lazy_face

if TYPE_CHECKING:
    from verifiers.completion.answers import FORMS as FORMS, Found as Found, Kind as Kind, find as find
    from verifiers.completion.blocks import Block as Block, fenced_blocks as fenced_blocks, last_block as last_block
    from verifiers.completion.cut import (
        Response as Response,
        cut as cut,
        thought_names as thought_names,
        without_end_tokens as without_end_tokens,
        without_thoughts as without_thoughts,
    )
    from verifiers.completion.explicit import boxed_answer as boxed_answer, form_of as form_of
    from verifiers.completion.mark import EXPLICIT as EXPLICIT, NOTHING as NOTHING, Form as Form, Mark as Mark
    from verifiers.completion.moves import move_in as move_in

READER = 9
"""The version of the reader, stored in records of evaluations; it changes whenever the reader finds other answers."""

__getattr__, __dir__, _NAMES = lazy_face(__name__)
__all__ = ["READER", *_NAMES]
