"""A person as the player of an episode, who types text or single tokens on standard input."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections import deque

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

import rlvr_envs
from verifiers import DataError, InvalidArgumentError

_BY_NUMBER = re.compile(r"#(\d+)")


def read_line() -> str | None:
    """A line of standard input without its line break; None at the end of input."""
    try:
        return input("> " if sys.stdin.isatty() else "")
    except EOFError:
        return None
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"standard input must be UTF-8 text: {error}") from error


class TextPlayer:
    """A person who types the whole text of a turn, up to the end of input (Ctrl-D); no text at all leaves the episode."""

    def __init__(self, env: rlvr_envs.TokenEnv, console: Console) -> None:
        self._env = env
        self._console = console
        self._waiting: deque[int] = deque()

    def begin_turn(self) -> None:
        """Drop the text that was typed beyond the end of the preceding turn."""
        self._waiting.clear()

    def choose(self, observation: rlvr_envs.Observation, action_mask: NDArray[np.int8] | None) -> int | None:
        """The next token of the text, and after the text the token that ends a turn."""
        if not self._waiting:
            text = self._read()
            if text is None:
                return None
            self._waiting.extend([*self._env.tokenizer.encode(text).tolist(), self._env.streams.rules.turn_end])
        return self._waiting.popleft()

    def _read(self) -> str | None:
        if sys.stdin.isatty():
            self._console.print(
                "Type your turn, then Ctrl-D on a line of its own. Ctrl-D alone leaves the episode.", style="dim"
            )
        lines = list(iter(read_line, None))
        return "\n".join(lines) if lines else None


class TokenPlayer:
    """A person who types lines; the tokens of each line are appended one by one.

    An empty line gives the token that ends a turn, `#ID` gives the token with that number, and any other line gives the tokens
    of its text. An illegal token is refused together with the rest of its line. The end of input leaves the episode.
    """

    def __init__(self, env: rlvr_envs.TokenEnv, console: Console) -> None:
        self._env = env
        self._console = console
        self._waiting: deque[int] = deque()
        if sys.stdin.isatty():
            said = "Type text or #ID for a token; an empty line is the end token, and Ctrl-D leaves the episode."
            console.print(said, style="dim")

    def begin_turn(self) -> None:
        """Drop the tokens that were typed beyond the end of the preceding turn, and say so."""
        if self._waiting:
            dropped = " ".join(token_label(self._env.tokenizer, token) for token in self._waiting)
            self._say(f"not played, since they were typed before the environment's answer: {dropped}")
        self._waiting.clear()

    def choose(self, observation: rlvr_envs.Observation, action_mask: NDArray[np.int8] | None) -> int | None:
        """The next token of the typed line; reads a new line if no token is left."""
        while True:
            while not self._waiting:
                self._show_state(observation, action_mask)
                line = read_line()
                if line is None:
                    return None
                self._waiting.extend(self._tokens(line))
            token = self._waiting.popleft()
            if action_mask is None or action_mask[token]:
                return token
            self._say(f"{token_label(self._env.tokenizer, token)} is not legal here")
            self._waiting.clear()

    def _tokens(self, line: str) -> list[int]:
        tokenizer, number = self._env.tokenizer, _BY_NUMBER.fullmatch(line)
        if not line:
            return [self._env.streams.rules.turn_end]
        if number is None:
            try:
                tokens: list[int] = tokenizer.encode(line).tolist()
            except DataError as error:
                self._say(str(error))
                return []
        elif int(number[1]) < tokenizer.vocab_size:
            tokens = [int(number[1])]
        else:
            self._say(f"{line} is outside the vocabulary of {tokenizer.vocab_size} tokens")
            return []
        self._say(" ".join(token_label(tokenizer, token) for token in tokens))
        return tokens

    def _show_state(self, observation: rlvr_envs.Observation, action_mask: NDArray[np.int8] | None) -> None:
        problem = self._env.streams.problem(0)
        if problem is not None and isinstance(problem.reference, rlvr_envs.worlds.World):
            self._say(_drawing(self._env, observation, problem.reference))
        if action_mask is not None:
            self._say(f"legal: {legal_tokens(self._env.tokenizer, action_mask)}")

    def _say(self, text: str) -> None:
        self._console.print(text)


def _drawing(env: rlvr_envs.TokenEnv, observation: rlvr_envs.Observation, world: rlvr_envs.worlds.World) -> str:
    """A drawing of the world with `S` at the current cell, which is neither a goal nor a trap until the walk ends."""
    tokens = observation["tokens"][int(env.streams.prompt_length[0]) : int(observation["length"][0])]
    text = rlvr_envs.decode(env.tokenizer, tokens)
    cell = world.walk(
        rlvr_envs.worlds.MOVES.index(character) for character in text if character in rlvr_envs.worlds.MOVES
    )[-1]
    return rlvr_envs.worlds.draw(dataclasses.replace(world, start=cell))


_MOST_LEGAL = 20
"""Maximum number of legal tokens that are listed."""


def token_label(tokenizer: rlvr_envs.Tokenizer, token: int) -> str:
    r"""A token as a Python literal: its text, or its bytes if these are not whole characters; a special token by its number.

    The token that ends a completion is `<end>`.
    """
    if token == tokenizer.eos_token:
        return "<end>"
    piece = tokenizer.token_bytes(token)
    try:
        return repr(piece.decode()) if piece else f"#{token}"
    except UnicodeDecodeError:
        return repr(piece)


def legal_tokens(tokenizer: rlvr_envs.Tokenizer, action_mask: NDArray[np.int8]) -> str:
    """The legal tokens of a mask i8[v], or only their number if there are many."""
    tokens = np.flatnonzero(action_mask).tolist()
    if len(tokens) > _MOST_LEGAL:
        return f"{len(tokens)} of {len(action_mask)} tokens"
    return " ".join(token_label(tokenizer, token) for token in tokens)
