"""Every game of the two libraries: those that play here do so the same way each time, the others are refused for a reason."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from rlvr_envs import tasks
from rlvr_envs.tasks import GEMGames
from rlvr_envs.text_games import OPPONENTS, RandomMoves, TextSeat
from rlvr_envs.text_games.library import Said, replay
from rlvr_envs.text_games.two_players import let_play
from tests.docs import DOCS
from tests.text_games.conftest import names_of
from verifiers import InvalidArgumentError

MOVES = ("[up]", "[1]", "[1 2]", r"\boxed{up}", r"\boxed{1 2}", "", "[999999999999999999999]", "[²]", "x" * 3000)


def games_of(page: str) -> dict[str, str]:
    """Every game that the table of a page names, with what the page says of it: that it plays, or why not."""
    text = (DOCS / "environments" / page).read_text(encoding="utf-8")
    rows = re.findall(r"^\| (yes.*?|no: .*?|not tried: .*?) \| (.*?) \|$", text, re.MULTILINE)
    return {game: said for said, games in rows for game in re.findall(r"`(\S+?)`", games)}


TEXTARENA_GAMES, GEM_GAMES = games_of("textarena.md"), games_of("gem.md")
REASONS = {
    "no: for three players or more": r"[Pp]layer",
    "no: needs NLTK's corpora": r"needs NLTK's corpus '\w+', .* python -m nltk.downloader",
    "no: asks a model at a server": r"OpenRouter|OpenAI",
    "no: needs another package": r"No module named '(gym|pandas)'",
    "no: does not compile on Python 3.11": r"SyntaxError",
    "no: its files are not in the release": r"FileNotFoundError|No module named 'textarena",
    "no: fails when it is made": r"TypeError in __init__",
}


def base(game: str) -> str:
    """A game's name without its variant."""
    return game[: game.index("-v0") + 3]


TEXTARENA = sorted(name for name in names_of("textarena") if not name.endswith(("-raw", "-train")))
GEM = sorted(name for name in names_of("gem") if name.startswith("game:"))


def check(cls: Any, game: str, said: str) -> None:
    if not said.startswith("yes"):
        with pytest.raises(InvalidArgumentError, match=REASONS[said]):
            cls(game=game)
        return
    dataset = cls(game=game, seat=0 if "finds no move" in said else None)
    assert dataset.players == (2 if "two players" in said else 1)
    problem = dataset[0]
    turns = [*play_two(problem, said)] if dataset.players == 2 else [*play_one(problem)]
    state = replay(problem.reference, tuple(turns))
    assert math.isfinite(state.reward)
    replay.cache_clear()
    assert replay(problem.reference, tuple(turns)) == state


def play_one(problem: Any) -> Iterator[Said]:
    """Turns of an only player, most of them wrong."""
    played: tuple[Said, ...] = ()
    for move in MOVES:
        state = replay(problem.reference, played)
        if state.over:
            return
        assert state.text.strip()
        yield Said(move)
        played = (*played, Said(move))


def play_two(problem: Any, said: str) -> Iterator[Said]:
    """Turns of two players, of which the policy's are random, and after some turns wrong."""
    opponent: Any = (lambda seat: "[0]") if "finds no move" in said else OPPONENTS["random"]
    turns: tuple[Said, ...] = ()
    view = (problem.prompt,)
    for wrong in MOVES[:5]:
        own = Said(wrong)
        if len(view) < 5 and "finds no move" not in said:
            own = Said(RandomMoves()(TextSeat(problem.reference, turns, view)))
        state, others = let_play(problem.reference, (*turns, own), opponent, forfeits="scored")
        new = (own, *(Said(text, own=False) for text in others))
        turns, view = (*turns, *new), (*view, own.text, state.text)
        yield from new
        if state.over:
            return


def test_the_pages_name_every_game() -> None:
    assert {*map(base, TEXTARENA_GAMES)} == {*map(base, TEXTARENA)}
    assert TEXTARENA_GAMES.keys() <= {*map(base, TEXTARENA), *TEXTARENA}
    assert {*map(base, GEM_GAMES)} == {*map(base, GEM)}


@pytest.mark.parametrize("game", TEXTARENA)
def test_a_game_of_textarena_plays_or_is_refused(game: str) -> None:
    said = TEXTARENA_GAMES.get(game, TEXTARENA_GAMES[base(game)])
    if "3.11" in said and sys.version_info >= (3, 12):
        pytest.skip("it compiles here, and is no game that the page speaks of")
    check(tasks.TextArena, game, said)


@pytest.mark.parametrize("game", GEM)
def test_a_game_of_gem_plays_or_is_refused(game: str) -> None:
    said = GEM_GAMES.get(game, GEM_GAMES[base(game)])
    if said.startswith("not tried"):
        pytest.skip("each answer takes 10 s and more")
    check(GEMGames, game, said)
