"""`check_dataset` checks by trial that a data set holds problems, and that a verifier accepts the gold completions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import verifiers
from rlvr_envs.data import text
from rlvr_envs.testing.expectation import expect
from rlvr_envs.types import Dataset
from verifiers import Message, Outcome, Problem

_WHOSE = "the data set"


def check_dataset(
    dataset: str | Dataset,
    verifier: str | type | Callable[..., object] | None = None,
    *,
    split: str = "train",
    problems: int = 100,
) -> None:
    """Check some problems of a data set, which are evenly spaced.

    Args:
        dataset: A sequence of problems; or a name as for `dataset=` of `rlvr/Text-v0`, such as `my_data:doubles`.
        verifier: A verifier, as for `verifiers.make`, that must find each problem's `metadata["gold_completion"]` correct. With
            None, gold completions are not checked.
        split: The split to load if the data set is given by name.
        problems: Number of problems to check.

    Raises:
        InvalidArgumentError: If a check fails; the message states the expected and the actual result and the usual cause.
    """
    loaded = text.load(dataset, split=split) if isinstance(dataset, str) else dataset
    _check_sequence(loaded)
    indices = np.unique(np.linspace(0, len(loaded) - 1, min(problems, len(loaded))).astype(np.int64)).tolist()
    ids: dict[str, int] = {}
    chosen = []
    for index in indices:
        problem = loaded[index]
        _check_problem(problem, index)
        expect(
            repr(loaded[index]) == repr(problem),
            _WHOSE,
            f"the same problem whenever number {index} is requested",
            f"{problem!r}, then {loaded[index]!r}",
            "Make problems from the index alone, with no generator that moves on",
        )
        first = ids.setdefault(problem.id, index)
        hint = "Records and comparisons name problems by their id"
        expect(first == index, _WHOSE, "ids of their own", f"{problem.id!r} for both {first} and {index}", hint)
        chosen.append(problem)
    if verifier is not None:
        _check_golds(chosen, verifier)


def _check_sequence(dataset: Dataset) -> None:
    methods = all(hasattr(dataset, name) for name in ("__len__", "__getitem__"))
    expect(methods, _WHOSE, "a sequence with len() and [index]", type(dataset).__name__, "A list of problems is one")
    expect(len(dataset) > 0, _WHOSE, "at least one problem", "none", "Check the split")
    try:
        beyond: object = dataset[len(dataset)]
    except IndexError:
        return
    expect(
        False,
        _WHOSE,
        f"an IndexError from [{len(dataset)}], since len() is {len(dataset)}",
        beyond,
        "A loop over the data set would not end",
    )


def _check_problem(problem: object, index: int) -> None:
    whose = f"problem {index} of the data set"
    if not isinstance(problem, Problem):
        expect(False, whose, "a verifiers.Problem", problem, "Problem(id, prompt, reference, metadata)")
        return
    identifier: object = problem.id
    named = isinstance(identifier, str) and identifier != ""
    expect(named, whose, "an id, as text", identifier, "Such as name/split/3")
    prompt: object = problem.prompt
    messages = isinstance(prompt, tuple) and prompt != () and all(isinstance(message, Message) for message in prompt)
    hint = "Messages are verifiers.Message(role, content)"
    expect(messages or (isinstance(prompt, str) and prompt != ""), whose, "text or a tuple of messages", prompt, hint)
    texts = [prompt] if isinstance(prompt, str) else [message.content for message in problem.prompt]  # type: ignore[union-attr]
    for part in texts:
        try:
            part.encode()
        except UnicodeEncodeError as error:
            expect(
                False, whose, "a prompt of characters", f"{part!r} ({error})", "Half of a surrogate pair has no tokens"
            )


def _check_golds(problems: list[Problem], spec: str | type | Callable[..., object]) -> None:
    judge = verifiers.make(spec)
    for problem in problems:
        gold = problem.metadata.get("gold_completion")
        whose = f"problem {problem.id!r}"
        hint = "It is how a data set proves that its verifier accepts its own answers"
        expect(isinstance(gold, str), whose, 'a text metadata["gold_completion"]', gold, hint)
        (verdict,) = verifiers.verify_batch(judge, [str(gold)], [problem])
        expect(
            verdict.outcome is Outcome.CORRECT,
            whose,
            f"that the verifier {judge!r} accepts its gold completion {gold!r}",
            f"{verdict.outcome} (answer {verdict.answer!r}, {dict(verdict.detail)})",
            "No policy can solve a problem whose own answer fails: correct the reference, the gold or the verifier",
        )
