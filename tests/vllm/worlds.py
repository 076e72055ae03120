"""A tiny model, and environments that it can learn in a few steps."""

from __future__ import annotations

from typing import Any

from agents import CausalLMPolicy, PolicyConfig, tiny_model
from rlvr_envs import CharTokenizer, Rules, TokenStreams, TokenVectorEnv
from verifiers import Outcome, Problem, Verdict

TOKENIZER = CharTokenizer("0123456789+-*=Q")
CONTEXT = 64
PROMPTS = ("1+1=", "12*3=", "7-5=", "QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ=")
"""The last is longer than a block of the engine's cache."""


def starts_with_seven(completion: str, problem: Problem) -> Verdict:
    right = completion.startswith("7")
    return Verdict(float(right), Outcome.CORRECT if right else Outcome.INCORRECT, completion)


def world(num_envs: int, **rules: Any) -> TokenVectorEnv:
    problems = [Problem(f"p{index}", text, "7") for index, text in enumerate(PROMPTS)]
    defaults: dict[str, Any] = {
        "tokenizer": TOKENIZER,
        "render_prompt": lambda problem: problem.prompt,
        "max_prompt_tokens": max(map(len, PROMPTS)),
        "max_new_tokens": 6,
        "verifier": starts_with_seven,
    }
    return TokenVectorEnv(TokenStreams(problems, Rules(**{**defaults, **rules}), num_envs), copy=False)


def learner(*, temperature: float = 0.7, spare_tokens: int = 0, seed: int = 0, **settings: Any) -> CausalLMPolicy:
    """A policy; `spare_tokens` are in the model and not in the vocabulary."""
    size = TOKENIZER.vocab_size
    model = tiny_model(
        size + spare_tokens, seed=seed, layers=2, hidden_size=64, heads=2, intermediate_size=128, max_tokens=CONTEXT
    )
    return CausalLMPolicy(model, PolicyConfig(temperature=temperature, vocab_size=size, **settings))
