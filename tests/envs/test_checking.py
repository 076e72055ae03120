"""What is said of an environment when it is made, or before: its verifier, its functions, its room for tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from rlvr_envs import TokenVectorEnv, check_task, environment_class
from tests import tiny_models
from tests.envs.helpers import streams
from verifiers import InvalidArgumentError, Problem, UnknownArgumentError, UnknownNameError

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}<|im_start|>assistant\n"
)
LOADED: list[str] = []


class LoadsAModel:
    """A verifier whose construction is not free."""

    def __init__(self, model: str) -> None:
        LOADED.append(model)

    def __call__(self, completion: str, reference: object) -> bool:
        return False


@pytest.mark.parametrize("known", ["byte", "char"])
@pytest.mark.parametrize("limits", [{}, {"max_new_tokens": 7}, {"max_prompt_tokens": 90, "max_context_tokens": 95}])
def test_tokens_are_those_of_the_environment(known: str, limits: dict[str, int]) -> None:
    options = {"tokenizer": known, **limits}
    cls = environment_class("Sort")
    env = cls(**options)
    assert check_task(cls.task, options) == (env.observation_space["tokens"].shape[0], len(env.streams.dataset))  # type: ignore[index]


def saved_tokenizer(folder: Path, template: str | None = None) -> str:
    made = tiny_models.byte_level_tokenizer("<|im_start|>", "<|im_end|>")
    made.chat_template = template
    made.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("template", [None, TEMPLATE])
@pytest.mark.parametrize("name", ["Text", "Sort"])
@pytest.mark.parametrize("prompt", ["plain", "boxed_chat"])
def test_a_tokenizer_that_is_not_loaded_is_counted_from_below(
    name: str, prompt: str, template: str | None, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"tokenizer": saved_tokenizer(tmp_path, template), "max_new_tokens": 5, "prompt": prompt}
    cls = environment_class(name)
    tokens, problems = check_task(cls.task, options)
    env = cls(**options)
    most = env.observation_space["tokens"].shape[0]  # type: ignore[index]
    assert problems == len(env.streams.dataset)
    assert 5 < tokens <= most
    # What is missing is the frame around the messages, which has few tokens.
    assert tokens > most - 60


@pytest.fixture(params=["byte", "folder"])
def tokenizer(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """One that is at hand, and one that would have to be loaded."""
    return saved_tokenizer(tmp_path) if request.param == "folder" else request.param


def test_a_verifier_that_can_not_read_what_the_prompt_asks_for_is_refused(tokenizer: str) -> None:
    task, options = environment_class("Sort").task, {"verifier": "exact", "tokenizer": tokenizer}
    check_task(task, {"prompt": "auto", **options})  # which a tokenizer decides on, and one may meet the verifier
    with pytest.raises(InvalidArgumentError, match="the verifier 'exact' can't read an answer"):
        check_task(task, {"prompt": "boxed_chat", **options})


def test_a_verifier_that_may_load_a_model_is_not_built_and_not_mistaken_for_the_default(tokenizer: str) -> None:
    task, options = environment_class("Function").task, {"prompt": "boxed_chat", "tokenizer": tokenizer}
    with pytest.raises(InvalidArgumentError, match="can't read an answer"):
        check_task(task, options)
    path = f"{__name__}:LoadsAModel"
    judge, misspelt = (path, {"model": "m"}), (path, {"modle": "m"})
    for verifier in (judge, ("with_gold", {"proxy": judge, "gold": "environment"})):
        check_task(task, {**options, "verifier": verifier})
    assert LOADED == []
    for verifier in (misspelt, ("first", {"parts": [misspelt]})):
        with pytest.raises(UnknownArgumentError, match="Did you mean 'model'"):
            check_task(task, {**options, "verifier": verifier})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"siez": 3}, UnknownArgumentError, "Did you mean 'size'"),
        ({"describe_tools": "text"}, InvalidArgumentError, "give tools=, too"),
        ({"describe_tools": "words", "tools": "calculator"}, UnknownNameError, "describe_tools"),
        ({"verifier": "numeric"}, InvalidArgumentError, "can't use the reference"),
    ],
)
def test_what_is_wrong_is_said_with_any_tokenizer(
    options: dict[str, Any], error: type[Exception], message: str, tokenizer: str
) -> None:
    with pytest.raises(error, match=message):
        check_task(environment_class("Sort").task, {**options, "tokenizer": tokenizer})


@pytest.mark.parametrize("verifier", ["ifeval", ("ifeval", {}), ("exact",), 7])
def test_a_verifier_that_can_not_judge_here_is_refused(verifier: object) -> None:
    with pytest.raises(InvalidArgumentError, match="verifier"):
        check_task(environment_class("Sort").task, {"verifier": verifier})


@pytest.mark.parametrize(
    ("env_id", "verifier", "reason"),
    [
        ("Bandit", "math", "the gold answer is a ProcessStart, .*"),
        ("Sort", "math", "the gold answer cannot be read: .*"),
        ("Addition", "choice", "the reference of multiple choice must be one letter of A to Z, got '.*"),
        ("Addition", "unit_tests", ".* expected a reference of type CheckTests, .* got str"),
        ("Addition", ("countdown", {"use_all": False}), ".*: the countdown verifier needs a CountdownReference.*"),
        ("Addition", "sql", ".* expected an SQLReference, .*"),
        ("Addition", "json_schema", ".* a schema is an object, true or false, got int"),
        ("GuessNumber", "numeric", "the numeric verifier needs a literal number .*"),
        ("Function", "exact", r"exact match compares with a string or an integer, .* \.\.\."),
    ],
)
def test_a_verifier_that_can_use_no_reference_is_refused(env_id: str, verifier: Any, reason: str) -> None:
    pytest.importorskip("jsonschema")
    name = verifier if isinstance(verifier, str) else verifier[0]
    tried = f"^the verifier {name!r} can't use the reference of any of the first 8 problems"
    match = rf"(?s){tried}: {reason}\. Leave verifier= out"
    with pytest.raises(InvalidArgumentError, match=match):
        gymnasium.make_vec(f"rlvr/{env_id}-v0", num_envs=2, verifier=verifier)


@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_a_verifier_in_a_file_is_tried_too(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"judge.{suffix}"
    file.write_text('verifier = "choice"' if suffix == "toml" else '{"verifier": "choice"}')
    with pytest.raises(InvalidArgumentError, match="the verifier 'choice' can't use the reference"):
        gymnasium.make("rlvr/Addition-v0", verifier=str(file))


@pytest.mark.parametrize(
    ("env_id", "verifier"),
    [("Addition", "math"), ("Addition", "exact"), ("Function", "unit_tests"), ("Countdown", ("countdown", {}))],
)
def test_a_verifier_that_can_use_them_is_taken(env_id: str, verifier: Any) -> None:
    gymnasium.make(f"rlvr/{env_id}-v0", verifier=verifier)


def text(references: Sequence[object], verifier: Any) -> None:
    problems = [Problem(f"p{index}", "Why?", reference) for index, reference in enumerate(references)]
    gymnasium.make("rlvr/Text-v0", dataset=problems, verifier=verifier)


def test_one_reference_that_can_be_used_is_enough() -> None:
    text([None] * 7 + ["7"], "numeric")
    with pytest.raises(InvalidArgumentError, match="the reference of any of the first 8 problems"):
        text([None] * 8 + ["7"], "numeric")
    with pytest.raises(InvalidArgumentError, match=r"the reference of the first problem: .*got None.*or name another$"):
        text([None], "numeric")


def test_verifiers_that_may_cost_something_are_not_asked() -> None:
    asked: list[str] = []

    def judge(completion: str, problem: Problem) -> float:
        asked.append(completion)
        raise ConnectionError

    text([None], judge)
    text([None], ("weighted_sum", {"parts": {"judge": judge}}))
    assert not asked


ID = "rlvr/Addition-v0"
ONE: Any = lambda only: None  # noqa: E731 - a function of one argument
MODULE = """
from functools import lru_cache, partial
from rlvr_envs.types import Reply, Turn

def ends(turns, problem):
    return None

def of_turns(turns):
    return None

class Answers:
    def __call__(self, turns, problem):
        return None

class Named(Answers):
    def __init__(self, name):
        self.name = name
"""


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_other_side.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return "own_other_side"


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("end_condition", "tokens, prompt_length, problem"),
        ("process_scorer", "tokens, prompt_length, problem"),
        ("legal_actions", "tokens, prompt_length"),
        ("interaction", "turns, problem"),
    ],
)
@pytest.mark.parametrize("value", [ONE, 3])
def test_a_function_that_takes_something_else_is_refused(name: str, parameters: str, value: Any) -> None:
    message = rf"^{name} must be a function \({parameters}\)( or text)? or None, got (<function|3)"
    with pytest.raises(InvalidArgumentError, match=message):
        gymnasium.make(ID, **{name: value})
    with pytest.raises(InvalidArgumentError, match=message):  # as the rules of an environment of one's own
        TokenVectorEnv(streams(**{name: value}))


def test_a_named_interaction_is_checked_too(own_module: str) -> None:
    for name in ("ends", "Answers"):
        gymnasium.make(ID, interaction=f"{own_module}:{name}")
    for tools in ((), (calculate,)):
        with pytest.raises(InvalidArgumentError, match=r"^interaction must be a function \(turns, problem\)"):
            gymnasium.make(ID, interaction=f"{own_module}:of_turns", tools=tools)
    with pytest.raises(InvalidArgumentError, match=r"Named' is a class that can't be made without arguments: .*'name'"):
        gymnasium.make(ID, interaction=f"{own_module}:Named")

    with pytest.raises(UnknownNameError, match=r"Did you mean 'Answers'\? Known: Answers, Named, ends, of_turns\.$"):
        gymnasium.make(ID, interaction=f"{own_module}:Answer")
    with pytest.raises(InvalidArgumentError, match=r"^expected an interaction as module:attribute"):
        gymnasium.make(ID, interaction="foo")


def calculate(expression: str) -> str:
    """Calculate.

    Args:
        expression: What to calculate.
    """
    return expression


@pytest.mark.parametrize(
    ("env_id", "given", "with_what"),
    [
        (ID, {"tools": "calculator"}, "tools="),
        (ID, {"interaction": lambda turns, problem: None}, "interaction="),
        (ID, {"tools": "calculator", "interaction": lambda turns, problem: None}, "tools= and interaction="),
        ("rlvr/TicTacToe-v0", {}, "the interaction of this environment"),
    ],
)
@pytest.mark.parametrize("room", [0, -1])
def test_without_room_for_replies_what_needs_it_is_named(
    env_id: str, given: Mapping[str, Any], with_what: str, room: int
) -> None:
    message = f"max_inserted_tokens must be at least 1 with {with_what}, whose replies are inserted; got {room}"
    with pytest.raises(InvalidArgumentError) as raised:
        gymnasium.make(env_id, max_inserted_tokens=room, **given)
    assert str(raised.value) == message
