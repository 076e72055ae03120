"""Games that go on in a process of their own: they say what a game says that is played again, and nothing depends on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rlvr_envs.tasks import GEMGames, TextArena
from rlvr_envs.text_games import TextGameVerifier, library
from rlvr_envs.text_games.library import Said, TextGame, replay
from verifiers import Completion, Message, Problem, VerifierFailureError
from verifiers.sandbox import LiveProgram, ProgramEndedError

WORDS = ("[up]", "[1]", "[1 2]", "[A B]", "[A C]", "[e]", r"\boxed{up}", r"\boxed{3}", r"\boxed{A C}", "", "[²]")
ALONE = [
    (TextArena, "GuessTheNumber-v0"),
    (TextArena, "TowerOfHanoi-v0"),
    (TextArena, "2048-v0"),
    (GEMGames, "game:GuessTheNumber-v0-easy"),
    (GEMGames, "game:TowerofHanoi-v0-easy"),
    (GEMGames, "game:Minesweeper-v0-easy"),
]


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> Iterator[None]:
    yield
    replay.cache_clear()
    library._live_games.cache_clear()


def turns_alone(game: TextGame, number: int) -> Iterator[tuple[Said, ...]]:
    """The turns of one episode, from the first to where it ends."""
    turns: tuple[Said, ...] = ()
    for at in range(8):
        turns = (*turns, Said(WORDS[(at * 5 + number) % len(WORDS)]))
        yield turns
        if replay(game, turns).over:
            return


def by_replay(game: TextGame, turns: tuple[Said, ...]) -> Any:
    """What turns lead to when no game goes on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "_play_on", lambda *_: None)
        return replay.__wrapped__(game, turns)


@pytest.mark.parametrize(("cls", "name"), ALONE)
def test_a_game_that_goes_on_is_the_game_played_again(cls: Any, name: str) -> None:
    dataset = cls(game=name)
    episodes = [list(turns_alone(TextGame(*dataset[at].reference), at)) for at in range(3)]
    lengths = max(map(len, episodes))
    replay.cache_clear()
    for at in range(lengths):  # episodes side by side, as rows of a batch
        for number, episode in enumerate(episodes):
            if at < len(episode):
                game = TextGame(*dataset[number].reference)
                assert replay(game, episode[at]) == by_replay(game, episode[at])
    for number, episode in enumerate(episodes):
        said = [Message("assistant", turn.text) for turn in episode[-1]]
        judged = [
            TextGameVerifier()(Completion(said[-1].content, tuple(said)), dataset[number])
            for _ in range(2)
            if replay.cache_clear() is None
        ]
        assert judged[0] == judged[1]


def test_a_process_is_asked_for_one_turn_and_forks_are_played_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    ask = LiveProgram.ask

    def noted(self: LiveProgram, question: str, timeout_s: float) -> str:
        asked.append(question)
        return ask(self, question, timeout_s)

    monkeypatch.setattr(LiveProgram, "ask", noted)
    game = TextGame(*TextArena(game="GuessTheNumber-v0")[0].reference)
    secret = next(at for at in range(1, 21) if replay(game, (Said(f"[{at}]"),)).won)
    wrong = [Said(f"[{at}]") for at in range(1, 21) if at != secret]
    replay.cache_clear()
    library._live_games.cache_clear()
    asked.clear()
    states = [replay(game, tuple(wrong[:count])) for count in (1, 2, 3)]
    assert [question.count('[true, "[') for question in asked] == [1, 1, 1]
    other = replay(game, (wrong[0], wrong[4]))  # the game is past this turn, so that another begins
    assert asked[-1].count('[true, "[') == 2
    assert other == by_replay(game, (wrong[0], wrong[4]))
    replay.cache_clear()
    assert [replay(game, tuple(wrong[:count])) for count in (1, 2, 3)] == states


@pytest.mark.parametrize("fault", ["ends", "no answer", "half"])
@pytest.mark.parametrize("at", range(3))
def test_a_process_that_is_lost_costs_nothing(fault: str, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    game = TextGame(*GEMGames(game="game:GuessTheNumber-v0-easy")[0].reference)
    episode = list(turns_alone(game, 9))
    expected = [by_replay(game, turns) for turns in episode]
    replay.cache_clear()
    ask, count = LiveProgram.ask, 0

    def lost(self: LiveProgram, question: str, timeout_s: float) -> str:
        nonlocal count
        count += 1
        if count != at + 1:
            return ask(self, question, timeout_s)
        if fault == "no answer":
            raise ProgramEndedError("no answer")
        if fault == "ends":
            self.close()
            raise ProgramEndedError("the program has ended")
        return ask(self, question, timeout_s)[:20]

    monkeypatch.setattr(LiveProgram, "ask", lost)
    assert [replay(game, turns) for turns in episode] == expected
    assert count >= min(len(episode), at + 1)


def test_a_share_of_turns_is_played_again_and_what_differs_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    problem: Problem = TextArena(game="GuessTheNumber-v0")[0]
    game = TextGame(*problem.reference)
    many = [(Said(f"[{first}]"), Said(f"[{second}]")) for first in range(40) for second in range(40)]
    assert 0.5 < sum(library._is_checked(game, turns) for turns in many) * library._CHECKED / len(many) < 2
    monkeypatch.setattr(library, "_CHECKED", 1)
    assert replay(game, (Said("[21]"),)).text
    replay.cache_clear()
    play_on = library._play_on
    monkeypatch.setattr(library, "_play_on", lambda *asked: {**(play_on(*asked) or {}), "text": "another"})
    with pytest.raises(VerifierFailureError, match="leads to something else when it is played again"):
        replay(game, (Said("[22]"),))
