"""Detects the language of a text, with the package `langdetect`."""

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
"""The codes of the languages that `langdetect` distinguishes."""
_SURE = 0.9
"""Minimum probability at which the detector's language counts as certain."""


def language(value: object) -> str:
    """Read the code of a language, a parameter of an instruction."""
    if value not in LANGUAGES:
        raise ValueError(f"one of {', '.join(sorted(LANGUAGES))}")
    return str(value)


def is_in(text: str, language: str) -> bool:
    """Whether a text is mostly in this language; a text without a recognisable language is in none.

    Raises:
        MissingDependencyError: If `langdetect` is not installed.
    """
    guess = best_guess(text)
    return guess is not None and guess[0] == language


def may_be_english(text: str) -> bool:
    """Whether a text is in English, or is in English letters and not certainly in another language.

    For a few words the detector may return any language, with a high probability. A language other than English counts as
    certain if the detector finds it in the whole text and in both halves of the text.

    Raises:
        MissingDependencyError: If `langdetect` is not installed.
    """
    letters = [sign for sign in text if sign.isalpha()]
    if 2 * sum(map(str.isascii, letters)) <= len(letters):
        return False
    tokens = text.split()
    half = len(tokens) // 2
    whole = best_guess(text)
    if whole is None or whole[0] == "en":
        return True
    guesses = [whole, *(best_guess(" ".join(part)) for part in (tokens[:half], tokens[half:]))]
    return not all(guess is not None and guess[0] == whole[0] and guess[1] >= _SURE for guess in guesses)


def best_guess(text: str) -> tuple[str, float] | None:
    """The most likely language of a text and its probability; None for a text without evidence of a language.

    The package draws random numbers. They are seeded here, so that the same text always has the same language.

    Raises:
        MissingDependencyError: If `langdetect` is not installed.
    """
    factory, undecidable = _detectors()
    detector = factory.create()
    detector.seed = 0
    detector.append(text)
    try:
        likely = detector.get_probabilities()
    except undecidable:
        return None
    return (likely[0].lang, likely[0].prob) if likely else ("", 0.0)


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
