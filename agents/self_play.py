"""Self-play: a policy as the opponent in a game of two sides, whose moves are inserted and never learned from."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from agents.types import Policy
from rlvr_envs import Tokenizer, decode
from rlvr_envs.dialogue import get_dialogue
from rlvr_envs.games import Seat, told
from verifiers import InvalidArgumentError, Message


@dataclass(eq=False)
class _Asked:
    """A move that is asked for."""

    seat: Seat
    text: str | None = None
    error: BaseException | None = None


class PolicyOpponent:
    """Takes the other side of a game by sampling from a policy, for `rlvr_envs.games.TwoSidedInteraction`.

    The policy sees the game as it does in an episode of its own that begins after the other side's first move. Its chance
    follows from the problem and the moves. Moves that are asked for at the same time, by different threads, are sampled in
    one batch.

    Args:
        policy: Any policy. To play against the weights that are being trained, give it `policy.at_temperature(1.0)` of the
            trained one, which shares the weights but no cache.
        tokenizer: The tokenizer of policy and environment.
        max_move_tokens: The longest move; a longer one is cut there.

    Raises:
        InvalidArgumentError: If `max_move_tokens` is less than 1.
    """

    def __init__(self, policy: Policy, tokenizer: Tokenizer, *, max_move_tokens: int = 16) -> None:
        if max_move_tokens < 1:
            raise InvalidArgumentError(f"max_move_tokens must be at least 1, got {max_move_tokens}")
        self._policy = policy
        self._tokenizer = tokenizer
        self._dialogue = get_dialogue("auto", tokenizer, ())
        self._max_move_tokens = max_move_tokens
        self._waiting: deque[_Asked] = deque()
        self._acting = threading.Lock()

    def __call__(self, seat: Seat) -> str:
        """Sample a move."""
        asked = _Asked(seat)
        self._waiting.append(asked)
        with self._acting:  # whoever has the lock samples for all that wait
            if asked.text is None and asked.error is None:
                batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
                try:
                    self._sample(batch)
                except BaseException as error:
                    for other in batch:
                        other.error = error
                    raise
        if asked.error is not None:
            raise asked.error
        assert asked.text is not None
        return asked.text

    def prompt_tokens(self, seat: Seat) -> NDArray[np.int32]:
        """What the policy is shown, as tokens i32[l]."""
        parts = [self._tokenizer.encode(seat.prompt, start=True)]
        end = self._tokenizer.eos_token
        for at, move in enumerate(seat.moves):
            if at % 2 == 0:
                parts += [self._tokenizer.encode(str(move)), np.array([end], dtype=np.int32)]
            else:
                parts.append(self._dialogue.bridge([Message("user", told(str(move)))], end))
        return np.concatenate(parts)

    def _sample(self, batch: list[_Asked]) -> None:
        prompts = [self.prompt_tokens(asked.seat) for asked in batch]
        starts = np.array([len(prompt) for prompt in prompts])
        tokens = np.zeros((len(batch), int(starts.max()) + self._max_move_tokens), dtype=np.int32)
        for row, prompt in enumerate(prompts):
            tokens[row, : len(prompt)] = prompt
        length = starts.astype(np.int32)
        going = np.ones(len(batch), dtype=bool)
        self._policy.begin(np.arange(len(batch)), np.array([_seed(asked.seat) for asked in batch], dtype=np.uint64))
        stops = {self._tokenizer.eos_token}
        while going.any():
            action = self._policy.act({"tokens": tokens, "length": length[:, None]}, rows=going)
            for row in np.flatnonzero(going).tolist():
                for token in action.tokens[row, : action.counts[row]].tolist():
                    if token in stops or length[row] - starts[row] >= self._max_move_tokens:
                        going[row] = False
                        break
                    tokens[row, length[row]] = token
                    length[row] += 1
        for asked, row in zip(batch, range(len(batch)), strict=True):
            asked.text = decode(self._tokenizer, tokens[row, starts[row] : length[row]])


def _seed(seat: Seat) -> int:
    """The seed u64 of sampling a move."""
    digest = blake2b(repr((seat.start.seed, seat.played)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
