"""The two libraries of games, and requests to the program that plays their games in the sandbox."""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import importlib.util
import json
import os
import sysconfig
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from rlvr_envs.text_games.live import LiveGames
from verifiers import InvalidArgumentError, VerifierFailureError, missing_dependency, unknown_name
from verifiers.sandbox import ProgramRunner

_TURN_S = 30.0
"""Limit on processor time in seconds: for a replay or, in a game in progress, for all turns together."""
_LIVE = 64
"""Maximum number of games in progress. Each game has a separate process with about 6 MiB of memory."""
_CHECKED = 256
"""Games in progress are compared with a replay once in this number of turns."""
_SHOWN = 600
_MEMORY_MIB = 2048
_CORPORA = "nltk_data"
_KEPT = 1024
"""Number of cached states. The verifier asks for the state after the last turn, which has been computed for the answer."""


@dataclass(frozen=True)
class Library:
    """A library of games."""

    name: str
    """The name in the spelling that users know."""
    module: str
    distribution: str
    version: str
    """The supported release. In other releases, play and rewards differ."""
    extra: str

    def require(self, purpose: str) -> None:
        """Check that the supported release is installed.

        Raises:
            MissingDependencyError: If the library is not installed.
            InvalidArgumentError: If another release is installed.
        """
        if importlib.util.find_spec(self.module) is None:
            raise missing_dependency(self.distribution, self.extra, purpose)
        found = importlib.metadata.version(self.distribution)
        if found != self.version:
            raise InvalidArgumentError(
                f"{purpose} needs {self.distribution} {self.version}, found {found}, whose games may differ. Install it with: "
                f"pip install {self.distribution}=={self.version}"
            )


TEXTARENA = Library("TextArena", "textarena", "textarena", "0.7.4", "textarena")
GEM = Library("GEM", "gem", "gem-llm", "0.1.0", "gem")
LIBRARIES: Mapping[str, Library] = {library.module: library for library in (TEXTARENA, GEM)}


class TextGame(NamedTuple):
    """One game, with everything needed to replay it."""

    library: str
    """`"textarena"` or `"gem"`."""
    game: str
    """The game's id in the library."""
    seed: int
    arguments: str
    """Arguments of the game in addition to its id, as the text of a dictionary."""
    isolation: str
    """Isolation that the sandbox must provide."""
    seat: int = 0
    """The policy's player, if there are two players."""
    opening: tuple[str, ...] = ()
    """The other player's turns before the policy's first turn."""


class Said(NamedTuple):
    """A turn of a player."""

    text: str
    own: bool = True
    """Whether the turn is the policy's."""


@dataclass(frozen=True, slots=True)
class Played:
    """The result of the last turn."""

    text: str
    """The game's message to the policy; empty if the other player is to move."""
    reward: float
    """The reward of the turn."""
    over: bool
    won: bool
    players: int
    view: tuple[str, ...] | None
    """The game's messages to the other player and that player's turns, alternating, if that player is to move; otherwise
    None."""
    forfeit: bool
    """Whether the other player lost by a wrong move, after a warning."""


@functools.lru_cache(maxsize=_KEPT)
def replay(game: TextGame, turns: tuple[Said, ...]) -> Played:
    """Replay a game and return the result. Without turns, this is the position after the other player's opening.

    Raises:
        UnknownNameError: If the library has no such game.
        InvalidArgumentError: If the game can't be played here, because it needs more players, other arguments, or missing
            resources.
        SandboxUnavailableError: If the system provides less isolation than requested.
        VerifierFailureError: If the game raises at a turn, a turn belongs to the wrong player, or a limit on time or memory is
            exceeded.
    """
    reply = _play_on(game, turns, ()) if turns else None
    if reply is not None and _is_checked(game, turns) and reply != (again := _ask(game, turns, ())):
        raise VerifierFailureError(
            f"{LIBRARIES[game.library].name}'s game {game.game!r} leads to something else when it is played again: {reply} and "
            f"{again}"[:_SHOWN]
        )
    reply = reply or _ask(game, turns, ())
    view = None if reply["view"] is None else tuple(reply["view"])
    return Played(
        reply["text"] if view is None else "",
        reply["reward"],
        reply["over"],
        reply["won"],
        reply["players"],
        view,
        reply["forfeit"],
    )


def first_legal(game: TextGame, turns: tuple[Said, ...], moves: Sequence[str]) -> str | None:
    """Return the first move that a game accepts after some turns; None if the game accepts none of the moves.

    Raises:
        RLVRError: As for `replay`.
    """
    reply = _play_on(game, turns, moves) or _ask(game, turns, moves)
    legal: str | None = reply["legal"]
    return legal


def _is_checked(game: TextGame, turns: Sequence[Said]) -> bool:
    """Whether to compare a game in progress with a replay after this turn."""
    return zlib.crc32(repr((game, turns)).encode("utf-8", "surrogatepass")) % _CHECKED == 0


def _request(game: TextGame, turns: Sequence[Said], moves: Sequence[str], *, known: int = -1) -> str:
    """The request to the program in the sandbox, which already knows `known` turns, or with -1 does not know the game."""
    said = (*(Said(text, own=False) for text in game.opening), *turns)
    new = said if known < 0 else turns[known:]
    begun = {
        "library": game.library,
        "name": game.game,
        "arguments": game.arguments,
        "seed": game.seed,
        "seat": game.seat,
    }
    return json.dumps({"game": begun, "turns": [(turn.own, turn.text) for turn in new], "moves": list(moves)})


def _play_on(game: TextGame, turns: tuple[Said, ...], moves: Sequence[str]) -> dict[str, Any] | None:
    """Ask the process with the game in progress; return None if no process answers."""
    runner = _runner(game.library, game.isolation)
    asked = _live_games(os.getpid()).ask(
        game,
        turns,
        lambda: runner.keep(_program(), timeout_s=_TURN_S),
        lambda known: _request(game, turns, moves, known=known),
    )
    if asked is None or not asked[0].endswith("}\n"):
        return None
    answer, keep = asked
    reply: dict[str, Any] = json.loads(answer)
    if "refused" in reply:
        return None
    if not reply["over"]:
        keep()
    return reply


@functools.lru_cache(maxsize=1)
def _live_games(process: int) -> LiveGames:
    """The games in progress in this process; a child process does not use its parent's games."""
    return LiveGames(_LIVE)


def _ask(game: TextGame, turns: Sequence[Said], moves: Sequence[str]) -> dict[str, Any]:
    """Replay a game in the sandbox."""
    request = _request(game, turns, moves)
    output = _runner(game.library, game.isolation)(_program(), request + "\n", timeout_s=_TURN_S)
    if not output.stdout.endswith("}\n"):
        last = (output.stderr.strip().splitlines() or [""])[-1]
        name = LIBRARIES[game.library].name
        raise VerifierFailureError(f"{name}'s game {game.game!r} broke ({output.failure}): {last[-300:]}".rstrip(": "))
    reply = json.loads(output.stdout)
    if "refused" in reply:
        raise _refusal(game, *reply["refused"])
    answer: dict[str, Any] = reply
    return answer


@functools.lru_cache(maxsize=4)
def _runner(library: str, isolation: str) -> ProgramRunner:
    """The sandbox with the library loaded, and with NLTK's corpora if they are installed next to the packages."""
    corpora = [_CORPORA] if importlib.util.find_spec(_CORPORA) else []
    packages = (library, "numpy", "nltk", *corpora)
    return ProgramRunner(packages=packages, isolation=isolation, memory_mib=_MEMORY_MIB)


@functools.cache
def _program() -> str:
    return files(__package__).joinpath("jailed.py").read_text(encoding="utf-8")


_REMEDIES = {
    "make": "Check the arguments; games that need a server or files that are not installed can't be played in the sandbox, "
    "which has no network",
    "start": "Only games of one player or two can be played, without a server or files that are not installed",
}


def _refusal(game: TextGame, kind: str, reason: str, known: Sequence[str]) -> Exception:
    name = LIBRARIES[game.library].name
    if kind == "game":
        return unknown_name(f"game of {name}", reason, list(known))
    if kind == "corpus":
        return InvalidArgumentError(
            f"{name}'s game {game.game!r} needs NLTK's corpus {reason!r}, which the sandbox does not find. Install it with: "
            f"python -m nltk.downloader -d {Path(sysconfig.get_path('purelib')) / _CORPORA} {reason}"
        )
    return InvalidArgumentError(f"{name}'s game {game.game!r} can't be played: {reason}. {_REMEDIES[kind]}")


def as_text(arguments: object) -> str:
    """Write the arguments of a game as the text of a dictionary. Equal arguments give the same text.

    Raises:
        InvalidArgumentError: If the arguments are not plain data by name.
    """
    if isinstance(arguments, Mapping) and all(isinstance(name, str) for name in arguments):
        text = repr({name: arguments[name] for name in sorted(arguments)})
        try:
            if ast.literal_eval(text) == dict(arguments):
                return text
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            pass
    raise InvalidArgumentError(
        f"arguments must map names to numbers, texts, lists and other plain data, got {arguments!r}"[:300]
    )
