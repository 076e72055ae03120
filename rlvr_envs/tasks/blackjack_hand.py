"""`BlackjackHand`: hit or stick against a dealer."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from rlvr_envs.envs import StateEnv, TaskEnv, TaskSpec, process_task
from rlvr_envs.worlds.process import Branch, Process
from rlvr_envs.worlds.process_data import ProcessDataset
from verifiers import Problem

_CARDS = {card: (4 if card == 10 else 1) / 13 for card in range(1, 11)}
"""The probability of each card from an infinite deck; an ace is card 1."""
_STANDS = 17
WIN, DRAW, LOSS = "win", "draw", "loss"


class Hand(NamedTuple):
    """The value of some cards."""

    total: int
    """The sum of the cards, in which an ace counts as 11 if the sum then does not exceed 21."""
    soft: bool = False
    """Whether an ace counts as 11."""
    natural: bool = False
    """Whether the first two cards make 21."""

    def hit(self, card: int) -> Hand:
        """The hand with another card."""
        total, soft = self.total + card, self.soft
        if card == 1 and total + 10 <= 21:
            total, soft = total + 10, True
        if total > 21 and soft:
            total, soft = total - 10, False
        return Hand(total, soft)

    def __str__(self) -> str:
        return "natural" if self.natural else f"{self.total}{'s' if self.soft else ''}"


def deal(*cards: int) -> Hand:
    """The hand of two cards."""
    hand = Hand(0)
    for card in cards:
        hand = hand.hit(card)
    return hand._replace(natural=hand.total == 21)


def dealer_ends(shown: int) -> Mapping[Hand, float]:
    """The probability of each final hand of the dealer, who hits below 17, given the card shown."""
    ends: defaultdict[Hand, float] = defaultdict(float)

    def go_on(hand: Hand, probability: float) -> None:
        if hand.total >= _STANDS:
            ends[hand] += probability
            return
        for card, chance in _CARDS.items():
            go_on(hand.hit(card), probability * chance)

    for card, chance in _CARDS.items():
        go_on(deal(shown, card), chance)
    return ends


def outcome(player: Hand, dealer: Hand) -> int:
    """1 if the player wins after sticking, -1 if the dealer wins, 0 for a draw.

    A player's natural beats any 21 except a natural.
    """
    if player.natural:
        return 0 if dealer.natural else 1
    if dealer.total > 21:
        return 1
    return (player.total > dealer.total) - (player.total < dealer.total)


@dataclass(frozen=True)
class BlackjackHand(ProcessDataset):
    """Hands of blackjack. A problem is a hand with the problem's own chance events.

    Args:
        split: `"train"` or `"test"`, which differ in their chance events.
        seed: Seed of the chance events.
        size: Number of problems; by default 100 000 for train and 1 000 for test.
    """

    name: ClassVar[str] = "blackjack_hand"

    @functools.cached_property
    def process(self) -> Process:
        """The process.

        Its states are pairs of the player's hand and the dealer's card, such as `18s/A`, and three final states.
        """
        return _process()

    def in_words(self, problem: Problem) -> str:
        """The rules in words, and the start of the hand."""
        yours, dealers = str(problem.prompt).removesuffix(":").split("/")
        return (
            f"Play a hand of blackjack. You have {yours}, where s stands for an ace that counts 11, and the dealer shows "
            f"{dealers}. With more than 21 you lose. Each of your turns is one letter: H to draw a card, or S to stick, after "
            "which the dealer draws to 17. H or S?"
        )

    @property
    def starts(self) -> Mapping[int, float]:
        """The probability of each first state: two cards of the player and one card of the dealer."""
        return _starts()

    @property
    def max_new_tokens(self) -> int:
        """The default budget, 21 moves, which is enough for any hand: even with aces alone, the 20th hit goes over 21."""
        return 21


def _hands() -> list[Hand]:
    hard, soft = (Hand(total) for total in range(4, 22)), (Hand(total, soft=True) for total in range(12, 22))
    return [*hard, *soft, Hand(21, soft=True, natural=True)]


def _written(hand: Hand, shown: int) -> str:
    return f"{hand}/{'A' if shown == 1 else shown}"


@functools.cache
def _process() -> Process:
    keys = [(hand, shown) for hand in _hands() for shown in _CARDS]
    names = (*(_written(*key) for key in keys), WIN, DRAW, LOSS)
    number = {name: state for state, name in enumerate(names)}
    ends = {shown: dealer_ends(shown) for shown in _CARDS}
    table = [(_hit(hand, shown, number), _stick(hand, ends[shown], number)) for hand, shown in keys]
    return Process(names, "HS", (*table, (), (), ()), frozenset({number[WIN]}))


def _hit(hand: Hand, shown: int, number: Mapping[str, int]) -> tuple[Branch, ...]:
    hands = {card: hand._replace(natural=False).hit(card) for card in _CARDS}
    return tuple(
        Branch(_CARDS[card], number[LOSS], -1.0)
        if after.total > 21
        else Branch(_CARDS[card], number[_written(after, shown)])
        for card, after in hands.items()
    )


def _stick(hand: Hand, ends: Mapping[Hand, float], number: Mapping[str, int]) -> tuple[Branch, ...]:
    chances = {1: 0.0, 0: 0.0, -1: 0.0}
    for dealer, probability in ends.items():
        chances[outcome(hand, dealer)] += probability
    names = {1: WIN, 0: DRAW, -1: LOSS}
    return tuple(Branch(chance, number[names[reward]], float(reward)) for reward, chance in chances.items())


@functools.cache
def _starts() -> Mapping[int, float]:
    starts: defaultdict[int, float] = defaultdict(float)
    for one, chance in _CARDS.items():
        for other, its_chance in _CARDS.items():
            for shown, shown_chance in _CARDS.items():
                starts[_process().index[_written(deal(one, other), shown)]] += chance * its_chance * shown_chance
    return dict(sorted(starts.items()))


class BlackjackHandEnv(TaskEnv):
    """One hand of blackjack: hit or stick.

    Observation space, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Blackjack as in Sutton & Barto 2018, example 5.1: the cards come from an infinite deck, the dealer shows one card, hits
    below 17 and sticks on a soft 17, and an ace counts as 11 if the total then does not exceed 21. A natural is 21 with the
    first two cards. The player's natural wins unless the dealer has a natural, too. Unlike in `rlvr/Blackjack-v0`, a dealer's
    natural only draws against the player's 21 with more cards. The answer to a hit is the resulting hand. `rlvr_envs.exact`
    computes the values of the best policy, and of any policy.

    ## Action Space
    The tokens of `H` (hit) and `S` (stick); no other token is legal. With the default tokenizer `"char"` these are the tokens 1
    and 2.

    ## Starting State
    `14/10:`: the player has 14, and the dealer shows a card that counts 10. `18s/A:`: the player has 18 with an ace that counts
    as 11, and the dealer shows an ace. `natural/7:`: the player has 21 with two cards. After a hit the text may be
    `14/10:H19/10:`. The hands and all further cards are drawn from the problem's seed.

    ## Reward
    1 for winning, 0 for a draw, -1 for losing or going over 21. The verdict is `CORRECT` if the hand is won.

    ## Episode End
    Termination: the player sticks or goes over 21. Truncation: never, unless `max_new_tokens` is lowered.

    ## Arguments
    All of `rlvr_envs.Settings`, `seed` (of the hands) and `size` of the data set. Defaults: `split="train"`,
    `tokenizer="char"`, `max_new_tokens=21`, `max_inserted_tokens` as many as the answers need.
    """

    task: ClassVar[TaskSpec] = process_task(BlackjackHand)


class BlackjackHandStateEnv(StateEnv):
    """`rlvr/BlackjackHand-v0` with numbers instead of tokens: a state is a hand with a dealer's card, or an end.

    Spaces, information and version history are those of `rlvr_envs.StateEnv`.

    ## Description
    The hands, rewards and ends of `rlvr/BlackjackHand-v0`. In 290 states the player hits or sticks; the other states are win,
    draw and loss.

    ## Action Space
    0: hit, 1: stick.

    ## Arguments
    `split` (`"train"`), `seed` and `size` as for `rlvr/BlackjackHand-v0`, and `max_steps` (21).
    """

    problems: ClassVar[type[BlackjackHand]] = BlackjackHand
