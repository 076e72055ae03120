"""A game for two in words, in the place of those that are played in the sandbox: who takes the last of some stones wins."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import pytest

from rlvr_envs.text_games import Library, TextGame
from rlvr_envs.text_games.library import Played, Said
from verifiers import VerifierFailureError

STONES = 5
_TAKEN = {"1": 1, "2": 2, "[1]": 1, "[2]": 2}


def install(monkeypatch: pytest.MonkeyPatch) -> Stones:
    """Put the game in the place of the sandbox and the library."""
    stones = Stones()
    for module in ("dataset", "play", "two_players"):
        monkeypatch.setattr(importlib.import_module(f"rlvr_envs.text_games.{module}"), "replay", stones)
    monkeypatch.setattr("rlvr_envs.text_games.two_players.first_legal", lambda game, turns, moves: "[1]")
    monkeypatch.setattr(Library, "require", lambda library, purpose: None)
    return stones


def game(seat: int = 0, opening: tuple[str, ...] = ()) -> TextGame:
    """A game of stones."""
    return TextGame("textarena", "Stones-v0", 1, "{}", "auto", seat, opening)


class Stones:
    """Plays it again from its turns, each of which is 1 or 2 stones; a second wrong move in a row loses."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, game: TextGame, turns: Sequence[Said]) -> Played:
        self.asked += 1
        left, player, warned, winner, forfeits = STONES, 0, False, None, -1
        views = [[f"You are player {at}, {STONES} stones:"] for at in range(2)]
        for said in (*(Said(text, own=False) for text in game.opening), *turns):
            if said.own != (player == game.seat) or winner is not None:
                raise VerifierFailureError("a turn was that of the other player")
            views[player] += [said.text, ""]
            taken = _TAKEN.get(said.text, 0)
            if not taken and warned:
                winner, forfeits = 1 - player, player
            elif not taken:
                warned = True
                views[player][-1] = "1 or 2"
            else:
                left, warned, player = left - taken, False, 1 - player
                views[player][-1] += f" {taken} taken, {max(left, 0)} left"
                winner = 1 - player if left <= 0 else None
        over = winner is not None
        own = views[game.seat]
        view = None if over or player == game.seat else tuple(views[player])
        reward = 0.0 if not over else 1.0 if winner == game.seat else -1.0
        return Played("" if view else own[-1], reward, over, reward == 1.0, 2, view, forfeits == 1 - game.seat)
