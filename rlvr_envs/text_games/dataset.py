"""The data set of a game: its beginnings, each with a seed of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, ClassVar

from rlvr_envs.games import GameInteraction
from rlvr_envs.procedural.base import SeededDataset, require_whole
from rlvr_envs.text_games.library import Library, TextGame, as_text, replay
from rlvr_envs.text_games.play import play
from verifiers import InvalidArgumentError, Problem

_KEPT = 4096
"""Number of problems that a data set keeps once they are made."""
_DRAWS = 50
"""This many seeds are tried for a beginning that is short enough."""
_SEEDS = 2**31
_INSERTED_TOKENS = 8192


@dataclass(frozen=True)
class TextGameDataset(SeededDataset):
    """Beginnings of one game for one player.

    Args:
        split: `"train"` or `"test"`: each has seeds of its own. A game with few beginnings has the same ones in both.
        game: Id of the game in its library.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems; by default 100 000 for train and 1 000 for test.
        arguments: What the game is made with beside its id, such as `{"max_turns": 5}`.
        max_prompt_bytes: Longest beginning, in UTF-8 bytes; seeds with longer ones are passed over.
        isolation: How much isolation the sandbox has to have, as for the verifier `unit_tests`.

    Raises:
        MissingDependencyError: If the library is not installed.
        UnknownNameError: If there is no such split or game.
        InvalidArgumentError: If another argument is out of range, or the game can't be played here.
        SandboxUnavailableError: If the system provides less isolation than requested.
    """

    library: ClassVar[Library]

    game: str = ""
    seed: int = 0
    size: int | None = None
    arguments: Mapping[str, object] = field(default_factory=dict)
    max_prompt_bytes: int = 8192
    isolation: str = "auto"

    def __post_init__(self) -> None:
        self.library.require(f"a game of {self.library.name}")
        super().__post_init__()
        game: object = self.game
        if not isinstance(game, str):
            raise InvalidArgumentError(f"game must be the id of a game of {self.library.name}, got {game!r}"[:300])
        require_whole("max_prompt_bytes", self.max_prompt_bytes, 1)
        self._made(0)

    def _problem_at(self, index: int) -> Problem:
        return self._made(index)

    @functools.cached_property
    def _made(self) -> Callable[[int], Problem]:
        # Streams ask for a row's problem with every token.
        return functools.lru_cache(maxsize=_KEPT)(self._make)

    def _make(self, index: int) -> Problem:
        arguments = as_text(self.arguments)
        problem_id = f"{self.library.module}/{self.game}/{self.split}/{self.seed}/{index}"
        for draw in range(_DRAWS):
            origin = repr((problem_id, arguments, draw))
            seed = int.from_bytes(blake2b(origin.encode(), digest_size=8).digest(), "little") % _SEEDS
            game = TextGame(self.library.module, self.game, seed, arguments, self.isolation)
            beginning = replay(game, ()).text
            if len(beginning.encode()) <= self.max_prompt_bytes:
                return Problem(problem_id, beginning, game, {"game": self.game})
        raise InvalidArgumentError(
            f"{self.library.name}'s game {self.game!r} begins with more than {self.max_prompt_bytes} bytes for each of "
            f"{_DRAWS} seeds, the last with {len(beginning.encode())}: set max_prompt_bytes"
        )


def text_game_rules(dataset: TextGameDataset, tokenizer: object) -> Mapping[str, Any]:
    """The rules of such an environment: the game's answers, and room for them."""
    return {"interaction": GameInteraction(play), "max_inserted_tokens": _INSERTED_TOKENS}
