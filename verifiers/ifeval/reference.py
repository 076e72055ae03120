"""The reference of IFEval: instructions with their parameters, which are checked before any response is judged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from verifiers.errors import InvalidArgumentError, UnknownNameError
from verifiers.ifeval.catalogue import rule


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Raises:
        InvalidArgumentError: If there is no such instruction, or the instruction does not take the kwargs.
    """

    id: str
    """The id of the instruction in IFEval or IFBench, such as `"length_constraints:number_words"`."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """The parameters of the instruction; a parameter that is None counts as not given."""

    def __post_init__(self) -> None:
        identifier: object = self.id
        given: object = self.kwargs
        if not (isinstance(identifier, str) and isinstance(given, Mapping)):
            raise InvalidArgumentError(
                f"an instruction is an id and a mapping of kwargs, got {identifier!r} and {given!r}"
            )
        try:
            arguments = rule(self.id).arguments(self.id, self.kwargs)
        except UnknownNameError as error:
            raise InvalidArgumentError(str(error)) from error
        object.__setattr__(self, "kwargs", arguments)

    def followed_by(self, response: str) -> bool:
        """Whether a response follows the instruction; a response without letters and digits doesn't. CRLF counts as LF.

        Raises:
            MissingDependencyError: If a package that the instruction needs is not installed.
        """
        return any(map(str.isalnum, response)) and rule(self.id).check(response.replace("\r\n", "\n"), **self.kwargs)


def read_instructions(reference: object) -> tuple[Instruction, ...]:
    """Make instructions from a reference.

    Args:
        reference: Instructions in a list or tuple; a mapping with `instruction_id_list` (or `instruction_id`) and `kwargs`, as
            rows of IFEval and IFBench have them; a list of one such mapping; or the JSON of any of these.

    Raises:
        InvalidArgumentError: If the reference is none of these, or an instruction is invalid.
    """
    content = _of_json(reference) if isinstance(reference, str) else reference
    if isinstance(content, Sequence) and content and all(isinstance(item, Instruction) for item in content):
        return tuple(content)
    if isinstance(content, Sequence) and not isinstance(content, str) and len(content) == 1:
        content = content[0]
    if not isinstance(content, Mapping):
        raise InvalidArgumentError(
            f"expected instructions, or a mapping with 'instruction_id_list' and 'kwargs', got {_shown(reference)}"
        )
    ids = content.get("instruction_id_list", content.get("instruction_id"))
    kwargs = content.get("kwargs")
    if not isinstance(ids, Sequence) or isinstance(ids, str) or not ids:
        raise InvalidArgumentError(f"'instruction_id_list' must be a list of one or more ids, got {_shown(ids)}")
    if not isinstance(kwargs, Sequence) or isinstance(kwargs, str) or len(kwargs) != len(ids):
        raise InvalidArgumentError(
            f"'kwargs' must be a list of one mapping for each of the {len(ids)} instructions, got {_shown(kwargs)}"
        )
    return tuple(
        Instruction(identifier, {} if given is None else given) for identifier, given in zip(ids, kwargs, strict=True)
    )


def _of_json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"expected the JSON of instructions: {error}; got {_shown(text)}") from error


def _shown(value: object) -> str:
    said = repr(value)
    return said if len(said) <= 120 else said[:120] + "..."
