"""The command `rlvr contamination`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro
from rich.console import Console

from agents.commands.common import env_arguments
from agents.commands.problems import load_problems
from agents.runs.contamination import NGRAM, overlaps, text_of
from verifiers import AtLeast, Between

_SHOWN = 20


@dataclass(frozen=True)
class Contamination:
    """Find problems of one data set that occur in another, by the word n-grams of their prompts."""

    train: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TRAIN")]
    """Environment with the training data, such as GSM8K."""
    evaluation: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="EVALUATION")]
    """Environment with the evaluation data, such as MATH500."""
    train_split: str = "train"
    """Split of the training data set."""
    evaluation_split: str = "test"
    """Split of the evaluation data set."""
    words: Annotated[int, AtLeast(2)] = NGRAM
    """Number of words in an n-gram. A prompt with at most this many words is compared as a whole."""
    threshold: Annotated[float, Between(0, 1, open_low=True)] = 0.5
    """Share of a problem's n-grams that must occur in the training data for the problem to count as contaminated."""
    train_args: tuple[str, ...] = ()
    """Arguments of the training data set, each as name=value."""
    evaluation_args: tuple[str, ...] = ()
    """Arguments of the evaluation data set, each as name=value."""

    def run(self, console: Console) -> int:
        """Print the contaminated problems; return 1 if there are any."""
        train = load_problems(self.train, self.train_split, env_arguments(self.train_args))
        evaluated = load_problems(self.evaluation, self.evaluation_split, env_arguments(self.evaluation_args))
        texts = (text_of(train[index]) for index in range(len(train)))
        results = overlaps(texts, [evaluated[index] for index in range(len(evaluated))], words=self.words)
        flagged = sorted(
            (overlap for overlap in results if overlap.share >= self.threshold), key=lambda overlap: -overlap.share
        )
        for overlap in flagged[:_SHOWN]:
            console.print(f"{overlap.problem_id}: {overlap.share:.0%}, such as “{overlap.example}”")
        if len(flagged) > _SHOWN:
            console.print(f"... and {len(flagged) - _SHOWN} more")
        touched = sum(overlap.share > 0 for overlap in results)
        short = sum(overlap.whole for overlap in results)
        if short:
            console.print(
                f"{short} of {len(results)} prompts have at most {self.words} words: such a prompt counts only if it is a "
                f"whole prompt of {self.train}; --words sets this number"
            )
        console.print(
            f"{len(flagged)} of {len(results)} problems share {self.threshold:.0%} or more of their {self.words}-grams with "
            f"{self.train}, {touched} at least one"
        )
        return 1 if flagged else 0
