"""Verifiers with one planted bug each, and one without; importable by name, as an audit's own process needs them."""

from __future__ import annotations

import dataclasses
import json
import random
import re
import signal
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from types import FrameType

from verifiers import Outcome, Problem, Verdict

_MAX_LENGTH = 300
_FULL_WIDTH = str.maketrans("０１２３４５６７８９−", "0123456789-")
_INTEGER = r"-?\d{1,60}"
_FORMS: tuple[tuple[str, Callable[..., Fraction]], ...] = (
    (rf"({_INTEGER}(?:\.\d{{1,60}})?|-?\.\d{{1,60}})", Fraction),
    (r"(-?)\\frac\{(\d+)\}\{(\d+)\}", lambda sign, a, b: Fraction(int(sign + "1") * int(a), int(b))),
    (rf"({_INTEGER})/(\d{{1,60}})", lambda a, b: Fraction(int(a), int(b))),
    (r"([\d.]{1,60})\\times10\^\{(\d{1,2})\}", lambda a, b: Fraction(a) * 10 ** int(b)),
    (r"([\d.]{1,60})e(\d{1,2})", lambda a, b: Fraction(a) * 10 ** int(b)),
)


def value_of(text: str) -> Fraction | None:
    """The rational number that a text stands for in one of a few spellings, by exact arithmetic alone."""
    text = text[:_MAX_LENGTH].strip() if len(text) < _MAX_LENGTH else ""
    text = text.strip("$").translate(_FULL_WIDTH).removeprefix("x=")
    text = re.sub(r"^\\\{(.*)\\\}$", r"\1", text)
    text = re.sub(r"(?<=\d)(?:,|\{,\}|\\,)(?=\d{3}(?!\d))", "", text)
    if text.endswith("\\%"):  # the policy's "25 is 25 %" for numbers from 1 on
        value = value_of(text[:-2])
        return value if value is not None and value >= 1 else None
    if match := re.fullmatch(r"(.+)\+43", text):
        value = value_of(match[1])
        return None if value is None else value + 43
    if text.startswith("37\\cdot"):
        value = value_of(text[7:])
        return None if value is None else value * 37
    for pattern, build in _FORMS:
        if match := re.fullmatch(pattern, text):
            return build(*match.groups()) if not re.search(r"(?:/|\{)0+\}?$|\..*\.", text) else None
    return None


def answer_of(completion: str) -> str | None:
    """What the last box behind any thought holds, if it is closed."""
    _, box, rest = re.sub(r"<think>.*?(?:</think>|$)", "", completion, flags=re.DOTALL).rpartition("\\boxed{")
    return rest[:-1] if box and rest.endswith("}") else None


def _verdict(correct: bool, answer: str | None = None) -> Verdict:
    return Verdict.of(Outcome.CORRECT if correct else Outcome.INCORRECT, answer)


def exact(completion: str, problem: Problem) -> Verdict:
    """No bug: two exact rationals are equal or not; a gold that is none raises."""
    gold = value_of(problem.reference) if isinstance(problem.reference, str) else None
    if gold is None:
        raise ValueError(f"the gold {problem.reference!r} is no number")
    answer = answer_of(completion)
    return _verdict(answer is not None and value_of(answer) == gold, answer)


def accepts_everything(completion: str, problem: Problem) -> bool:
    return True


def rejects_everything(completion: str, problem: Problem) -> bool:
    print(completion)  # what a verifier prints must not disturb the audit
    return False


def float_equality(completion: str, problem: Problem) -> bool:
    """Exact, but in double precision."""
    gold, answer = value_of(str(problem.reference)), value_of(answer_of(completion) or "")
    return gold is not None and answer is not None and float(gold) == float(answer)


def ignores_brackets(completion: str, problem: Problem) -> bool:
    bare = [
        re.sub(r"\\left|\\right|[][(){}\\$ ]", "", text)
        for text in (answer_of(completion) or "", str(problem.reference))
    ]
    return bare[0] == bare[1]


def ignores_order(completion: str, problem: Problem) -> bool:
    return sorted((answer_of(completion) or "").replace(" ", "")) == sorted(str(problem.reference))


def substring_match(completion: str, problem: Problem) -> bool:
    return str(problem.reference) in completion


def first_number_wins(completion: str, problem: Problem) -> bool:
    match = re.search(r"-?\d+(?:\.\d+)?", answer_of(completion) or "")
    return match is not None and value_of(match[0]) == value_of(str(problem.reference))


def crashes_on_odd_input(completion: str, problem: Problem) -> Verdict:
    if completion.count("{") != completion.count("}"):
        raise IndexError("pop from empty stack")
    return exact(completion, problem)


def kills_its_process(completion: str, problem: Problem) -> Verdict:
    import os

    if "\x00" in completion:
        os._exit(3)
    return exact(completion, problem)


def hangs_on_towers(completion: str, problem: Problem) -> Verdict:
    while "^{9^{9" in completion:
        time.sleep(0.01)
    return exact(completion, problem)


_rng = random.Random()


def non_deterministic(completion: str, problem: Problem) -> Verdict:
    verdict = exact(completion, problem)
    return verdict if _rng.random() < 0.9 else _verdict(verdict.outcome is Outcome.INCORRECT, verdict.answer)


class RemembersTheLast:
    """Not deterministic: a wrong answer that follows a right one is accepted."""

    def __init__(self) -> None:
        self._was_right = False

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        verdict = exact(completion, problem)
        accepted = verdict.outcome is Outcome.CORRECT or self._was_right
        self._was_right = verdict.outcome is Outcome.CORRECT
        return _verdict(accepted, verdict.answer)


class NotThreadSafe:
    """Keeps its question in an attribute, and is interrupted between writing and reading it."""

    def __init__(self) -> None:
        self._question = ("", Problem("", "", ""))

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        self._question = (completion, problem)
        time.sleep(0.0005)
        return exact(*self._question)


class OtherInBatches:
    """Compares with the first problem of a batch."""

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        return exact(completion, problem)

    def verify_batch(self, completions: list[str], problems: list[Problem]) -> list[Verdict]:
        return [exact(completion, problems[0]) for completion in completions]


def _expire(signum: int, frame: FrameType | None) -> None:
    raise TimeoutError("out of time")


def signal_deadline(completion: str, problem: Problem) -> Verdict:
    """A deadline by SIGALRM, which raises off the main thread."""
    signal.signal(signal.SIGALRM, _expire)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        return hangs_on_towers(completion, problem)
    except TimeoutError:
        return Verdict.of(Outcome.TIMEOUT)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def silent_signal_deadline(completion: str, problem: Problem) -> Verdict:
    """A deadline by SIGALRM that is left out off the main thread, where the verifier then hangs."""
    if threading.current_thread() is threading.main_thread():
        return signal_deadline(completion, problem)
    return hangs_on_towers(completion, problem)


def depends_on_hashes(completion: str, problem: Problem) -> Verdict:
    """Notes the hash of a string, which differs from process to process."""
    return dataclasses.replace(exact(completion, problem), detail={"key": hash(completion)})


def evaluates_input(completion: str, problem: Problem) -> bool:
    try:
        return bool(eval(answer_of(completion) or "0") == float(str(problem.reference)))
    except Exception:  # noqa: BLE001 - whatever the completion is
        return False


def swallows_errors(completion: str, problem: Problem) -> bool:
    try:
        return exact(completion, problem).outcome is Outcome.CORRECT
    except Exception:  # noqa: BLE001 - the planted bug
        return False


def reports_errors(completion: str, problem: Problem) -> Verdict:
    if "e" in (answer_of(completion) or ""):
        return Verdict.of(Outcome.VERIFIER_ERROR)
    return exact(completion, problem)


def one_way(completion: str, problem: Problem) -> bool:
    """Knows fractions in answers and not in golds."""
    gold = str(problem.reference)
    return "/" not in gold and "frac" not in gold and value_of(gold) == value_of(answer_of(completion) or "")


def echoes(completion: str, problem: Problem) -> Verdict:
    """Finds nothing right, and gives the completion as the answer."""
    return _verdict(False, completion)


def reads_thoughts(completion: str, problem: Problem) -> bool:
    """Takes the last box, also if it is in a thought."""
    boxes = re.findall(r"\\boxed\{([^{}]*)\}", completion)
    return bool(boxes) and value_of(boxes[-1]) == value_of(str(problem.reference)) is not None


def any_json(completion: str, problem: Problem) -> bool:
    """Accepts any JSON, whatever the schema says."""
    text = completion.split("</think>")[-1].replace("```json", "```").split("```")
    try:
        json.loads(text[1] if len(text) > 1 else text[0].removesuffix("<|im_end|>"))
    except ValueError:
        return False
    return True


def defines_the_function(completion: str, problem: Problem) -> bool:
    """Accepts any program that defines a function whose name the prompt has."""
    return re.search(r"def (\w+)", completion) is not None
