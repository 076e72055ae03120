"""Choose the form of questions: the words of a chat, or the short form for models trained from scratch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from rlvr_envs.procedural.base import GeneratedDataset
from rlvr_envs.prompts import ChatPrompt, Prompt
from rlvr_envs.types import Dataset
from verifiers import Problem


class LongestProblem(Problem):
    """Placeholder for the longest problem of a data set, in the form in which the prompt asks it."""


@dataclass(frozen=True)
class InWords:
    """Puts the problems of a generated data set in words."""

    dataset: GeneratedDataset

    def __call__(self, problem: Problem) -> Problem:
        """Return the problem with its question in words as the prompt."""
        if isinstance(problem, LongestProblem):
            return problem
        return dataclasses.replace(problem, prompt=self.dataset.in_words(problem))

    @property
    def extra_bytes(self) -> int:
        """The number of UTF-8 bytes by which each question is longer in words than in the short form."""
        first = self.dataset[0]
        return len(self.dataset.in_words(first).encode()) - len(str(first.prompt).encode())


def question_in(dataset: Dataset, prompt: Prompt) -> Callable[[Problem], Problem] | None:
    """The function that puts problems in words for a `ChatPrompt`; None if problems are asked unchanged."""
    return InWords(dataset) if isinstance(dataset, GeneratedDataset) and isinstance(prompt, ChatPrompt) else None


def longest_problem(dataset: Dataset, question: Callable[[Problem], Problem] | None) -> Problem | None:
    """A placeholder with the length of the longest question; None if the data set does not state its longest prompt."""
    bytes_of_prompt = getattr(dataset, "max_prompt_bytes", None)
    if bytes_of_prompt is None:
        return None
    extra = question.extra_bytes if isinstance(question, InWords) else 0
    return LongestProblem("", "0" * (bytes_of_prompt + extra), None)
