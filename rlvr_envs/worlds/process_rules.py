"""A finite decision process as a token environment. An action is one token, and the answer to an action is the next state.

The return of an episode equals the return in the process. The verdict gives the reward of the last action of an episode, and
the answers give all other rewards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlvr_envs.tokenizers import Tokenizer
from rlvr_envs.types import FixedActions, Reply, Turn
from rlvr_envs.worlds.process_data import ProcessDataset, start_of
from rlvr_envs.worlds.rules import action_tokens
from verifiers import Message, Outcome, Problem, Verdict, dialogue_of


def answer_action(turns: Sequence[Turn], problem: Problem) -> Reply | None:
    """An `Interaction` that answers with the state after the last action, or ends the episode."""
    start = start_of(problem)
    process, made = start.process, len(turns) - 1
    state = process.index[turns[-2].reply[0].content[:-1]] if made else start.state
    state, reward = process.draw(state, process.actions.index(turns[-1].text), start.luck, made)
    if process.ends_at(state):
        return None
    return Reply((Message("user", f"{process.states[state]}:"),), reward)


def is_over(tokens: NDArray[np.int32], prompt_length: int, problem: Problem) -> bool:
    """An `EndCondition` for processes in which every action ends the episode."""
    return len(tokens) > prompt_length


class ProcessVerifier:
    """Judges a completion by the end of the episode.

    The score is the reward of the action that ended the episode, or 0 if the episode did not end. The outcome is `CORRECT` if
    the final state is one of the process's `goals`, `NO_ANSWER` if there was no action, and otherwise `INCORRECT`. The answer
    is the actions up to the end; `detail["state"]` is the state after these actions. For bandits, `detail["regret"]` is the sum
    of the regrets of all actions.
    """

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion."""
        start = start_of(problem)
        process, state, made, reward, regret = start.process, start.state, "", 0.0, 0.0
        for character in _said(completion):
            if character in process.actions and not process.ends_at(state):
                action = process.actions.index(character)
                regret += process.regret(state, action)
                state, reward = process.draw(state, action, start.luck, len(made))
                made += character
        if not made:
            return Verdict.of(Outcome.NO_ANSWER)
        outcome = Outcome.CORRECT if state in process.goals else Outcome.INCORRECT
        detail = {"state": process.states[state], **({"regret": regret} if process.bandit else {})}
        return Verdict(reward if process.ends_at(state) else 0.0, outcome, made, detail)


def _said(completion: str) -> str:
    """The text of all the policy's turns."""
    return "".join(message.content for message in dialogue_of(completion) if message.role == "assistant")


def process_rules(dataset: ProcessDataset, tokenizer: Tokenizer) -> Mapping[str, Any]:
    """The fields of `Rules` that turn a data set of episodes into an environment."""
    process = dataset.process
    legal = np.zeros(tokenizer.vocab_size, dtype=np.int8)
    legal[action_tokens(tokenizer, process.actions)] = 1
    shared = {"legal_actions": FixedActions(legal), "max_new_tokens": dataset.max_new_tokens}
    if process.one_action:
        return {**shared, "end_condition": is_over}
    return {**shared, "interaction": answer_action, "turn_tokens": 1, "max_inserted_tokens": _room(dataset, tokenizer)}


def _room(dataset: ProcessDataset, tokenizer: Tokenizer) -> Callable[[int], int]:
    """Make a function that maps a number of actions to the maximum number of tokens of their answers."""
    longest = max(len(tokenizer.encode(f"{state}:")) for state in dataset.process.shown)
    return lambda actions: actions * longest
