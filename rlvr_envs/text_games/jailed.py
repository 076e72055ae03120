"""The program in the sandbox, which replays a game of TextArena or GEM from its seed and all turns.

The program reads requests as lines of JSON from standard input, and answers each request with a line of JSON. An answer holds
the game's messages to the player after the last turn, or before the first turn, or the messages to the other player if that
player is to move. One request replays a game; further requests add turns to a game that goes on. The program is sent as text,
and imports nothing from this distribution.

These games use the global generators of `random` and `numpy.random`, print, and ask for files and servers. A game runs in a
separate process, which has no network and is seeded before the game is made. So these effects stay in the process, and a
dialogue always has the same result.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import io
import json
import random
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any


class RefusedError(Exception):
    """Raised if a game can't be played here. The error's arguments are a kind of error, a message, and the known names."""


class TextArenaGame:
    """A game of TextArena for one or two players. A reward comes only at the end of the game."""

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        import textarena
        from textarena.envs.registration import ENV_REGISTRY

        if name not in ENV_REGISTRY:
            # Ids with these endings name the same games in other wrappers.
            raise RefusedError("game", name, [game for game in ENV_REGISTRY if not game.endswith(("-raw", "-train"))])
        self._library = textarena
        self._name = name
        self._arguments = arguments
        self._over = False

    def begin(self, seed: int) -> None:
        """Start with the smallest possible number of players. The player to move gets the rules and the state of the game."""
        refusals = []
        for players in (1, 2):
            seed_everything(seed)
            with refused("make"):
                self._make()
            try:
                with refused("start"):
                    self._start(players, seed)
                    self.players = players
                    self._views = [[""] for _ in range(players)]
                    self._listen()
                return
            except RefusedError as error:
                if error.args[0] != "start":
                    raise
                refusals.append(error)
        # Raise an error that is not about the number of players, or else the error with two players.
        raise next((error for error in refusals if "player" not in error.args[1].lower()), refusals[-1])

    def _make(self) -> None:
        self._env = self._library.make(self._name, **self._arguments)
        *wrappers, self._core = self._layers(self._env)
        names = {type(wrapper).__name__ for wrapper in wrappers}
        # Other observation wrappers show the game's messages, but not the other player's turns.
        self._shows_turns = all(name in _SHOW_TURNS for name in names if "Observation" in name)

    def _layers(self, env: Any) -> list[Any]:
        """The wrappers of a game, and finally the game itself."""
        layers = [env]
        while isinstance(layers[-1], self._library.Wrapper):
            layers.append(layers[-1].env)
        return layers

    def _start(self, players: int, seed: int) -> None:
        self._env.reset(num_players=players, seed=seed)
        state = self._core.state
        # Some games start with one player and wait for more players. Others start with any number, but are games for two.
        if isinstance(state, self._library.SinglePlayerState) != (players == 1) or len(state.observations) != players:
            raise ValueError("this is a game of several players")
        if players == 1:
            state.set_invalid_move = _in_order(state.set_invalid_move)
        else:
            type(state).set_invalid_move = _noted(type(state).set_invalid_move)

    @property
    def player(self) -> int:
        """The player to move."""
        return int(self._core.state.current_player_id)

    def take(self, text: str) -> None:
        """Take a turn of the player to move."""
        self._views[self.player] += [text, ""]
        self._over, _ = self._env.step(action=text)
        if not self._over:
            self._listen()
            return
        for player in range(self.players):
            self._tell(player, self._core.state.observations[player])

    def state(self, seat: int) -> dict[str, Any]:
        """The state of the game for a player; if the other player is to move, the state for the other player."""
        told = self._views[seat][-1]
        forfeits = [player for player, info in self._core.state.game_info.items() if info.get("invalid_move")]
        forfeit = any(player != seat for player in forfeits)
        if not self._over:
            view = None if self.player == seat else self._views[self.player]
            return {"text": told, "reward": 0.0, "over": False, "won": False, "view": view, "forfeit": forfeit}
        rewards, info = self._env.close()
        reason = info[seat].get("reason") or ""
        score = float(rewards[seat])
        text = "\n".join(filter(None, (told, reason)))
        return {"text": text, "reward": score, "over": True, "won": score == 1.0, "view": None, "forfeit": forfeit}

    def first_legal(self, moves: Sequence[str]) -> str | None:
        """Try moves on copies of the game, and return the first move that the game accepts."""
        chance = random.getstate(), numpy_random().get_state()
        try:
            return next((move for move in moves if self._takes(move)), None)
        finally:
            random.setstate(chance[0])
            numpy_random().set_state(chance[1])

    def _takes(self, move: str) -> bool:
        tried = copy.deepcopy(self._env)
        state = self._layers(tried)[-1].state
        setattr(state, _WRONG, False)
        try:
            tried.step(action=move)
        except Exception:  # noqa: BLE001 - a game that fails does not accept the move
            return False
        return not getattr(state, _WRONG)

    def _listen(self) -> None:
        """Pass the game's messages since the last turn to the player to move.

        The messages come from the game itself, since its wrappers would repeat the whole dialogue.
        """
        self._tell(*self._core.get_observation())

    def _tell(self, player: int, observed: Iterable[tuple[int, str, Any]]) -> None:
        """Add the game's output to a player's messages. The player's own turns, which the game repeats, are left out."""
        kinds = self._library.ObservationType
        said = []
        for speaker, message, kind in observed:
            if kind not in set(kinds):  # in three games, the fields are in the wrong order and have no kind
                continue
            if kind is not kinds.PLAYER_ACTION:
                said.append(message.strip("\n"))
            elif self.players > 1 and speaker != player and self._shows_turns:
                name = self._core.state.role_mapping.get(speaker, f"Player {speaker}")
                said.append(f"[{name}] {message}")
        self._views[player][-1] = "\n".join(said)


_SHOW_TURNS = ("LLMObservationWrapper", "SettlersOfCatanObservationWrapper")
_WRONG = "noted_wrong_move"


def _noted(set_invalid_move: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method mark the game's state, even in copies of the game, and ignore an argument that some games of 0.7.4 add."""

    def set_and_note(state: Any, *args: Any, player_id: int | None = None, **kwargs: Any) -> Any:
        setattr(state, _WRONG, True)
        return set_invalid_move(state, *args, **kwargs)

    return set_and_note


def _in_order(set_invalid_move: Callable[..., None]) -> Callable[..., None]:
    """Pass a method its arguments by their types, since some games of 0.7.4 swap the reason and the score."""

    def set_in_order(reason: Any, reward: Any = -1.0) -> None:
        set_invalid_move(*((reward, reason) if isinstance(reward, str) else (reason, reward)))

    return set_in_order


class GEMGame:
    """A game of GEM. Every turn has a reward, and a game is won if its rewards sum to 1."""

    players = 1
    player = 0

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        import gem
        from gem.envs.registration import ENV_REGISTRY

        games = sorted(game for game in ENV_REGISTRY if game.startswith("game:"))
        if name not in games:
            raise RefusedError("game", name, games)
        with refused("make"):
            self._env = gem.make(name, **arguments)
        self._earned = 0.0

    def begin(self, seed: int) -> None:
        """Start the game, and tell the player the rules and the state of the game."""
        with refused("start"):
            self._set(self._joined(*self._env.reset(seed=seed)))

    def take(self, text: str) -> None:
        """Take a turn of the player."""
        told, reward, terminated, truncated, info = self._env.step(text)
        over = bool(terminated or truncated)
        self._earned += float(reward)
        won = over and abs(self._earned - 1.0) < 1e-6
        self._set(told if over else self._joined(told, info), float(reward), over=over, won=won)

    def state(self, seat: int) -> dict[str, Any]:
        """The state of the game."""
        return self._state

    def first_legal(self, moves: Sequence[str]) -> None:
        """Return None, since there is no other player who could need a legal move."""

    def _set(self, text: str, reward: float = 0.0, *, over: bool = False, won: bool = False) -> None:
        self._state = {"text": text, "reward": reward, "over": over, "won": won, "view": None, "forfeit": False}

    def _joined(self, told: str, info: Mapping[str, Any]) -> str:
        return "\n".join(filter(None, (told.rstrip("\n"), info.get("suffix", ""))))


@contextlib.contextmanager
def refused(doing: str) -> Iterator[None]:
    """Turn an exception within the block into a `RefusedError`."""
    try:
        yield
    except RefusedError:
        raise
    except Exception as error:
        if corpus := re.search(r"nltk\.download\('(\w+)'\)", str(error)):
            raise RefusedError("corpus", corpus[1], []) from error
        reason = str(error).strip().splitlines() or [""]
        where = traceback.extract_tb(error.__traceback__)[-1].name
        raise RefusedError(doing, f"{type(error).__name__} in {where}: {' '.join(reason)}"[:400], []) from error


def find_corpora(names: str | Sequence[str], *_: Any, **__: Any) -> bool:
    """Check that corpora are installed; replaces `nltk.download`.

    Raises:
        RefusedError: If a corpus is missing.
    """
    for name in [names] if isinstance(names, str) else names:
        if not _is_there(name):
            raise RefusedError("corpus", name, [])
    return True


def _is_there(name: str) -> bool:
    import nltk

    for folder in ("corpora", "taggers"):
        for ending in ("", ".zip"):
            with contextlib.suppress(LookupError):
                nltk.data.find(f"{folder}/{name}{ending}")
                return True
    return False


LIBRARIES: Mapping[str, type[TextArenaGame] | type[GEMGame]] = {"textarena": TextArenaGame, "gem": GEMGame}


def numpy_random() -> Any:
    """NumPy's module of global random numbers."""
    import numpy

    return numpy.random


def seed_everything(seed: int) -> None:
    """Seed the random generators that games use."""
    random.seed(seed)
    numpy_random().seed(seed)


class Table:
    """A game in progress, as seen by one of its players.

    Args:
        library: The game's library.
        name: The game's id in the library.
        arguments: Arguments of the game in addition to its id.
        seed: Seed of the game's random numbers.
        seat: The player whose view is returned, in a game for two players.

    Raises:
        RefusedError: If the game can't be played here.
    """

    def __init__(self, library: str, name: str, arguments: str, seed: int, seat: int) -> None:
        import nltk

        nltk.download = find_corpora
        if "nltk_data" in sys.modules:  # the folder is next to the packages, so the sandbox can read it
            nltk.data.path[:] = list(sys.modules["nltk_data"].__path__)
        seed_everything(seed)
        self._game = LIBRARIES[library](name, ast.literal_eval(arguments))
        self._game.begin(seed)
        self._seat = seat if self._game.players > 1 else 0
        self._state = self._game.state(self._seat)

    def play(self, turns: Sequence[tuple[bool, str]], moves: Sequence[str]) -> dict[str, Any]:
        """Continue the game; return the result of the last turn.

        Args:
            turns: Further turns, as pairs (whether the turn is the player's own, text).
            moves: Possible moves of the player to move. The result contains the first legal move.

        Raises:
            Exception: Any exception that the game raises at a turn.
        """
        for own, text in turns:
            if self._state["over"]:
                raise RuntimeError("the game was over before the last turn")
            if own != (self._game.player == self._seat):
                raise RuntimeError("a turn was that of the other player")
            self._game.take(text)
            self._state = self._game.state(self._seat)
        legal = self._game.first_legal(moves) if moves else None
        return {**self._state, "players": self._game.players, "legal": legal}


def main() -> None:
    """Answer requests until the input ends. The first request begins a game, and every later request continues the game."""
    replies, table = sys.stdout, None
    for line in sys.stdin:
        request = json.loads(line)
        sys.stdout = io.StringIO()  # drop the output of games
        try:
            table = table or Table(**request["game"])
            reply = table.play(request["turns"], request["moves"])
        except RefusedError as error:
            reply = {"refused": list(error.args)}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
