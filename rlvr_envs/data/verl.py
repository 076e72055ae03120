"""The layout of training data for verl and its descendants, and the choice of the verifier that judges a row.

A row has `data_source` (a name), `prompt` (messages), `reward_model.ground_truth` and `extra_info`. Its `data_source` selects
the verifier, as in verl's `default_compute_score` (`verl/utils/reward_score/__init__.py`). `JUDGES` covers verl's sources of
mathematics and of programs.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import cast

from rlvr_envs.data.converters import find_converter
from rlvr_envs.data.rows import Row
from verifiers import DataError, InvalidArgumentError

COLUMNS: Mapping[str, str] = MappingProxyType({"prompt": "prompt", "reference": "reward_model.ground_truth"})
"""The columns of the layout."""

SOURCE_COLUMN = "data_source"


@dataclass(frozen=True)
class Judge:
    """The verifier that judges the rows of a source."""

    verifier: str | tuple[str, Mapping[str, object]]
    """Name of a verifier, or its name and arguments."""
    convert: str | None = None
    """Name of the converter from the ground truth to the reference; None uses the ground truth itself."""


_MATH = (
    *("openai/gsm8k", "lighteval/MATH", "DigitalLearningGmbH/MATH-lighteval", "HuggingFaceH4/MATH-500"),
    *("math", "math_dapo", "math_dapo_reasoning", "aime*"),
    *("numina_aops_forum", "numina_synthetic_math", "numina_amc_aime", "numina_synthetic_amc", "numina_cn_k12"),
    "numina_olympiads",
)
_PROGRAMS = ("codecontests", "apps", "codeforces", "taco")

JUDGES: Mapping[str, Judge] = MappingProxyType(
    dict.fromkeys(_MATH, Judge("math")) | dict.fromkeys(_PROGRAMS, Judge("unit_tests", "input_output"))
)
"""The judge of each source; `*` in a source's name matches any text."""


def judges_of(rows: Sequence[Row], verifiers: Mapping[str, object]) -> dict[str, Judge]:
    """Find the judge of every source in the rows.

    Args:
        rows: All rows of a split.
        verifiers: Further judges by source, which take precedence over `JUDGES`. A judge is the name of a verifier, a pair of a
            verifier's name and arguments, or a mapping with the keys `verifier` and, optionally, `convert`.

    Raises:
        DataError: If rows come from sources without a judge; the message names all of them.
        InvalidArgumentError: If a judge in `verifiers` has another form.
    """
    table = {**JUDGES, **{source: _judge(source, spec) for source, spec in verifiers.items()}}
    first = {row.text(SOURCE_COLUMN): row for row in reversed(rows)}
    judges = {source: judge for source in sorted(first) if (judge := _find(source, table, verifiers)) is not None}
    unknown = sorted(first.keys() - judges.keys())
    if unknown:
        raise DataError(
            f"{first[unknown[0]].location}: no verifier is known for the data_source {', '.join(map(repr, unknown))}; "
            f"say which one judges it with verifiers={{{unknown[0]!r}: 'math'}}. Known: {', '.join(sorted(table))}"
        )
    return judges


def _find(source: str, table: Mapping[str, Judge], given: Mapping[str, object]) -> Judge | None:
    """The judge of the source's name or else of a pattern that matches the name. The user's patterns come first."""
    if source in table:
        return table[source]
    patterns = [*given, *table]
    return next((table[pattern] for pattern in patterns if fnmatch.fnmatchcase(source, pattern)), None)


def _judge(source: str, spec: object) -> Judge:
    content = dict(spec) if isinstance(spec, Mapping) else {"verifier": spec}
    verifier, convert = content.pop("verifier", None), content.pop("convert", None)
    if isinstance(verifier, list):
        verifier = tuple(verifier)  # in JSON, a pair is a list
    if content or not _names_verifier(verifier) or not isinstance(convert, str | None):
        raise InvalidArgumentError(
            f"verifiers[{source!r}] must be the name of a verifier, a pair (name, arguments), or a mapping with 'verifier' and "
            f"'convert', got {spec!r}"
        )
    if convert is not None:
        find_converter(convert)
    return Judge(cast("str | tuple[str, Mapping[str, object]]", verifier), convert)


def _names_verifier(value: object) -> bool:
    if isinstance(value, tuple):
        return len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], Mapping)
    return isinstance(value, str)
