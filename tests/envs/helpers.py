"""Small data sets, scripted policies and comparisons for the environments' tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rlvr_envs import ByteTokenizer, Reply, Rules, TokenStreams, TokenVectorEnv
from verifiers import Message, Outcome, Problem, Verdict

EOS = ByteTokenizer.eos_token
PROBLEMS = [Problem(f"p{index}", "Q" * (index + 1), chr(ord("a") + index)) for index in range(5)]


class CountLetters:
    """Scores a completion by how many of its characters are the problem's letter."""

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        return Verdict(float(completion.count(str(problem.reference))), Outcome.SCORED, completion)


def streams(num_streams: int = 1, problems: Sequence[Problem] = PROBLEMS, **rules: Any) -> TokenStreams:
    defaults: dict[str, Any] = {
        "tokenizer": ByteTokenizer(),
        "render_prompt": lambda problem: problem.prompt,
        "max_prompt_tokens": 8,
        "max_new_tokens": 6,
        "verifier": CountLetters(),
    }
    return TokenStreams(list(problems), Rules(**{**defaults, **rules}), num_streams)


def vector_env(num_envs: int, **rules: Any) -> TokenVectorEnv:
    return TokenVectorEnv(streams(num_envs, **rules))


def says(text: str, *, reward: float = 0.0) -> Reply:
    return Reply((Message("user", text),), reward)


def text_tokens(text: str) -> list[int]:
    return list(text.encode())


def two_bs(tokens: np.ndarray, prompt_length: int, problem: Problem) -> bool:
    """Over when the policy's tokens hold two b's."""
    return int((tokens[prompt_length:] == ord("b")).sum()) >= 2


def visible(observation: dict[str, np.ndarray], row: int | None = None) -> list[int]:
    """The tokens of an observation without its padding."""
    tokens, length = observation["tokens"], observation["length"]
    if row is not None:
        tokens, length = tokens[row], length[row]
    count = int(length[0])
    assert (tokens[count:] == 0).all()
    return list(map(int, tokens[:count]))
