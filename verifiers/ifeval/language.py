"""Which language a text is in, by the package `langdetect`."""

from __future__ import annotations

from functools import cache
from typing import Any

from verifiers.errors import missing_dependency
from verifiers.ifeval.text import listed

LANGUAGES = frozenset(
    listed(
        "af ar bg bn ca cs cy da de el en es et fa fi fr gu he hi hr hu id it ja kn ko lt lv mk ml mr ne nl no pa pl pt "
        "ro ru sk sl so sq sv sw ta te th tl tr uk ur vi zh-cn zh-tw"
    )
)
"""The codes that `langdetect` tells apart."""


def language(value: object) -> str:
    """The code of a language, as a parameter of an instruction."""
    if value not in LANGUAGES:
        raise ValueError(f"one of {', '.join(sorted(LANGUAGES))}")
    return str(value)


def is_in(text: str, language: str) -> bool:
    """Whether the language that makes up most of a text is this one; a text without a language is in none.

    The package draws random numbers. They are seeded here, so that the same text always has the same language.

    Raises:
        MissingDependencyError: If `langdetect` is not installed.
    """
    factory, undecidable = _detectors()
    detector = factory.create()
    detector.seed = 0
    detector.append(text)
    try:
        return bool(detector.detect() == language)
    except undecidable:
        return False


@cache
def _detectors() -> tuple[Any, type[Exception]]:
    try:
        import langdetect
        from langdetect import detector_factory
    except ImportError as error:
        raise missing_dependency("langdetect", "ifeval", "an instruction about the language of the response") from error
    factory = detector_factory.DetectorFactory()
    factory.load_profile(detector_factory.PROFILES_DIRECTORY)
    return factory, langdetect.LangDetectException
