"""A penalty for long completions."""

from __future__ import annotations

from typing import Annotated, Literal

from verifiers._settings import checked
from verifiers.bounds import Above, AtLeast
from verifiers.errors import InvalidArgumentError
from verifiers.types import Outcome, Problem, Verdict

LengthUnit = Literal["characters", "words"]


class LengthPenalty:
    """Scores length: 0 up to `free`, then linearly down to `-penalty` at `limit`, and constant beyond.

    The shape is DAPO's (Yu et al. 2025, arXiv:2503.14476, equation 13), which counts tokens. A verifier sees text, so this one
    counts characters, or words between white space. To penalise the policy's own tokens, use the truncation `soft-overlong` of
    the training configuration. `detail["length"]` is the length.

    The verdict is `SCORED`, and its score is at most 0. In a sum with a verifier, keep `penalty` times its weight below the
    score of a right answer, or short wrong answers may score higher than long right ones.

    Args:
        free: Longest length without a penalty.
        limit: Length at which the whole penalty is reached.
        penalty: The largest amount that is subtracted.
        unit: The unit of length.

    Raises:
        InvalidArgumentError: If the limit is not above `free`, one of them is not a whole number of at least 0, or the penalty
            is not positive and finite.
        UnknownNameError: If there is no such unit.
    """

    @checked
    def __init__(
        self,
        free: Annotated[int, AtLeast(0)],
        limit: int,
        *,
        penalty: Annotated[float, Above(0)] = 1.0,
        unit: LengthUnit = "characters",
    ) -> None:
        if not free < limit:
            raise InvalidArgumentError(f"limit must be greater than free={free}, got {limit}")
        self._free, self._limit = free, limit
        self._penalty = penalty
        self._unit = unit

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Score one completion by its length."""
        length = len(completion) if self._unit == "characters" else len(completion.split())
        share = (length - self._free) / (self._limit - self._free)
        score = 0.0 if share <= 0 else -self._penalty * min(1.0, share)
        return Verdict(score, Outcome.SCORED, detail={"length": length})
