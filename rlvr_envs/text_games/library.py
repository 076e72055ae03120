"""The two libraries of games, and asking the program in the sandbox that plays them."""

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
"""Limit on the processor time, in seconds, of a game up to its last turn; for a game that goes on, over all turns."""
_LIVE = 64
"""Number of games that go on at the same time, each in a process of its own with some 6 MiB of memory."""
_CHECKED = 256
"""One in so many turns of a game that goes on is compared with the game played again."""
_SHOWN = 600
_MEMORY_MIB = 2048
_CORPORA = "nltk_data"
_KEPT = 1024
"""Number of states that are kept: the verifier asks for the one that the last turn led to, which was answered before."""


@dataclass(frozen=True)
class Library:
    """A library of games."""

    name: str
    """The name as users write it."""
    module: str
    distribution: str
    version: str
    """The supported release: others play and pay differently."""
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
    """One game, with everything needed to play it again."""

    library: str
    """`"textarena"` or `"gem"`."""
    game: str
    """Its id there."""
    seed: int
    arguments: str
    """Further arguments of its environment beside the id, as the text of a dictionary."""
    isolation: str
    """Isolation that the sandbox must have."""
    seat: int = 0
    """The policy's player, if there are two."""
    opening: tuple[str, ...] = ()
    """The other player's turns before the policy's first."""


class Said(NamedTuple):
    """A turn of one of two players."""

    text: str
    own: bool = True
    """Whether it is the policy's."""


@dataclass(frozen=True, slots=True)
class Played:
    """The result of the last of some turns."""

    text: str
    """The game's message to the policy; empty if the other player is to move."""
    reward: float
    """The reward of the turn."""
    over: bool
    won: bool
    players: int
    view: tuple[str, ...] | None
    """The game's messages to the other player and that player's turns, alternating, if it is to move."""
    forfeit: bool
    """Whether the other player lost by a wrong move, after a warning."""


@functools.lru_cache(maxsize=_KEPT)
def replay(game: TextGame, turns: tuple[Said, ...]) -> Played:
    """Play a game again; without turns, return its beginning after the other player's opening.

    Raises:
        UnknownNameError: If the library has no such game.
        InvalidArgumentError: If the game can't be played here: it takes more players, other arguments, or resources that are
            not available.
        SandboxUnavailableError: If the system provides less isolation than requested.
        VerifierFailureError: If the game raises at a turn, a turn is that of the wrong player, or a limit of time and memory is
            passed.
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
    """The first of some moves that a game takes after some turns; None if it takes none of them.

    Raises:
        RLVRError: As for `replay`.
    """
    reply = _play_on(game, turns, moves) or _ask(game, turns, moves)
    legal: str | None = reply["legal"]
    return legal


def _is_checked(game: TextGame, turns: Sequence[Said]) -> bool:
    """Whether a turn is among those after which a game that goes on is played again and compared."""
    return zlib.crc32(repr((game, turns)).encode("utf-8", "surrogatepass")) % _CHECKED == 0


def _request(game: TextGame, turns: Sequence[Said], moves: Sequence[str], *, known: int = -1) -> str:
    """The request to the program in the sandbox, which knows `known` turns already; -1 if it knows nothing."""
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
    """Ask the process in which the game goes on; None if no process answers."""
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
    """The games that go on, separate for each process."""
    return LiveGames(_LIVE)


def _ask(game: TextGame, turns: Sequence[Said], moves: Sequence[str]) -> dict[str, Any]:
    """Play a game again in the sandbox."""
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
    """The sandbox with the library loaded, and with NLTK's corpora if they are beside the packages."""
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
    """The arguments of a game as the text of a dictionary, the same for equal ones.

    Raises:
        InvalidArgumentError: If they are not plain data by name.
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
