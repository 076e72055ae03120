"""Blackjack: after a prompt such as `blackjack, you 9 7, dealer T, hit or stand:`, the answer to a turn is the drawn cards."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from rlvr_envs.envs import TaskEnv, TaskSpec, procedural_task
from rlvr_envs.games import GameVerifier, Move, game_rules
from rlvr_envs.procedural.base import GeneratedProblem, ProblemShape, ProceduralDataset, in_base
from verifiers import Problem

RANKS = "A23456789TJQK"
_DRAWN = 40
"""Number of cards of a problem. This is enough, since a player has at most 21 cards before the last card, and a dealer at most
17."""
_MOVE = re.compile(r"hit|stand")
_MOST_TURNS = 21


class Deck(NamedTuple):
    """The cards in the order of dealing: two for the player, two for the dealer, and then the cards to be drawn."""

    cards: str


def total(cards: str) -> tuple[int, bool]:
    """The points of some cards, and whether an ace among them counts 11."""
    hard = sum(min(RANKS.index(card) + 1, 10) for card in cards)
    soft = "A" in cards and hard <= 11
    return hard + 10 * soft, soft


def play(reference: Deck, moves: Sequence[str]) -> Move:
    """Carry out the last move: the last `hit` or `stand` in the turn, or `stand` if the turn contains neither."""
    cards = reference.cards
    hand, dealer, rest = cards[:2], cards[2:4], cards[4:]
    said = (_MOVE.findall(moves[-1].lower()) or ["stand"])[-1]
    # All earlier moves were hits, since otherwise the game would be over.
    drawn = len(moves) if said == "hit" else len(moves) - 1
    hand, rest = hand + rest[:drawn], rest[drawn:]
    if total(hand)[0] > 21:
        return Move("bust", over=True)
    if said == "hit":
        return Move(f"you {' '.join(hand)}")
    while total(dealer)[0] < 17:
        dealer, rest = dealer + rest[0], rest[1:]
    return Move(f"dealer {' '.join(dealer)}", over=True, score=_score(_rank(hand), _rank(dealer)))


def _rank(hand: str) -> tuple[int, bool]:
    """The key that ranks hands: first the points, with 0 for a bust hand, and then whether the hand is 21 with two cards."""
    points = total(hand)[0]
    return (0, False) if points > 21 else (points, points == 21 and len(hand) == 2)


def _score(player: tuple[int, bool], dealer: tuple[int, bool]) -> float:
    return 0.5 if player == dealer else float(player > dealer)


@dataclass(frozen=True)
class Blackjack(ProceduralDataset[str]):
    """Hands of blackjack.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems, each different; for the default see `ProceduralDataset`.
    """

    name: ClassVar[str] = "blackjack"
    verifier: ClassVar[tuple[str, Mapping[str, object]]] = ("rlvr_envs.tasks.blackjack:BlackjackVerifier", {})

    hidden: ClassVar[bool] = True

    def _describe(self) -> ProblemShape:
        prompt = _prompt("TTT")
        return ProblemShape(
            difficulty="infinite-deck",
            max_prompt_bytes=len(prompt),
            max_answer_bytes=len("stand"),
            prompt_alphabet=prompt + RANKS + "\n",
            answer_alphabet="histand",
        )

    @property
    def _space(self) -> int:
        return int(len(RANKS) ** _DRAWN)

    def _at(self, code: int) -> str:
        return "".join(RANKS[rank] for rank in in_base(code, len(RANKS), _DRAWN)[1])

    def in_words(self, problem: Problem) -> str:
        """The rules of the game in words, and its start."""
        yours, dealers = (
            str(problem.prompt).removeprefix("blackjack, you ").removesuffix(", hit or stand:").split(", dealer ")
        )
        return (
            f"Play a hand of blackjack. You have {yours}, and the dealer shows {dealers}. T, J, Q and K count 10, and an ace, "
            "A, counts 1 or 11. With more than 21 you lose. Each of your turns is one word: hit, to draw a card, or stand, "
            "after which the dealer draws to 17. Hit or stand?"
        )

    def _task(self, content: str) -> GeneratedProblem:
        return GeneratedProblem(_prompt(content), Deck(content), None)


def _prompt(cards: str) -> str:
    return f"blackjack, you {cards[0]} {cards[1]}, dealer {cards[2]}, hit or stand:"


class BlackjackVerifier(GameVerifier):
    """Scores a hand: 1 for a win, 1/2 for equal hands, 0 for a loss."""

    def __init__(self) -> None:
        super().__init__(play)


def _room(dataset: Blackjack) -> tuple[int, int]:
    told = sum(len("\nyou \n") + 2 * cards for cards in range(3, _MOST_TURNS + 1))
    return _MOST_TURNS * len("hit.") + len("stand"), told


class BlackjackEnv(TaskEnv):
    """A hand of blackjack.

    Spaces, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Each turn of the policy is `hit` or `stand`. The answer to `hit` is the policy's cards so far. After `stand` the dealer
    draws to 17, and stands on a soft 17. If a turn contains several of these words, the last word counts; a turn with neither
    word means `stand`. Cards are drawn with replacement, so that only the cards on the table matter and the best strategy is
    known exactly: this strategy scores 0.4766 on average. An ace counts 11 unless the hand would then be bust, and 21 with two
    cards beats any other 21. There is no betting, doubling or splitting. Problems are generated: nothing is downloaded.

    ## Starting State
    The player's two cards, and one of the dealer's cards.

    ## Reward
    1 for a win, 1/2 for equal hands, 0 for a loss.

    ## Episode End
    Terminates when the policy stands, or has more than 21; truncates if `max_new_tokens` are used up first.

    ## Arguments
    All of `rlvr_envs.Settings`, `seed` and `size` of the data set. Defaults: `split="train"`, `max_new_tokens` and
    `max_inserted_tokens` as many as a game needs.
    """

    task: ClassVar[TaskSpec] = procedural_task(Blackjack, max_new_tokens=89, rules=game_rules(play, _room))
