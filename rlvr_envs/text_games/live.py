"""Games in progress, each in a process in the sandbox, so that a turn does not need a replay.

Games in progress are only a cache of a pure function, `library.replay`. A game is replayed from its start if an episode
continues from an earlier turn, or if the game's process does not answer or has ended.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from verifiers.sandbox import LiveProgram, ProgramEndedError

_ANSWER_S = 60.0
"""Seconds after which a game that does not answer is replayed. A game that computes for so long exceeds its limit on processor
time."""


class LiveGames:
    """Games in progress, by the turns so far. Only the latest games are kept.

    Args:
        most: Maximum number of games to keep.
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
        """Ask the process that has played all turns, or all turns but the last; if there is none, ask a new process.

        Args:
            game: The game.
            turns: All turns.
            start: Starts a process for a new game.
            question: Returns the question for a process that knows a given number of turns; -1 means a new process.

        Returns:
            The answer, and a function that keeps the process for the next question. None if there is no answer.
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
