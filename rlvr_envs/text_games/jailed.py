"""The program that runs in the sandbox: it plays a game of TextArena or GEM again, from its seed and all that the player said.

It reads one request as JSON from its standard input, and answers with one line of JSON: what the player is told after the last
turn, or before the first. It is sent as text, and imports nothing of this distribution.

These games draw from `random` and `numpy.random` themselves, print, and ask for files and servers. In a process of their
own, which is seeded before the game is made and has no network, all of that stays there, and what follows from a dialogue is
always the same.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import random
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any


class RefusedError(Exception):
    """A game that can't be played here; its arguments are a class of error, a message, and the names that are known."""


class TextArenaGame:
    """A game of TextArena for one player. It pays once, at its end."""

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        import textarena
        from textarena.envs.registration import ENV_REGISTRY

        if name not in ENV_REGISTRY:
            # The other names end a game's own, and stand for the wrappers around it.
            raise RefusedError("game", name, [game for game in ENV_REGISTRY if not game.endswith(("-raw", "-train"))])
        with refused("make"):
            self._env = textarena.make(name, **arguments)
        self._state = textarena.SinglePlayerState
        self._kinds = textarena.ObservationType
        self._core = self._env
        while isinstance(self._core, textarena.Wrapper):
            self._core = self._core.env

    def begin(self, seed: int) -> str:
        """Start; the player is told the rules, and how things stand."""
        with refused("start"):
            self._env.reset(num_players=1, seed=seed)
            if not isinstance(self._core.state, self._state):  # some start with one player, and wait for others
                raise ValueError("this is a game of several players")
            self._core.state.set_invalid_move = _in_order(self._core.state.set_invalid_move)
            return self._news()

    def take(self, text: str) -> dict[str, Any]:
        """Take a turn."""
        over, _ = self._env.step(action=text)
        told = self._news()
        if not over:
            return {"text": told, "reward": 0.0, "over": False, "won": False}
        rewards, info = self._env.close()
        reason = info[0].get("reason") or ""
        score = float(rewards[0])
        return {"text": "\n".join(filter(None, (told, reason))), "reward": score, "over": True, "won": score == 1.0}

    def _news(self) -> str:
        """What the game has said since; the player's own turns, which it repeats, are in the dialogue already.

        The wrappers of a game repeat the whole dialogue instead, so the game itself is asked.
        """
        _, observed = self._core.get_observation()
        # Three games give a turn in the wrong order, as a message of no kind.
        shown = set(self._kinds) - {self._kinds.PLAYER_ACTION}
        return "\n".join(message.strip("\n") for _, message, kind in observed if kind in shown)


def _in_order(set_invalid_move: Callable[..., None]) -> Callable[..., None]:
    """Give a method its arguments by their kinds: some games of 0.7.4 exchange the reason and the score."""

    def set_in_order(reason: Any, reward: Any = -1.0) -> None:
        set_invalid_move(*((reward, reason) if isinstance(reward, str) else (reason, reward)))

    return set_in_order


class GEMGame:
    """A game of GEM. It pays in every turn; one whose rewards come to 1 is won."""

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        import gem
        from gem.envs.registration import ENV_REGISTRY

        games = sorted(game for game in ENV_REGISTRY if game.startswith("game:"))
        if name not in games:
            raise RefusedError("game", name, games)
        with refused("make"):
            self._env = gem.make(name, **arguments)
        self._earned = 0.0

    def begin(self, seed: int) -> str:
        """Start; the player is told the rules, and how things stand."""
        with refused("start"):
            return self._joined(*self._env.reset(seed=seed))

    def take(self, text: str) -> dict[str, Any]:
        """Take a turn."""
        told, reward, terminated, truncated, info = self._env.step(text)
        over = bool(terminated or truncated)
        self._earned += float(reward)
        won = over and abs(self._earned - 1.0) < 1e-6
        return {"text": told if over else self._joined(told, info), "reward": float(reward), "over": over, "won": won}

    def _joined(self, told: str, info: Mapping[str, Any]) -> str:
        return "\n".join(filter(None, (told.rstrip("\n"), info.get("suffix", ""))))


@contextlib.contextmanager
def refused(doing: str) -> Iterator[None]:
    """Within the block, an exception is the game's refusal to be played here."""
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
    """What stands in for `nltk.download`: are the corpora there?

    Raises:
        RefusedError: If one is not.
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


def play(library: str, name: str, arguments: str, seed: int, turns: Sequence[str]) -> dict[str, Any]:
    """Play a game again; give what the last turn led to.

    Raises:
        RefusedError: If it can't be played here.
        Exception: Whatever the game raises at a turn.
    """
    import nltk
    import numpy

    nltk.download = find_corpora
    if "nltk_data" in sys.modules:  # a folder beside the packages, which the sandbox can read as it does these
        nltk.data.path[:] = list(sys.modules["nltk_data"].__path__)
    random.seed(seed)
    numpy.random.seed(seed)
    game = LIBRARIES[library](name, ast.literal_eval(arguments))
    state = {"text": game.begin(seed), "reward": 0.0, "over": False, "won": False}
    for turn in turns:
        if state["over"]:
            raise RuntimeError("the game was over before the last turn")
        state = game.take(turn)
    return state


def main() -> None:
    """Answer one request."""
    request = json.loads(sys.stdin.read())
    replies, sys.stdout = sys.stdout, io.StringIO()  # what games print is lost
    try:
        reply = play(**request)
    except RefusedError as error:
        reply = {"refused": list(error.args)}
    replies.write(json.dumps(reply) + "\n")


if __name__ == "__main__":
    main()
