"""`--help` of every command: each option has a sentence of its own, which stands by itself wherever it is shown."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any, get_type_hints

import pytest

from agents import AGENTS, PolicyConfig, VLLMConfig
from agents.commands.main import COMMANDS as ENTRIES
from agents.settings.agent import AgentConfig
from tests.agents.test_command_errors import command_class, options_of

COMMANDS = [name for name, entry in ENTRIES.items() if entry.subcommands is None]
COMMANDS += ["data stats", *(f"train {name}" for name in AGENTS)]
PARTIAL = ("Of ", "To ", "And ", "As ", "In ", "None", "Off", "Whose ")
"""How phrases begin that lean on the name or on another field's sentence."""


def docstrings(cls: type) -> dict[str, str]:
    """The docstring below each field of a dataclass, that of the nearest class in its MRO that has one."""
    results: dict[str, str] = {}
    for base in reversed(cls.__mro__[:-1]):
        try:
            (node,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        except OSError:  # put together of classes that have a source
            continue
        assert isinstance(node, ast.ClassDef)
        for field, text in zip(node.body, node.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                assert isinstance(field.target, ast.Name)
                results[field.target.id] = " ".join(str(text.value.value).split())
    return results


def sentences(cls: Any) -> Iterator[tuple[str, str]]:
    """Each option of a dataclass and what `--help` says of it, those of nested dataclasses included."""
    own = docstrings(cls)
    for name, hint in get_type_hints(cls, include_extras=True).items():
        shared = (note.help for note in getattr(hint, "__metadata__", ()) if getattr(note, "help", None))
        if name in cls.__dataclass_fields__:
            yield name, own.get(name) or next(shared, "")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_sentence(command: str) -> None:
    classes = nested(command_class(command))
    said = {name: text for cls in classes for name, text in sentences(cls)}
    for option in options_of(command_class(command)):
        assert_sentence(option.name, said[option.name])


@pytest.mark.parametrize("cls", [PolicyConfig, VLLMConfig, AgentConfig])
def test_every_setting_has_a_sentence(cls: type) -> None:
    for name, text in sentences(cls):
        assert_sentence(name, text)


def nested(cls: Any) -> list[Any]:
    """A dataclass, and those that are its fields."""
    results = [cls]
    for hint in get_type_hints(cls).values():
        for member in getattr(hint, "__args__", (hint,)):
            if hasattr(member, "__dataclass_fields__") and isinstance(member, type):
                results += nested(member)
    return results


def assert_sentence(name: str, text: str) -> None:
    assert re.fullmatch(r"[A-Z].*\.", text), f"{name}: {text!r} is no sentence"
    assert not text.startswith(PARTIAL), f"{name}: {text!r} leans on something else"
    assert len(text.split()) >= 3, f"{name}: {text!r} says too little"
