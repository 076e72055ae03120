"""Games that go on: a process in the sandbox for each, so that a turn costs a turn and not the whole game again.

They are a cache of a pure function, `library.replay`, and nothing else. A game that is asked for from another turn on, that is
not answered, or whose process has ended, is played again from its beginning.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from verifiers.sandbox import LiveProgram, ProgramEndedError

_ANSWER_S = 60.0
"""Seconds after which a game that does not answer is played again; one that computes so long has exceeded its limit before."""


class LiveGames:
    """Games by the turns played so far; the latest are kept.

    Args:
        most: Maximum number of games that are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._games: OrderedDict[Hashable, LiveProgram] = OrderedDict()
        self._lock = threading.Lock()

    def ask(
        self,
        game: Hashable,
        turns: tuple[Hashable, ...],
        start: Callable[[], LiveProgram],
        question: Callable[[int], str],
    ) -> tuple[str, Callable[[], None]] | None:
        """Ask the game that has been played so far, or up to the last turn, or a new one.

        Args:
            game: The game.
            turns: All turns.
            start: Starts a process for a new game.
            question: Returns the question for a process that knows that many of the turns; -1 for a new process.

        Returns:
            The answer, and a function that keeps the process for the next question; None without an answer.
        """
        known, program = self._take(game, turns)
        try:
            program = program or start()
            answer = program.ask(question(known), _ANSWER_S)
        except ProgramEndedError:
            if program is not None:
                program.close()
            return None
        return answer, lambda: self._keep((game, turns), program)

    def _take(self, game: Hashable, turns: tuple[Hashable, ...]) -> tuple[int, LiveProgram | None]:
        with self._lock:
            for known in (len(turns), len(turns) - 1):
                program = self._games.pop((game, turns[:known]), None)
                if program is not None:
                    return known, program
        return -1, None

    def _keep(self, key: Hashable, program: LiveProgram) -> None:
        with self._lock:
            dropped = [self._games.pop(key, None)]
            self._games[key] = program
            if len(self._games) > self._most:
                dropped.append(self._games.popitem(last=False)[1])
        for other in dropped:
            if other is not None:
                other.close()
