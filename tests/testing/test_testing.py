"""The checks for plug-ins: what is sound passes, and each kind of mistake is named with its cause."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rlvr_envs import TaskEnv, TaskSpec, TokenEnv
from rlvr_envs.tasks import Sort
from rlvr_envs.testing import check_dataset, check_token_env, check_verifier
from tests.envs.helpers import says, streams
from verifiers import InvalidArgumentError, Message, Outcome, Problem, UnknownNameError, Verdict, VerifierContractError

PROBLEM = Problem("sum/1", "2+2=", "4", {"gold_completion": "4"})
_counts: Iterator[int] = itertools.count(2)


class Exact:
    """Sound, alone and in batches."""

    def __call__(self, completion: str, problem: Problem) -> Any:
        return completion == problem.reference

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> Any:
        return [self(*pair) for pair in zip(completions, problems, strict=True)]


class Backwards(Exact):
    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> Any:
        return super().verify_batch(completions, problems)[::-1]


class Shared:
    """Keeps what it judges where another thread finds it."""

    def __call__(self, completion: str, problem: Problem) -> Any:
        self.completion = completion
        if threading.current_thread() is not threading.main_thread():
            MEETING.wait()  # until each of four threads has left its completion
        return self.completion == problem.reference


MEETING = threading.Barrier(4)


def failing(completion: str, problem: Problem) -> bool:
    raise RuntimeError("no judge")


def speechless(completion: str, problem: Problem) -> None:
    return None


def test_sound_verifiers_pass() -> None:
    check_verifier(Exact, PROBLEM, correct="4", incorrect="5")
    check_verifier("math", PROBLEM, correct=r"It is \boxed{4}.", incorrect=["It is 5.", "I don't know"])
    check_verifier("numeric", PROBLEM, correct="4", incorrect="5")
    check_verifier(lambda completion, problem: -abs(len(completion) - 1), PROBLEM, correct="4", incorrect="four")


@pytest.mark.parametrize(
    ("verifier", "message"),
    [
        (lambda said, problem: True, r"less than 1 for the wrong '5'; got correct \(score 1, .*A policy learns"),
        (lambda said, problem: said != "5", "anything but correct for ''; got correct"),
        (lambda said, problem: False, r"correct, or a score, for '4' with the reference '4'; got incorrect \(score 0"),
        (failing, "correct, or a score, for '4'.*; got verifier_error .*RuntimeError: no judge"),
        (
            lambda said, problem: int(said) == 4,
            r"a verdict on ''; got verifier_error .*ValueError: invalid literal.*could write such text",
        ),
        (lambda said, problem: (said == "4") + 1 / next(_counts), "the same verdict on .* the second time; got .*seed"),
        (Backwards, r"the same verdict on '4' in a batch of \d+; got correct.*, then incorrect.*in the order"),
        (Shared, "the same verdict on .* in 4 threads at once; got .*, then .*hold a lock"),
        (lambda said, problem: problem.metadata.update(seen=said) or said == "4", "an unchanged Problem.*'seen'.*copy"),
    ],
)
def test_a_mistake_of_a_verifier_is_named(verifier: Any, message: str) -> None:
    problem = replace(PROBLEM, metadata={"gold_completion": "4"})
    with pytest.raises(InvalidArgumentError, match=f"the verifier .* fails its check. Expected: {message}"):
        check_verifier(verifier, problem, correct="4", incorrect="5")


def test_what_is_no_verifier_is_refused() -> None:
    with pytest.raises(VerifierContractError, match="speechless returned None; expected a Verdict"):
        check_verifier(speechless, PROBLEM, correct="4")
    with pytest.raises(UnknownNameError, match="unknown verifier 'exakt'"):
        check_verifier("exakt", PROBLEM, correct="4")


class Rows(Sequence[Problem]):
    """A data set of five problems, made by a function of the index."""

    def __init__(self, make: Any, *, size: int = 5, end: bool = True) -> None:
        self.make, self.size, self.end = make, size, end

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: Any) -> Any:
        if self.end and not 0 <= index < self.size:
            raise IndexError(index)
        return self.make(index)


def one(index: int, **fields: Any) -> Problem:
    made = Problem(f"p{index}", f"{index}*2=", str(2 * index), {"gold_completion": str(2 * index)})
    return replace(made, **fields)


def test_sound_data_sets_pass() -> None:
    check_dataset([one(index) for index in range(3)], "exact")
    check_dataset(Sort("test"), "exact")
    check_dataset(Rows(lambda index: one(index, prompt=(Message("user", "2*2="),))), "numeric")
    check_dataset(f"{__name__}:of_split", "exact", split="test")


def of_split(split: str) -> list[Problem]:
    assert split == "test"
    return [one(0)]


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ([], "at least one problem; got none"),
        (7, r"a sequence with len\(\) and \[index\]; got int"),
        (Rows(one, end=False), r"an IndexError from \[5\], since len\(\) is 5; got Problem.*would not end"),
        (Rows(lambda index: one(0)), "ids of their own; got 'p0' for both 0 and 1"),
        (Rows(lambda index: one(index, prompt="")), "text or a tuple of messages; got . Messages are"),
        (Rows(lambda index: one(index, prompt="\ud800")), "a prompt of characters; got '.ud800' "),
        (Rows(lambda index: one(index, prompt=f"{next(_counts)}")), "the same problem whenever number 0 .*; got"),
        (Rows(lambda index: one(index, metadata={})), 'a text metadata."gold_completion".; got None'),
        ([one(3, reference="9")], "problem 'p3' .*accepts its gold completion '6'; got incorrect .*own answer fails"),
    ],
)
def test_a_mistake_of_a_data_set_is_named(dataset: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        check_dataset(dataset, "exact")


class Letters(gymnasium.Env[Any, Any]):
    """A plain Gymnasium environment of four tokens, in which token 3 ends the episode."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": [], "render_fps": 30}

    observation_space = spaces.Dict(tokens=spaces.Box(0, 3, (8,), np.int32), length=spaces.Box(0, 8, (1,), np.int32))
    action_space = spaces.Discrete(4)

    def start(self) -> int:
        return int(self.np_random.integers(3))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.text = [self.start()]
        return self.observation(), self.info()

    def step(self, action: Any) -> Any:
        self.text.append(int(action))
        terminated = self.over()
        return self.observation(), self.reward(), terminated, self.cut() and not terminated, self.info()

    def observation(self) -> Any:
        tokens = np.zeros(8, dtype=np.int32)
        tokens[: len(self.text)] = self.text
        return {"tokens": tokens, "length": np.array([len(self.text)], dtype=np.int32)}

    def over(self) -> bool:
        return self.text[-1] == 3

    def cut(self) -> bool:
        return len(self.text) == 8

    def reward(self) -> float:
        return float(sum(self.text) if self.over() else 0)

    def info(self) -> dict[str, Any]:
        return {}


class Doubles(TaskEnv):
    task = TaskSpec(
        lambda split: [one(index) for index in range(9)], {"train": 9}, "here", verifier=("exact", {}), max_new_tokens=3
    )


def with_(**methods: Any) -> Any:
    return type("Mistaken", (Letters,), methods)


def judged_by(verifier: str) -> Any:
    return type("Misjudged", (Doubles,), {"task": replace(Doubles.task, verifier=(f"{__name__}:{verifier}", {}))})


class InPlace(Letters):
    """Gives its own buffer."""

    def observation(self) -> Any:
        self.buffer = getattr(self, "buffer", None) or super().observation()
        self.buffer["tokens"][: len(self.text)] = self.text
        self.buffer["length"][0] = len(self.text)
        return self.buffer


class Remembering:
    """A verifier that scores each completion by how many came before it."""

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        return Verdict(float(next(_counts)), Outcome.SCORED)


def test_sound_environments_pass() -> None:
    check_token_env(Letters)
    check_token_env(with_(info=lambda self: {"action_mask": np.array([1, 0, 0, 1], dtype=np.int8)}))
    check_token_env(Doubles)
    check_token_env(Doubles, verification="deferred")
    check_token_env("GridWorld", n=2)
    check_token_env(f"{__name__}:Doubles", episodes=1)
    turns = {"interaction": lambda turns, problem: says("ok") if len(turns) < 3 else None, "max_inserted_tokens": 8}
    check_token_env(lambda: TokenEnv(streams(stop=list("abcdefgh"), **turns)), episodes=8)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (with_(action_space=spaces.Discrete(4, start=1)), r"the action space Discrete\(v\), which begins at 0"),
        (with_(observation_space=spaces.Dict(tokens=spaces.Box(0, 3, (8,), np.int64))), "the observation space Dict"),
        (with_(start=lambda self: next(_counts) % 3), "the same start after reset.seed=0.; got .*self.np_random"),
        (with_(start=lambda self: 4), "observations in the observation space; got .*below the size"),
        (with_(reward=lambda self: np.nan), "a finite reward; got nan"),
        (with_(reward=lambda self: float(next(_counts))), "the same result of step 0 for the same tokens and seed;"),
        (with_(over=lambda self: False, cut=lambda self: False), "an end within 8 tokens; got an episode that goes on"),
        (with_(over=lambda self: "no"), r"terminated or truncated as bools, not both; got \('no'"),
        (with_(info=lambda self: {"action_mask": np.zeros(4, dtype=np.int8)}), "at least one legal token .*; got none"),
        (with_(info=lambda self: {"inserted": 1}), r"a length of 3 after the step; got 2.*info\[.inserted.\]"),
        (InPlace, "an earlier observation that stays as it was; got one that a step changed.*copies"),
        (judged_by("Remembering"), "the same result of step .* got .*, then"),
        (judged_by("failing"), "a verdict; got .*no judge.*see check_verifier"),
        (
            type("Two", (Doubles,), {"make_vec": lambda num_envs=1: Doubles.make_vec(num_envs, max_new_tokens=2)}),
            r"the same episode from make_vec, with the return .*; got other",
        ),
        (type("Own", (Doubles,), {"step": lambda *call: Doubles.step(*call)}), "Own overrides step, which its vector"),
    ],
)
def test_a_mistake_of_an_environment_is_named(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        check_token_env(make, episodes=4)


def test_an_environment_in_place_of_its_class_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"expected a class or a function that makes an environment.*lambda"):
        check_token_env(gymnasium.make("rlvr/Sort-v0"))  # type: ignore[arg-type]
