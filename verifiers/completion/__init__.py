"""Where the answer stands in a completion: thoughts, ends, blocks of code and marks, in one way for every verifier.

`cut` gives the response of a completion, `find` its answer, for what a `Kind` takes for one, and `last_block` its last fenced
block.
"""

from verifiers.completion.answers import FORMS, Found, Kind, find
from verifiers.completion.blocks import Block, fenced_blocks, last_block
from verifiers.completion.cut import Response, cut, thought_names, without_end_tokens, without_thoughts
from verifiers.completion.explicit import boxed_answer, form_of
from verifiers.completion.mark import EXPLICIT, Form, Mark
from verifiers.completion.moves import move_in

READER = 3
"""The version of the reader, which records of evaluations hold: it changes with what is found in a completion."""

__all__ = [
    "EXPLICIT",
    "FORMS",
    "READER",
    "Block",
    "Form",
    "Found",
    "Kind",
    "Mark",
    "Response",
    "boxed_answer",
    "cut",
    "fenced_blocks",
    "find",
    "form_of",
    "last_block",
    "move_in",
    "thought_names",
    "without_end_tokens",
    "without_thoughts",
]
