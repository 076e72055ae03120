"""The rules of other graders as settings of this verifier; `docs/math.md` says how closely each matches the original grader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from verifiers.errors import unknown_name


@dataclass(frozen=True, slots=True)
class Grader:
    """Defaults of the verifier's arguments with which it judges like another grader."""

    extraction: str = "default"
    options: Mapping[str, object] = field(default_factory=dict)
    """Options by name: fields of `ComparisonOptions`."""


GRADERS: dict[str, Grader] = {
    # OlympiadBench's judge (He et al. 2024, inference/code/math_judger.py): numbers within the problem's error are right, and
    # so are their hundredth and hundredfold.
    "olympiadbench": Grader(
        options={
            "echo": "allow",
            "abs_tol": "problem",
            "percent": "factor",
            "rounding_digits": None,
            "units": "require",
            "vectors": "strict",
        }
    ),
    # lm-eval's minerva_math, after Lewkowycz et al. (2022), appendix D: equality by SymPy after normalisation.
    "minerva": Grader("minerva", {"echo": "allow", "percent": "value", "rounding_digits": None}),
    # Math-Verify 0.9: a decimal of six places counts as a rounding; percent signs matter.
    "math_verify": Grader("flexible", {"echo": "allow", "percent": "value", "rounding_digits": 7, "vectors": "strict"}),
}
"""The presets of `MathVerifier` by name."""


def preset_named(name: str | None) -> Grader:
    """A preset by its name; None for the verifier's own defaults.

    Raises:
        UnknownNameError: If no preset has that name.
    """
    if name is None:
        return Grader()
    if name not in GRADERS:
        raise unknown_name("preset of the math verifier", name, GRADERS)
    return GRADERS[name]
