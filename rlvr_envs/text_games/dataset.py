"""The data set of a game: opening positions, each with its own seed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Annotated, Any, ClassVar

from rlvr_envs.games import GameInteraction
from rlvr_envs.procedural.base import SeededDataset
from rlvr_envs.text_games.library import Library, TextGame, as_text, replay
from rlvr_envs.text_games.play import play
from rlvr_envs.text_games.two_players import OPPONENTS, TextGameInteraction, let_play
from verifiers import AtLeast, Between, InvalidArgumentError, Problem, unknown_name

_KEPT = 4096
"""Maximum number of problems that a data set caches."""
_DRAWS = 50
"""Maximum number of seeds to try until an opening position is short enough."""
_SEEDS = 2**31
_INSERTED_TOKENS = 8192


@dataclass(frozen=True)
class TextGameDataset(SeededDataset):
    """Opening positions of a game for one or two players.

    Args:
        split: `"train"` or `"test"`, which have different seeds. A game with few opening positions has the same positions in
            both splits.
        game: Id of the game in its library.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems; by default 100 000 for train and 1 000 for test.
        arguments: Arguments of the game in addition to its id, such as `{"max_turns": 5}`.
        max_prompt_bytes: Maximum length of the first message, in UTF-8 bytes. Seeds with a longer first message are skipped.
        isolation: Isolation that the sandbox must provide, as for the verifier `unit_tests`.
        seat: The policy's player, 0 or 1, in a game for two players. None draws the player for each problem.
        opponent: Name of the opponent in a game for two players: `"random"`.

    Raises:
        MissingDependencyError: If the library is not installed.
        UnknownNameError: If there is no such split, game or opponent.
        InvalidArgumentError: If another argument is out of range, or the game can't be played in the sandbox.
        SandboxUnavailableError: If the system provides less isolation than requested.
    """

    library: ClassVar[Library]

    game: str = ""
    seed: int = 0
    size: int | None = None
    arguments: Mapping[str, object] = field(default_factory=dict)
    max_prompt_bytes: Annotated[int, AtLeast(1)] = 8192
    isolation: str = "auto"
    seat: Annotated[int | None, Between(0, 1)] = None
    opponent: str = "random"

    def __post_init__(self) -> None:
        self.library.require(f"a game of {self.library.name}")
        super().__post_init__()
        if self.opponent not in list(OPPONENTS):  # a list, since the argument may not be hashable
            raise unknown_name("opponent", self.opponent, list(OPPONENTS))
        if self.seat is not None:
            if self.players == 1:
                raise InvalidArgumentError(
                    f"{self.library.name}'s game {self.game!r} is for one player: leave seat out, got {self.seat}"
                )
        elif self.players == 2:  # report now an opponent that can't begin
            self._begun(self._game(0, 0)[0], 1)
        self._made(0)

    @functools.cached_property
    def players(self) -> int:
        """Number of players, 1 or 2."""
        return replay(self._game(0, 0)[0], ()).players

    @property
    def distinct(self) -> int | None:
        """The number of different problems is unknown (None), since several seeds may begin the same game."""
        return None

    def _problem_at(self, index: int) -> Problem:
        return self._made(index)

    def _game(self, index: int, draw: int) -> tuple[TextGame, int]:
        """A game before its first turn, and the player drawn for the policy."""
        arguments = as_text(self.arguments)
        origin = repr((self._id(index), arguments, draw))
        drawn = int.from_bytes(blake2b(origin.encode(), digest_size=8).digest(), "little")
        return TextGame(self.library.module, self.game, drawn % _SEEDS, arguments, self.isolation), drawn // _SEEDS % 2

    def _begun(self, game: TextGame, seat: int) -> TextGame:
        """A game after the opponent's first turns, if the opponent begins."""
        game = game._replace(seat=seat)
        return game._replace(opening=let_play(game, (), OPPONENTS[self.opponent])[1])

    def _id(self, index: int) -> str:
        return f"{self.library.module}/{self.game}/{self.split}/{self.seed}/{index}"

    @functools.cached_property
    def _made(self) -> Callable[[int], Problem]:
        # Streams ask for a row's problem at every token, so problems are cached.
        return functools.lru_cache(maxsize=_KEPT)(self._make)

    def _make(self, index: int) -> Problem:
        for draw in range(_DRAWS):
            game, drawn = self._game(index, draw)
            about: dict[str, object] = {"game": self.game, "hidden": True}
            if self.players > 1:
                about["seat"] = seat = drawn if self.seat is None else self.seat
                game = self._begun(game, seat)
            beginning = replay(game, ())
            if not beginning.over and len(beginning.text.encode()) <= self.max_prompt_bytes:
                return Problem(self._id(index), beginning.text, game, about)
        raise InvalidArgumentError(
            f"{self.library.name}'s game {self.game!r} begins with more than {self.max_prompt_bytes} bytes for each of "
            f"{_DRAWS} seeds, the last with {len(beginning.text.encode())}: set max_prompt_bytes"
        )


def text_game_rules(dataset: TextGameDataset, tokenizer: object) -> Mapping[str, Any]:
    """The rules of an environment of text games: the game's answers, and the token limit for these answers."""
    alone = dataset.players == 1
    interaction = GameInteraction(play, whole=True) if alone else TextGameInteraction(OPPONENTS[dataset.opponent])
    return {"interaction": interaction, "max_inserted_tokens": _INSERTED_TOKENS}
