"""TRL: use verifiers as reward functions of `GRPOTrainer` and related trainers.

A completion that the verifier could not judge gets None. If *every* reward function returns None for a completion, TRL leaves
the completion out of the baseline and sets its advantage to 0. If only some functions return None, each None counts as 0.
`all_or_none` makes several functions return None together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rlvr_envs
import verifiers
from agents.adapters.episodes import has_turns, streams_of
from agents.adapters.problems import before_stop, data_as_python, load_task, number_of_problems, prompt_of, text_of
from verifiers import Outcome, Problem, UnknownArgumentError, Verifier

if TYPE_CHECKING:
    import datasets  # type: ignore[import-untyped]  # ships no types

_SCRIPT = '''\
"""GRPO with TRL on {env}; every option of TRL's GRPOConfig and ModelConfig is an option here.

    accelerate launch {file} --model_name_or_path Qwen/Qwen3-0.6B --output_dir grpo
"""

from trl import GRPOConfig, GRPOTrainer, ModelConfig, TrlParser

from agents.adapters import {module} as adapter


def main() -> None:
    parser = TrlParser((GRPOConfig, ModelConfig))
    parser.set_defaults(max_completion_length={max_new_tokens})
    config, model = parser.parse_args_and_config()
    name = model.model_name_or_path
    {made} = adapter.{load}({env!r}, {split!r}, limit={limit!r}, tokenizer=name, **{arguments})
    GRPOTrainer(model=name, args=config, train_dataset=rows, {given}).train()


if __name__ == "__main__":
    main()
'''

_ONE_TURN = {"module": "trl", "load": "environment", "made": "rows, reward", "given": "reward_funcs=reward"}
_TURNS = {
    "module": "trl_episodes",
    "load": "episodes",
    "made": "rows, factory, reward",
    "given": "environment_factory=factory, reward_funcs=reward",
}
_EPISODE_TOKENS = 1024
"""Minimum number of tokens for an episode of several turns, each written as a tool call."""
_NOT_FOR_TEXTS = (TypeError, AttributeError, KeyError, IndexError)
"""Exceptions raised by functions that expect chat messages but get a text."""
RewardFunction = Callable[..., list[float | None]]
"""A function of `prompts`, `completions`, `completion_ids` and every other column of the data set, each as a list."""


def reward_function(
    verifier: str | Verifier,
    *,
    reference: str = "answer",
    problems: rlvr_envs.Dataset | None = None,
    stop: Sequence[str] = (),
    name: str | None = None,
    **arguments: object,
) -> RewardFunction:
    """Make a reward function from a verifier.

    Args:
        verifier: As for `verifiers.make`.
        reference: The column with the references.
        problems: The problems, which the column `problem` numbers from 0. With `problems`, the column `reference` is not used.
        stop: Texts at which a completion ends, even if the model continued.
        name: Name of the function in TRL's logs.
        **arguments: Arguments of the verifier.
    """
    made = verifiers.make(verifier, **arguments)
    title = name or (verifier if isinstance(verifier, str) else type(verifier).__name__)

    def reward(
        prompts: Sequence[Any], completions: Sequence[Any], completion_ids: object = None, **columns: Any
    ) -> list[float | None]:
        if problems is None:
            asked = _problems(prompts, columns, reference)
        else:
            asked = [problems[index] for index in _column(columns, "problem")]
        texts = [before_stop(text_of(completion), stop) for completion in completions]
        verdicts = verifiers.verify_batch(made, texts, asked)
        errors = [verdict.outcome is Outcome.VERIFIER_ERROR for verdict in verdicts]
        if (log_metric := columns.get("log_metric")) is not None:
            log_metric(f"verifier_errors/{title}", sum(errors) / len(errors))
        return [None if error else verdict.score for error, verdict in zip(errors, verdicts, strict=True)]

    reward.__name__ = title
    return reward


def _column(columns: Mapping[str, Any], name: str) -> Sequence[Any]:
    if name not in columns:
        raise UnknownArgumentError(f"the data set has no column {name!r}; it has {sorted(columns)}")
    values: Sequence[Any] = columns[name]
    return values


def _problems(prompts: Sequence[Any], columns: Mapping[str, Any], reference: str) -> list[Problem]:
    """Make problems from prompts and references; the other columns become metadata."""
    references = _column(columns, reference)
    rows = {
        name: values for name, values in columns.items() if isinstance(values, list) and len(values) == len(prompts)
    }
    ids = rows.get("id", [""] * len(prompts))
    return [
        Problem(
            str(ids[number]), prompt_of(prompt), references[number], {name: row[number] for name, row in rows.items()}
        )
        for number, prompt in enumerate(prompts)
    ]


def all_or_none(*functions: RewardFunction) -> list[RewardFunction]:
    """Make reward functions return None for the same completions.

    If one returns None for a completion, all return None, so that TRL leaves the completion out. Each function is called once
    for a batch, when TRL calls any of the returned functions first. Completions are passed as texts, so that a penalty on
    length can count letters. A function that fails on texts gets TRL's chat messages instead.
    """
    asked = [_on_texts(function) for function in functions]
    last: list[tuple[Any, list[list[float | None]]]] = []

    def rewards(completions: Any, columns: dict[str, Any]) -> list[list[float | None]]:
        if not last or last[0][0] is not completions:  # for a batch, TRL passes the same list to all functions
            given = [function(completions, columns) for function in asked]
            whole = [None not in row for row in zip(*given, strict=True)]
            last[:] = [(completions, [_masked(values, whole) for values in given])]
        return last[0][1]

    def one(index: int) -> RewardFunction:
        @functools.wraps(functions[index])
        def reward(completions: Any, **columns: Any) -> list[float | None]:
            return rewards(completions, columns)[index]

        return reward

    return [one(index) for index in range(len(functions))]


def _on_texts(function: RewardFunction) -> Callable[[Any, dict[str, Any]], list[float | None]]:
    """Wrap a reward function, so that it gets the texts of chat messages, or the messages if it fails on texts."""

    def reward(completions: Any, columns: dict[str, Any]) -> list[float | None]:
        try:
            return function(completions=[text_of(completion) for completion in completions], **columns)
        except _NOT_FOR_TEXTS:
            return function(completions=completions, **columns)

    return reward


def _masked(values: Sequence[float | None], whole: Sequence[bool]) -> list[float | None]:
    return [value if counts else None for value, counts in zip(values, whole, strict=True)]


def environment(
    env: str, split: str | None = None, *, limit: int | None = None, tokenizer: Any = None, **arguments: Any
) -> tuple[datasets.Dataset, RewardFunction]:
    """Load an environment's problems as a data set for `train_dataset`, and their reward function.

    The columns are `prompt` and `problem`. The reward function finds the reference by `problem`, so a reference may have any
    type, such as unit tests. Prompts are chat messages. If the model's tokenizer has no chat template, as for base models,
    prompts are texts, and completions are judged up to the prompt's stop strings.

    Args:
        env: As for `rlvr_envs.environment_class`.
        split: None for the environment's own default.
        limit: Number of problems; None for all.
        tokenizer: The model's tokenizer, or the folder or Hugging Face name of the model. None means a tokenizer with a chat
            template.
        **arguments: Arguments of the data set, such as `data_dir`.

    Raises:
        InvalidArgumentError: If there are no problems.
    """
    import datasets

    chat = tokenizer is None or _has_chat_template(tokenizer)
    task = load_task(env, split, chat=chat, **arguments)
    count = number_of_problems(task.problems, env, limit)
    ask = task.messages if chat else task.text
    rows = [{"prompt": ask(index), "problem": index} for index in range(count)]
    name = env.removeprefix("rlvr/").partition("-v")[0]
    reward = reward_function(task.verifier, problems=task.problems, name=name, stop=() if chat else task.prompt.stop)
    return datasets.Dataset.from_list(rows), reward


def _has_chat_template(tokenizer: Any) -> bool:
    if isinstance(tokenizer, str | Path):
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(tokenizer)
    return getattr(tokenizer, "chat_template", None) is not None


def export(
    env: str, folder: str | Path, *, split: str | None = None, limit: int | None = None, **arguments: Any
) -> Path:
    """Write `train.py`, a script that trains with `GRPOTrainer` on an environment.

    `trl_episodes` plays episodes of several turns.

    Args:
        env: As for `rlvr_envs.environment_class`.
        folder: Folder to write to, which is created if necessary.
        split: None for the environment's own default.
        limit: Number of problems; None for all.
        **arguments: Arguments of the data set, such as `data_dir`, and, for episodes of several turns, arguments of the
            environment, such as `tools`. The arguments are written into the script.

    Returns:
        The script.

    Raises:
        InvalidArgumentError: If there are no problems, or the arguments can't be written as Python.
    """
    spec = rlvr_envs.environment_class(env).task
    turns = has_turns(env, split, **arguments)
    if turns:
        streams = streams_of(env, split, None, arguments)
        needed = streams.rules.max_new_tokens + streams.rules.max_inserted_tokens
        problems, tokens = streams.dataset, max(_EPISODE_TOKENS, needed)
    else:
        problems, tokens = load_task(env, split, **arguments).problems, max(spec.max_new_tokens, spec.chat_tokens)
    number_of_problems(problems, env, limit)
    settings = {
        "env": rlvr_envs.environment_id(env),
        "split": spec.default_split if split is None else split,
        "limit": limit,
        "arguments": data_as_python(arguments),
        **(_TURNS if turns else _ONE_TURN),
    }
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    script = path / "train.py"
    script.write_text(_SCRIPT.format(file=script.name, max_new_tokens=tokens, **settings), encoding="utf-8")
    return script
