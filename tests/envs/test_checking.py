"""`check_task`: what is said of an environment before its tokenizer is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlvr_envs import check_task, environment_class
from tests import tiny_models
from verifiers import InvalidArgumentError, UnknownArgumentError, UnknownNameError

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


@pytest.mark.parametrize("tokenizer", ["byte", "char"])
@pytest.mark.parametrize("limits", [{}, {"max_new_tokens": 7}, {"max_prompt_tokens": 90, "max_context_tokens": 95}])
def test_tokens_are_those_of_the_environment(tokenizer: str, limits: dict[str, int]) -> None:
    options = {"tokenizer": tokenizer, **limits}
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


@pytest.mark.parametrize("tokenizer", ["byte", "folder"])
@pytest.mark.parametrize("prompt", ["boxed_chat", "auto"])
def test_a_verifier_that_can_not_read_what_the_prompt_asks_for_is_refused(
    prompt: str, tokenizer: str, tmp_path: Path
) -> None:
    folder = saved_tokenizer(tmp_path) if tokenizer == "folder" else tokenizer
    task = environment_class("Sort").task
    if prompt == "auto":  # which a tokenizer decides on, and one of the two may meet the verifier
        check_task(task, {"prompt": prompt, "verifier": "exact", "tokenizer": folder})
        return
    with pytest.raises(InvalidArgumentError, match="the verifier 'exact' can't read an answer"):
        check_task(task, {"prompt": prompt, "verifier": "exact", "tokenizer": folder})


@pytest.mark.parametrize("tokenizer", ["byte", "folder"])
def test_a_verifier_that_is_not_built_is_not_mistaken_for_the_default(tokenizer: str, tmp_path: Path) -> None:
    folder = saved_tokenizer(tmp_path) if tokenizer == "folder" else tokenizer
    task = environment_class("Function").task
    with pytest.raises(InvalidArgumentError, match="can't read an answer"):
        check_task(task, {"prompt": "boxed_chat", "tokenizer": folder})
    judge = (f"{__name__}:LoadsAModel", {"model": "m"})
    check_task(task, {"prompt": "boxed_chat", "tokenizer": folder, "verifier": judge})
    check_task(
        task,
        {
            "prompt": "boxed_chat",
            "tokenizer": folder,
            "verifier": ("with_gold", {"proxy": judge, "gold": "environment"}),
        },
    )


def test_a_verifier_that_may_load_a_model_is_not_built() -> None:
    task = environment_class("Sort").task
    path = f"{__name__}:LoadsAModel"
    check_task(task, {"verifier": (path, {"model": "m"})})
    assert LOADED == []
    with pytest.raises(UnknownArgumentError, match="Did you mean 'model'"):
        check_task(task, {"verifier": (path, {"modle": "m"})})
    with pytest.raises(UnknownArgumentError, match="Did you mean 'model'"):
        check_task(task, {"verifier": ("first", {"parts": [(path, {"modle": "m"})]})})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"siez": 3}, UnknownArgumentError, "Did you mean 'size'"),
        ({"describe_tools": "text"}, InvalidArgumentError, "give tools=, too"),
        ({"describe_tools": "words", "tools": "calculator"}, UnknownNameError, "describe_tools"),
        ({"verifier": "numeric"}, InvalidArgumentError, "can't use the reference"),
    ],
)
@pytest.mark.parametrize("tokenizer", ["byte", "folder"])
def test_what_is_wrong_is_said_with_any_tokenizer(
    options: dict[str, Any], error: type[Exception], message: str, tokenizer: str, tmp_path: Path
) -> None:
    if tokenizer == "folder":
        (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
        tokenizer = str(tmp_path)
    with pytest.raises(error, match=message):
        check_task(environment_class("Sort").task, {**options, "tokenizer": tokenizer})


@pytest.mark.parametrize("verifier", ["ifeval", ("ifeval", {}), ("exact",), 7])
def test_a_verifier_that_can_not_judge_here_is_refused(verifier: object) -> None:
    with pytest.raises(InvalidArgumentError, match="verifier"):
        check_task(environment_class("Sort").task, {"verifier": verifier})
