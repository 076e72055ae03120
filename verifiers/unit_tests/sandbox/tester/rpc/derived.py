"""Values of the program's classes that derive from those of plain data, as test code sees them.

Such a value has its content here, by which it is compared, and is of a class of its own. Attributes that only its class in the
program has, and its texts, are the program's. What that class makes of the operators and methods of its base is not done here,
where the program would see what the tests expect, and not passed over either: where a test uses one, it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, NoReturn

from ...protocol.codec import SPECIAL
from ..report import refusal
from .proxy import COMPARING_METHODS, ONLY_PLAIN

if TYPE_CHECKING:
    from .session import Session

_TEXTS = {f"__{operation}__": operation for operation in ("str", "repr", "format")}


def derived_content(session: Session, own: Collection[str], *, is_copied: bool = False) -> dict[str, Any]:
    """The content of a class for values of the program's, which defines these special methods and attributes of its base.

    The program gets a copy of those that are copied, and else the value itself, of which it sets attributes.
    """

    def attribute(value: object, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(f"{type(value).__name__!r} object has no attribute {name!r}")
        if name in COMPARING_METHODS:
            raise refusal(AttributeError(f"{name} of a {type(value).__name__}: {ONLY_PLAIN}"))
        return session.request("getattr", value, name)

    def set_attribute(value: object, name: str, new: object) -> None:
        session.request("setattr", value, name, new)
        if is_copied:
            raise refusal(
                TypeError(f"{name!r} of a {type(value).__name__} can't be set: the program has another copy of it")
            )

    def delete_attribute(value: object, name: str) -> None:
        session.request("delattr", value, name)

    content: dict[str, Any] = {"__getattr__": attribute, "__setattr__": set_attribute, "__delattr__": delete_attribute}
    for name in own:
        if name in _TEXTS:
            content[name] = _text(session, _TEXTS[name])
        elif name in SPECIAL:
            content.setdefault(name, _refusing(name))
        elif not name.startswith("_"):
            content[name] = property(_refusing(name))
    return content


def _text(session: Session, operation: str) -> Callable[..., str]:
    def text(value: object, *args: object) -> str:
        said = session.request(operation, value, *args)
        if type(said) is not str:
            raise TypeError(f"{operation}() of a {type(value).__name__} is no text")
        return said

    return text


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refuse(value: object, *_: object) -> NoReturn:
        raise refusal(TypeError(f"{name} of a {type(value).__name__}: {ONLY_PLAIN}"))

    return refuse
