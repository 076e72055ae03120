"""One-sentence errors for command lines that `tyro` refuses."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import get_args, get_type_hints

import tyro

_NEGATION = "--no-"
_SAME_AS = {"--out": "--run-folder", "--run-folder": "--out"}
"""The two names of the option for the results' folder: one in `rlvr train`, the other in all other commands."""


@dataclasses.dataclass(frozen=True)
class _Option:
    name: str
    """The option as it is typed, such as --num-envs, or the placeholder of a positional argument."""
    required: bool

    @property
    def positional(self) -> bool:
        return not self.name.startswith("--")


def usage_error(command: type, arguments: Sequence[str], said: str) -> str:
    """The error message about the arguments of a command.

    Args:
        command: The dataclass of the command's options.
        arguments: The words typed after the command's name.
        said: Tyro's message, in a terminal so wide that no line is wrapped.
    """
    known = [option.name for option in _options(command) if not option.positional]
    typed = [_name(argument) for argument in itertools.takewhile(lambda argument: argument != "--", arguments)]
    if unknown := [name for name in typed if name.startswith("--") and not _is_known(name, known)]:
        return _unknown(unknown, known)
    text = _without_box(said)
    if re.match(r"missing (?:from|required)|required options", text, re.IGNORECASE):
        required = [option.name for option in _options(command) if option.required]
        shown = [name for name in required if name in text.split()] or required
        return f"missing: {', '.join(shown)}"
    if match := re.match(r"Missing value for argument '(.*?)'", text):
        return f"{match[1]} needs a value"
    if match := re.match(r"invalid choice '(.*)' for argument '(.*?)'\. Expected one of \((.*?),?\)", text, re.DOTALL):
        return f"{match[2]}: expected one of {match[3]}, got {match[1]!r}"
    if match := re.match(r"(--\S+): no type matching (.*?) could be instantiated from \[(.*?)\]\.", text):
        expected = [form for form in re.findall(r"\{(.*?)\}", match[2]) if form != "None"]
        return f"{match[1]}: expected {' or '.join(expected)}, got {match[3]}"
    if match := re.match(r"(--\S+): Could not find valid parse for arguments: \[(.*)\]", text):
        return f"{match[1]}: expected {_expected(command, match[1])}, got {match[2]}"
    if match := re.match(r"Unrecognized options: (.*)", text, re.DOTALL):
        return f"unexpected: {match[1]}"
    return text


def _expected(command: type, option: str) -> str:
    """Describe the values that an option accepts, from the type of its field."""
    hint = str(get_type_hints(command).get(option[2:].replace("-", "_"), ""))
    return "numbers, such as 0.05" if "float" in hint else "whole numbers" if "int" in hint else "other values"


def with_option_names(message: str, command: type, arguments: Sequence[str]) -> str:
    """An error message in which option names replace the names of settings in Python.

    A name of one word, such as `seed`, may also be an ordinary word: it is replaced only before `=`, at the beginning, and
    after "set". Names of arguments that were typed as name=value, such as those of an environment, stay as they are.
    """
    typed = {argument.partition("=")[0] for argument in arguments if not argument.startswith("-")}
    names = [option.name[2:].replace("-", "_") for option in _options(command) if not option.positional]
    said = [name for name in names if f"--{name.replace('_', '-')}" in message]
    message, known, listed = message.partition(" Known: ")  # the list has names that are not options
    for name in {*names} - {*typed, *said}:
        message = re.sub(rf"(?<![\w./=`'-])(?<!\w\()`?{name}(={_VALUE})?`?(?![\w(=`']|\.\w)", _as_option(name), message)
    return message + known + listed


_VALUE = r"(?:'[^']*'|[\w.+-]*\w)(?![\w(])"


def _as_option(name: str) -> Callable[[re.Match[str]], str]:
    option = f"--{name.replace('_', '-')}"

    def replaced(match: re.Match[str]) -> str:
        value = "" if match[1] is None else match[1][1:].strip("'")
        before = match.string[: match.start()]
        if (
            value == ""
            and "_" not in name
            and (not before.endswith("set ") and (before or " must " not in match.string))
        ):
            return match[0]
        if value == "False":
            return f"{_NEGATION}{option[2:]}"
        return f"{option} {value}" if value not in ("", "True") else option

    return replaced


def _options(command: type) -> Iterator[_Option]:
    hints = get_type_hints(command, include_extras=True)
    for field in dataclasses.fields(command):
        hint = hints[field.name]
        nested = next((part for part in (hint, *get_args(hint)) if dataclasses.is_dataclass(part)), None)
        if isinstance(nested, type):
            yield from _options(nested)
            continue
        notes = getattr(hint, "__metadata__", ())
        placeholder = next((note.metavar for note in notes if getattr(note, "metavar", None)), field.name.upper())
        name = placeholder if tyro.conf.Positional in notes else f"--{field.name.replace('_', '-')}"
        yield _Option(name, field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING)


def _name(argument: str) -> str:
    name, _, _ = argument.partition("=")
    return name.replace("_", "-") if name.startswith("--") else argument


def _is_known(name: str, known: Sequence[str]) -> bool:
    return name in known or (name.startswith(_NEGATION) and f"--{name.removeprefix(_NEGATION)}" in known)


def _unknown(names: Sequence[str], known: Sequence[str]) -> str:
    near = [match for name in names for match in _nearest(name, known)]
    meant = f". Did you mean {' and '.join(dict.fromkeys(near))}?" if near else ""
    return f"unknown option{'s' if len(names) > 1 else ''} {' and '.join(names)}{meant}"


def _nearest(name: str, known: Sequence[str]) -> list[str]:
    """The option that was probably meant, if any: one that has this name in other commands, or one with a similar name."""
    elsewhere = _SAME_AS.get(name, "")
    return [elsewhere] if elsewhere in known else difflib.get_close_matches(name, known, n=1)


def _without_box(text: str) -> str:
    """Tyro's message without the frame, the title and the pointers to help."""
    text = re.sub(r"\x1b\[[0-9;]*m|[│╭╮╰╯]", "", text)
    _title, *lines = (line.strip() for line in text.splitlines() if line.strip(" ─"))
    sections = re.sub(r" *(Argument helptext|For full helptext).*", "", " ".join(lines)).replace("Error parsing ", "")
    return next((section.strip() for section in re.split(r"[-─]{10,}", sections) if section.strip()), "")
