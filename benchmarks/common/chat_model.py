"""A published chat model in benchmarks: questions for it, and completions that all have the full length."""

from __future__ import annotations

from typing import Any

from rlvr_envs import HuggingFaceTokenizer
from verifiers import Message, Problem

TEXTS = (
    "A library lends {} books on Monday, twice as many on Tuesday, and {} fewer on Wednesday than on Tuesday. On Thursday {} "
    "of these books come back, and every third of them is late, for which its reader pays {} cents. How many books are still "
    "lent out on Thursday evening? Reason step by step, and end with the number alone on the last line.",
    "A baker makes {} loaves of bread every morning and sells all but {} of them at 4 dollars each. In the afternoon the "
    "loaves that are left cost half as much, and {} people buy one each until none is left. On Sundays the shop opens for {} "
    "minutes only. How many dollars does the baker earn on a Monday? Reason step by step, and end with the number alone.",
)


def question(number: int) -> tuple[Message, ...]:
    """A question in words, different for each number."""
    numbers = [10 + (number * 37 + index * 23) % 90 for index in range(4)]
    return (Message("user", TEXTS[number % len(TEXTS)].format(*numbers)),)


class EndlessTokenizer:
    """A chat model's tokenizer whose end token is outside the model's vocabulary, so that every completion has the full length.

    Args:
        inner: The model's own.
    """

    def __init__(self, inner: HuggingFaceTokenizer) -> None:
        self._inner = inner
        self.vocab_size = inner.vocab_size + 1
        self.eos_token = inner.vocab_size
        self.fingerprint = f"endless-{inner.fingerprint}"
        self.chat_template = inner.chat_template
        self.special_tokens = inner.special_tokens

    def encode(self, text: str, *, start: bool = False) -> Any:
        return self._inner.encode(text, start=start)

    def token_bytes(self, token: int) -> bytes:
        return b"" if token == self.eos_token else self._inner.token_bytes(token)

    def prompt(self, problem: Problem) -> str:
        """The text of a question under the chat template."""
        assert self.chat_template is not None
        assert not isinstance(problem.prompt, str)
        return self.chat_template(problem.prompt)

    def prompt_tokens(self, problem: Problem) -> list[int]:
        """The tokens of a question under the chat template."""
        tokens: list[int] = self.encode(self.prompt(problem), start=True).tolist()
        return tokens


def chat_tokenizer(model: str) -> EndlessTokenizer:
    """The tokenizer of a chat model in a folder."""
    from agents.policies.transformers.loading import load_tokenizer

    tokenizer = load_tokenizer(model)
    if not isinstance(tokenizer, HuggingFaceTokenizer) or tokenizer.chat_template is None:
        raise SystemExit(f"--model {model}: expected a model whose tokenizer has a chat template")
    return EndlessTokenizer(tokenizer)
