"""Action and observation spaces of token streams."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlvr_envs.streams import TokenStreams
from rlvr_envs.types import FixedActions


class LegalTokens(spaces.Discrete):
    """A `Discrete(vocab_size)` whose elements are only the legal tokens, so that a random agent draws no illegal token.

    Args:
        mask: The legal tokens i8[vocab_size].
    """

    def __init__(self, mask: NDArray[np.int8]) -> None:
        super().__init__(len(mask))
        self.mask = mask

    def sample(self, mask: NDArray[np.int8] | None = None, probability: NDArray[Any] | None = None) -> np.int64:
        """Draw a legal token, or draw by the given mask or probabilities; see `Discrete.sample`."""
        if mask is None and probability is None:
            mask = self.mask
        return super().sample(mask, probability)

    def contains(self, x: Any) -> bool:
        """Whether `x` is a legal token."""
        return super().contains(x) and bool(self.mask[int(x)])


class BatchedLegalTokens(spaces.MultiDiscrete):
    """A `LegalTokens` for each of b rows.

    Args:
        mask: The legal tokens i8[vocab_size].
        num_envs: b.
    """

    def __init__(self, mask: NDArray[np.int8], num_envs: int) -> None:
        super().__init__(np.full(num_envs, len(mask)))
        self.mask = mask

    def sample(
        self,
        mask: tuple[NDArray[np.int8], ...] | None = None,
        probability: tuple[NDArray[Any], ...] | None = None,
    ) -> NDArray[np.int64]:
        """Draw a legal token for each row, or draw by the given masks or probabilities; see `MultiDiscrete.sample`."""
        if mask is None and probability is None:
            mask = (self.mask,) * len(self.nvec)
        return super().sample(mask, probability)

    def contains(self, x: Any) -> bool:
        """Whether `x` holds a legal token for each row."""
        return super().contains(x) and bool(self.mask[np.asarray(x)].all())


class AnyText(spaces.Space[str]):
    """All texts, unlike `spaces.Text`, which has a given set of characters."""

    def __init__(self) -> None:
        super().__init__(None, str)

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """Draw a text of up to 8 lower-case letters."""
        return "".join(chr(97 + letter) for letter in self.np_random.integers(26, size=self.np_random.integers(9)))

    def contains(self, x: Any) -> bool:
        """Whether `x` is a text."""
        return isinstance(x, str)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AnyText)

    def __hash__(self) -> int:
        return hash(AnyText)

    def __repr__(self) -> str:
        return "AnyText()"


def action_space(streams: TokenStreams) -> spaces.Discrete[np.int64]:
    """The action space of one stream: the legal tokens if they never change, otherwise all tokens."""
    legal = streams.rules.legal_actions
    return LegalTokens(legal.mask) if isinstance(legal, FixedActions) else spaces.Discrete(streams.vocab_size)


def batched_action_space(streams: TokenStreams) -> spaces.MultiDiscrete[np.int64]:
    """The joint action space of all streams."""
    legal = streams.rules.legal_actions
    if isinstance(legal, FixedActions):
        return BatchedLegalTokens(legal.mask, streams.num_streams)
    return spaces.MultiDiscrete(np.full(streams.num_streams, streams.vocab_size))


def observation_space(streams: TokenStreams) -> spaces.Dict:
    """The observation space of one stream."""
    return spaces.Dict(
        {
            "tokens": spaces.Box(0, streams.vocab_size - 1, (streams.buffer_tokens,), np.int32),
            "length": spaces.Box(0, streams.buffer_tokens, (1,), np.int32),
        }
    )
