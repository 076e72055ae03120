"""The values of `format` that are checked. No check uses an optional package, since a verdict must not depend on one."""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
# The grammar of RFC 3986, appendix A; only an address in a host has square brackets.
_NAME = r"[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9a-fA-F]{2}"
_PATH = rf"(?:{_NAME}|[:@/])*"
_AUTHORITY = rf"(?:(?:{_NAME}|:)*@)?(?:\[[0-9a-fA-F:.]+\]|(?:{_NAME})*)(?::[0-9]*)?"
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*:"
_REFERENCE = rf"(?://{_AUTHORITY}(?:/{_PATH})?|(?!//){_PATH})(?:\?(?:{_NAME}|[:@/?])*)?(?:#(?:{_NAME}|[:@/?])*)?"
_PATTERNS = {
    "email": rf"[A-Za-z0-9.!#$%&'*+/=?^_`{{|}}~-]{{1,64}}@{_LABEL}(?:\.{_LABEL})*",
    "hostname": rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*",
    "uuid": r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    "uri": _SCHEME + _REFERENCE,
    "uri-reference": rf"(?:{_SCHEME})?{_REFERENCE}",
    "json-pointer": r"(?:/(?:[^/~]|~[01])*)*",
    "duration": r"P(?=[0-9T])(?:[0-9]+W|(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?"
    r"(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+S)?)?)",
}
_TIME = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"


def _matches(pattern: str) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(pattern, text, re.ASCII) is not None


def _is_date(text: str) -> bool:
    return _holds(lambda: re.fullmatch(_DATE, text) and datetime.date.fromisoformat(text))


def _is_time(text: str) -> bool:
    """Whether a text is a time of RFC 3339, which requires an offset and allows leap seconds."""
    plain = re.sub(r"^23:59:60", "23:59:59", text)
    whole = re.sub(r"\.[0-9]+", "", plain).upper().replace("Z", "+00:00")
    return _holds(lambda: re.fullmatch(_TIME, plain) and datetime.time.fromisoformat(whole))


def _is_date_time(text: str) -> bool:
    return text[10:11] in ("T", "t", " ") and _is_date(text[:10]) and _is_time(text[11:])


def _holds(read: Callable[[], object]) -> bool:
    try:
        return read() is not None
    except ValueError:
        return False


FORMATS: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {
        **{name: _matches(pattern) for name, pattern in _PATTERNS.items()},
        "date": _is_date,
        "time": _is_time,
        "date-time": _is_date_time,
        "ipv4": lambda text: _holds(lambda: ipaddress.IPv4Address(text)),
        "ipv6": lambda text: "%" not in text and _holds(lambda: ipaddress.IPv6Address(text)),
    }
)
"""The checks by the format's name; by the specification, any other format is an annotation, which any text fits."""
