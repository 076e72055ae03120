"""Games that go on in new contexts: what the policy sums up is no move, and the request for it is none of the opponent's."""

from __future__ import annotations

import random
from typing import Any

import gymnasium
import pytest

from rlvr_envs import Turn
from rlvr_envs.contexts import SummaryRequest, without_summaries
from verifiers import Completion, Message


@pytest.mark.parametrize("name", ["GuessNumber", "TicTacToe", "ConnectFour"])
def test_a_game_is_worth_what_it_is_without_summaries(name: str) -> None:
    env: Any = gymnasium.make(f"rlvr/{name}-v0").unwrapped
    rules = env.streams.rules
    outcomes = set()
    for index in range(40):
        problem, chance = env.streams.dataset[index], random.Random(index)
        turns: list[Turn] = []
        plain: list[Message] = []
        summed: list[Message] = []
        ends = False
        while not ends:
            text = str(chance.randrange(1, 10))
            plain.append(Message("assistant", text))
            summed.append(plain[-1])
            turns.append(Turn([], text))  # type: ignore[arg-type] # no interaction reads tokens
            reply = rules.interaction(turns, problem)
            turns[-1] = Turn([], text, reply=reply.messages)  # type: ignore[arg-type]
            ends = reply.ends
            plain += reply.messages
            summed += reply.messages
            if not ends:
                summed += [SummaryRequest("user", "Sum up."), Message("assistant", "3")]
        verdict = rules.verifier(Completion(text, tuple(plain)), problem)
        assert rules.verifier(Completion(text, tuple(summed)), problem) == verdict
        outcomes.add((verdict.outcome, verdict.score))
    assert len(outcomes) > 1


def test_requests_and_summaries_are_left_out() -> None:
    said = [
        Message("assistant", "1"),
        Message("user", "no"),
        SummaryRequest("user", "?"),
        Message("assistant", "one is wrong"),
    ]
    assert without_summaries([*said, Message("assistant", "2")]) == (*said[:2], Message("assistant", "2"))
    assert without_summaries(said[:3]) == tuple(said[:2])
    assert without_summaries(said[:2]) == tuple(said[:2])
