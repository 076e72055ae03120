"""Every game of the two libraries: those that play here do so the same way each time, the others are refused for a reason."""

from __future__ import annotations

import math
import re
import sys
from typing import Any

import pytest

from rlvr_envs import tasks
from rlvr_envs.tasks import GEMGames
from rlvr_envs.text_games.library import replay
from tests.docs import DOCS
from tests.text_games.conftest import names_of
from verifiers import InvalidArgumentError

MOVES = ("[up]", "[1]", "[1 2]", r"\boxed{up}", r"\boxed{1 2}", "", "[999999999999999999999]", "[²]", "x" * 3000)


def games_of(page: str) -> dict[str, str]:
    """Every game that the table of a page names, with what the page says of it: `yes`, or why not."""
    text = (DOCS / "environments" / page).read_text(encoding="utf-8")
    rows = re.findall(r"^\| (yes|no: .*?|not tried: .*?) \| (.*?) \|$", text, re.MULTILINE)
    return {game: said for said, games in rows for game in re.findall(r"`(\S+?)`", games)}


TEXTARENA_GAMES, GEM_GAMES = games_of("textarena.md"), games_of("gem.md")
REASONS = {
    "no: for several players": r"players|player",
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
    if said != "yes":
        with pytest.raises(InvalidArgumentError, match=REASONS[said]):
            cls(game=game)
        return
    problem = cls(game=game)[0]
    played: tuple[str, ...] = ()
    while not (state := replay(problem.reference, played)).over and len(played) < len(MOVES):
        assert state.text.strip()
        played = (*played, MOVES[len(played)])
    assert played
    assert math.isfinite(state.reward)
    replay.cache_clear()
    assert replay(problem.reference, played) == state


def test_the_pages_name_every_game() -> None:
    assert TEXTARENA_GAMES.keys() == {*map(base, TEXTARENA)}
    assert {*map(base, GEM_GAMES)} == {*map(base, GEM)}


@pytest.mark.parametrize("game", TEXTARENA)
def test_a_game_of_textarena_plays_or_is_refused(game: str) -> None:
    said = TEXTARENA_GAMES[base(game)]
    if "3.11" in said and sys.version_info >= (3, 12):
        pytest.skip("it compiles here, and is no game that the page speaks of")
    check(tasks.TextArena, game, said)


@pytest.mark.parametrize("game", GEM)
def test_a_game_of_gem_plays_or_is_refused(game: str) -> None:
    said = GEM_GAMES.get(game, GEM_GAMES[base(game)])
    if said.startswith("not tried"):
        pytest.skip("each answer takes 10 s and more")
    check(GEMGames, game, said)
