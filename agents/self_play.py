"""Self-play: a policy as the opponent in a two-sided game; its moves are inserted, but never learned from."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

import rlvr_envs
from agents.types import Policy
from verifiers import Count, Message, Problem, checked


class SeatOfGame(Protocol):
    """A game as the side to move sees it: a `rlvr_envs.games.Seat` or a `rlvr_envs.text_games.TextSeat`.

    An optional attribute `question` is this side's prompt as it is worded in a chat.
    """

    @property
    def prompt(self) -> str:
        """This side's prompt."""

    @property
    def dialogue(self) -> tuple[Message, ...]:
        """This side's turns after the prompt, as assistant messages, and the game's replies to them, as user messages."""

    @property
    def chance(self) -> object:
        """The data that seeds the sampling of a policy in this seat."""


@dataclass(eq=False)
class _Asked:
    """A request for a move."""

    seat: SeatOfGame
    text: str | None = None
    error: BaseException | None = None


class PolicyOpponent:
    """Plays the other side of a game by sampling from a policy.

    It is an opponent for `rlvr_envs.games.TwoSidedInteraction` and `rlvr_envs.text_games.TextGameInteraction`.

    The policy sees the game as it would in its own episode, beginning after the other player's first move. The sampling is
    seeded by the problem and the moves. Moves that different threads ask for at the same time are sampled in one batch.

    Args:
        policy: Any policy. To play against the weights that are being trained, pass the trained policy's `at_temperature(1.0)`,
            which shares its weights but not its cache.
        tokenizer: The tokenizer of policy and environment.
        max_move_tokens: Maximum number of tokens in a move; a longer move is cut.
        prompt: The environment's prompt, such as `"chat"`, the default of `rlvr/TextArena-v0`.

    Raises:
        InvalidArgumentError: If `max_move_tokens` is less than 1.
        UnknownNameError: If there is no such prompt.
    """

    @checked
    def __init__(
        self,
        policy: Policy,
        tokenizer: rlvr_envs.Tokenizer,
        *,
        max_move_tokens: Count = 16,
        prompt: str | rlvr_envs.Prompt = "plain",
    ) -> None:
        self._policy = policy
        self._tokenizer = tokenizer
        self._dialogue = rlvr_envs.dialogue.get_dialogue("auto", tokenizer, ())
        self._renderer = rlvr_envs.PromptRenderer(rlvr_envs.get_prompt(prompt), tokenizer)
        self._max_move_tokens = max_move_tokens
        self._waiting: deque[_Asked] = deque()
        self._acting = threading.Lock()

    def __call__(self, seat: SeatOfGame) -> str:
        """Sample a move."""
        asked = _Asked(seat)
        self._waiting.append(asked)
        with self._acting:  # the thread that has the lock samples for all waiting threads
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

    def prompt_tokens(self, seat: SeatOfGame) -> NDArray[np.int32]:
        """The policy's observation, as tokens i32[l]."""
        is_chat = isinstance(self._renderer.prompt, rlvr_envs.ChatPrompt)
        asked = getattr(seat, "question", seat.prompt) if is_chat else seat.prompt
        parts = [self._opening(Problem("", asked, None))]
        end = rlvr_envs.turn_end(self._tokenizer)
        for message in seat.dialogue:
            if message.role == "assistant":
                parts += [
                    rlvr_envs.dialogue.encode_literal(self._tokenizer, message.content),
                    np.array([end], dtype=np.int32),
                ]
            else:
                parts.append(self._dialogue.bridge([message], end))
        return np.concatenate(parts)

    def _opening(self, problem: Problem) -> NDArray[np.int32]:
        """Encode a prompt as environments do: no text in the first message of a chat becomes a special token."""
        if isinstance(self._renderer.prompt, rlvr_envs.ChatPrompt) and not isinstance(
            self._dialogue, rlvr_envs.dialogue.PlainDialogue
        ):
            return self._dialogue.open(self._renderer.messages(problem))
        return rlvr_envs.dialogue.encode_parts(self._tokenizer, self._renderer.parts(problem), start=True)

    def _sample(self, batch: list[_Asked]) -> None:
        prompts = [self.prompt_tokens(asked.seat) for asked in batch]
        starts = np.array([len(prompt) for prompt in prompts])
        tokens = np.zeros((len(batch), int(starts.max()) + self._max_move_tokens), dtype=np.int32)
        for row, prompt in enumerate(prompts):
            tokens[row, : len(prompt)] = prompt
        length = starts.astype(np.int32)
        going = np.ones(len(batch), dtype=bool)
        self._policy.begin(np.arange(len(batch)), np.array([_seed(asked.seat) for asked in batch], dtype=np.uint64))
        stops = rlvr_envs.stop_tokens(self._tokenizer)
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
            asked.text = rlvr_envs.decode(self._tokenizer, tokens[row, starts[row] : length[row]])


def _seed(seat: SeatOfGame) -> int:
    """The seed u64 of sampling a move."""
    digest = blake2b(repr(seat.chance).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
