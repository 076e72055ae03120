"""What every built-in verifier says to an argument that it can't take, before it judges anything."""

from __future__ import annotations

import inspect
import math
import re
import typing
from collections.abc import Callable
from typing import Any

import pytest

import verifiers
from verifiers import HTTPAddress, InvalidArgumentError, MissingDependencyError, bounds
from verifiers._settings import check_arguments, is_number
from verifiers.registry import _BUILT_IN, _named_object
from verifiers.types import Verifier

PARTS = {"parts": ["exact", "exact"]}
REQUIRED: dict[str, dict[str, Any]] = {
    "by_metadata": {"parts": {"a": "exact"}, "key": "kind"},
    "command": {"command": "true"},
    "ensemble": PARTS,
    "first": PARTS,
    "format": {"structure": "think"},
    "gate": PARTS,
    "hybrid": {"rule": "exact", "judge": "exact"},
    "judge": {"model": "m", "base_url": "http://localhost:1/v1"},
    "lean": {"url": "http://localhost:1"},
    "length_penalty": {"free": 1, "limit": 2},
    "process_reward_model": {"model": "no-such-model", "preset": "math-shepherd"},
    "ray": {"of": "exact"},
    "reward_model": {"model": "no-such-model", "server": "http://localhost:1"},
    "served": {"address": "http://localhost:1"},
    "weighted_sum": PARTS,
    "with_gold": {"proxy": "exact", "gold": "exact"},
    "with_timeout": {"part": "exact", "seconds": 1},
}
"""Arguments without which a verifier can't be made."""
PLAIN = ("bool", "int", "int | None", "float", "float | None")
SHORT = {"Count": "int", "Seconds": "float"}


def plain(annotation: str) -> str:
    """The type of an annotation as it is written, without bounds."""
    return SHORT.get(annotation, re.sub(r"^Annotated\[(.*?), .*", r"\1", str(annotation)))


def plain_arguments() -> list[Any]:
    """Every argument of a built-in verifier that is a bool or a number."""
    return [
        pytest.param(name, parameter.name, plain(parameter.annotation), id=f"{name}-{parameter.name}")
        for name in _BUILT_IN
        for parameter in inspect.signature(_named_object(name)).parameters.values()  # type: ignore[arg-type]
        if plain(parameter.annotation) in PLAIN
    ]


@pytest.mark.parametrize(("name", "argument", "annotation"), plain_arguments())
@pytest.mark.parametrize("value", ["no", "False", "", [], {"a": 1}])
def test_a_bool_is_a_bool_and_a_number_a_number(name: str, argument: str, annotation: str, value: object) -> None:
    try:
        with pytest.raises(InvalidArgumentError) as raised:
            verifiers.make(name, **{**REQUIRED.get(name, {}), argument: value})
    except MissingDependencyError as error:
        pytest.skip(str(error))
    assert argument in str(raised.value)
    assert repr(value) in str(raised.value)
    if annotation == "bool":
        assert str(raised.value) == f"{argument} must be True or False, got {value!r}"


def numbers_out_of_bounds() -> list[Any]:
    """For every number that is an argument of a built-in verifier: numbers outside its bounds, and what is no whole number."""
    rows = []
    for row in plain_arguments():
        name, argument, annotation = row.values
        written = inspect.signature(_named_object(name)).parameters[argument].annotation  # type: ignore[arg-type]
        marks = getattr(eval(written, vars(typing) | vars(bounds)), "__metadata__", ())
        values = [1.5, True] if annotation.startswith("int") else [math.nan] * (annotation != "bool")
        for bound in marks:
            low, high = bound.low - (not bound.open_low), bound.high + (not bound.open_high)
            values += [end for end in (low, high) if not (math.isinf(end) and bound.infinite)]
        rows += [pytest.param(name, argument, value, id=f"{row.id}-{value}") for value in values]
    return rows


@pytest.mark.parametrize(("name", "argument", "value"), numbers_out_of_bounds())
def test_a_number_lies_within_its_bounds(name: str, argument: str, value: float) -> None:
    try:
        with pytest.raises(InvalidArgumentError, match=f"^{argument} must be "):
            verifiers.make(name, **{**REQUIRED.get(name, {}), argument: value})
    except MissingDependencyError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("by_metadata", {"key": ["kind"]}, "key must be text, got ['kind']"),
        ("first", {"when": "always"}, "when must be a mapping from text to a function or None, got 'always'"),
        ("judge", {"system": 3}, "system must be text or None, got 3"),
        ("sql", {"rel_tol": 1}, "rel_tol must be from 0 to below 1, got 1"),
        ("judge", {"max_tokens": 0}, "max_tokens must be at least 1, or None, got 0"),
        ("judge", {"base_url": "x"}, f"base_url must be {HTTPAddress('http://localhost:8000/v1')}, got 'x'"),
    ],
)
def test_what_an_argument_must_be_is_said(name: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        verifiers.make(name, **{**REQUIRED.get(name, {}), **arguments})
    assert str(raised.value) == message


def test_a_function_is_checked_by_what_it_is_called_with() -> None:
    check_arguments(Verifier | None, judge=lambda completion, problem: True, rule=None)
    check_arguments(Verifier, judge=verifiers.make("exact"), rule=max)
    with pytest.raises(InvalidArgumentError, match=r"^judge must be a function \(completion, problem\) or None, got"):
        check_arguments(Verifier | None, judge=lambda completion: True)


def test_a_number_is_one_that_a_float_can_hold() -> None:
    assert is_number(10**300)
    assert not is_number(10**400)
    with pytest.raises(InvalidArgumentError, match=r"^rel_tol must be .*, got 1000"):
        verifiers.make("numeric", rel_tol=10**400)


# Names of attributes

MODULE = "def lenient(completion, problem): return True\n"


def test_a_file_is_named_with_what_is_meant_of_it(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my-judges.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in ("./my-judges.py:lenient", "~/my-judges.py:lenient", f"{tmp_path}/my-judges.py:lenient"):
        assert callable(verifiers.import_attribute(path, "verifier"))
    for path in ("my-judges.py", "./my-judges.py", "my-judges.py:", "missing.py"):
        name = path.removesuffix(":")
        with pytest.raises(InvalidArgumentError, match=rf"got '{path}': name what is in the file, as in {name}:name$"):
            verifiers.import_attribute(path, "tool")
    for path in ("my-judges:lenient", "./my-judges:lenient"):
        with pytest.raises(InvalidArgumentError, match=rf"got '{path}': did you mean .*my-judges\.py:lenient\?$"):
            verifiers.import_attribute(path, "verifier")


def test_whatever_takes_an_attribute_says_how_to_name_one_of_a_file() -> None:
    path = "judges.py"
    import gymnasium

    from agents.registry import agent_classes
    from rlvr_envs.finding import find_environment
    from rlvr_envs.tools import get_tools

    takers: list[Callable[[], object]] = [
        lambda: verifiers.make(path),
        lambda: get_tools(path),
        lambda: find_environment(path),
        lambda: agent_classes(path),
        lambda: gymnasium.make("rlvr/Addition-v0", interaction=path),
        lambda: gymnasium.make("rlvr/Text-v0", dataset=path),
    ]
    for take in takers:
        with pytest.raises(InvalidArgumentError, match=r"name what is in the file, as in judges\.py:name$"):
            take()
    with pytest.raises(InvalidArgumentError, match=r"^expected a tool as module:attribute, .*, got 'my-tools:add'$"):
        get_tools("calculator,my-tools:add")
