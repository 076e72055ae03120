"""verl: use a verifier as the custom reward function.

```
reward.custom_reward_function.path=pkg://agents.adapters.verl
reward.custom_reward_function.name=compute_score
+reward.custom_reward_function.reward_kwargs.verifier=math
```

`export` writes an environment's problems as Parquet, together with their reward function.

verl can't leave a sample out, and a NaN would spoil the whole batch, so a verifier that breaks raises an exception, which stops
the run (verl 0.9: `verl/trainer/ppo/reward.py`, `verl/experimental/reward_loop/`).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import rlvr_envs
import verifiers
from agents.adapters.episodes import has_turns, opening, streams_of
from agents.adapters.problems import data_as_python, judged, load_task, number_of_problems
from agents.runs.files.json_files import to_json
from verifiers import DataError, Problem, Verdict, Verifier, missing_dependency

_REWARD = '''\
"""Rewards of {env} for verl, by its verifier in rlvr-envs."""

from agents.adapters.verl import scorer_of

compute_score = scorer_of({env!r}, {split!r}, {arguments})
'''
_AGENT = """\
- name: rlvr
  _target_: agents.adapters.verl_episodes.EpisodeLoop
  env: {env}
  split: {split}
  arguments: {arguments}
"""


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    verifier: str = "math",
    verifier_args: Mapping[str, Any] | None = None,
    **unused: Any,
) -> dict[str, Any]:
    """Score one response. All results have the same keys, as verl's batches require.

    Args:
        data_source: The row's source, which becomes part of the problem's id.
        solution_str: The response.
        ground_truth: The row's `reward_model.ground_truth`, which is the reference.
        extra_info: The row's further data, which becomes the problem's metadata.
        verifier: As for `verifiers.make`.
        verifier_args: Arguments of the verifier.
        **unused: Further arguments that verl passes to all reward functions, such as the address of a reward model.

    Returns:
        `score`, `acc` (whether the outcome is correct), and the texts `outcome` and `pred` (the answer found).

    Raises:
        VerifierFailureError: If the verifier could not judge.
    """
    metadata = dict(extra_info or {})
    problem = Problem(
        f"{data_source}/{metadata.get('index', '')}", str(metadata.get("question", "")), _plain(ground_truth), metadata
    )
    made = _made(verifier, json.dumps(dict(verifier_args or {}), sort_keys=True, default=dict))
    return result_of(judged(made, solution_str, problem, "verl"))


def export(
    env: str, folder: str | Path, *, split: str | None = None, limit: int | None = None, **arguments: Any
) -> tuple[Path, Path]:
    """Write an environment's problems as Parquet, and `reward.py` for judging or, for several turns, `agent.yaml`.

    `agent.yaml` names `verl_episodes.EpisodeLoop`, which plays and judges an episode for each row. A row contains the index and
    id of its problem. The problem itself is read from the environment's data, so that a reference may have any type, such as
    unit tests. The data must therefore be present where verl runs.

    Args:
        env: As for `rlvr_envs.environment_class`.
        folder: Folder to write to, which is created if necessary.
        split: None for the environment's own default.
        limit: Number of problems; None for all.
        **arguments: Arguments of the data set, such as `data_dir`, and, for episodes of several turns, arguments of the
            environment, such as `tools`. The arguments are written into the second file.

    Returns:
        The data, `SPLIT.parquet`, and `reward.py` or `agent.yaml`.

    Raises:
        InvalidArgumentError: If there are no problems, or the arguments can't be written as Python.
        MissingDependencyError: If pyarrow is not installed.
    """
    try:
        import pyarrow  # type: ignore[import-untyped]  # ships no types
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError as error:
        raise missing_dependency("pyarrow", "hub", "an export for verl") from error
    name, written = rlvr_envs.environment_id(env), data_as_python(arguments)
    split = rlvr_envs.environment_class(env).task.default_split if split is None else split
    turns = has_turns(env, split, **arguments)
    if turns:
        world = rlvr_envs.MessageEnv(streams_of(env, split, None, arguments), "calls")
        problems = world.streams.dataset
        file, source = (
            "agent.yaml",
            _AGENT.format(env=json.dumps(name), split=json.dumps(split), arguments=json.dumps(written)),
        )
    else:
        task = load_task(env, split, **arguments)
        problems = task.problems
        file, source = "reward.py", _REWARD.format(env=name, split=split, arguments=written)
    rows = [
        {
            "data_source": name,
            "prompt": opening(world, problems[index]) if turns else task.messages(index),
            "ability": "",
            "reward_model": {"style": "rule", "ground_truth": _text(problems[index].reference)},
            "extra_info": {"split": split, "index": index, "id": problems[index].id},
            **({"agent_name": "rlvr"} if turns else {}),
        }
        for index in range(number_of_problems(problems, env, limit))
    ]
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    data = path / f"{split}.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), data)
    (path / file).write_text(source, encoding="utf-8")
    return data, path / file


def scorer_of(env: str, split: str, arguments: Mapping[str, Any]) -> Callable[..., dict[str, Any]]:
    """Make `compute_score` for exported rows. It judges with an environment's verifier, and loads the data at the first row."""

    @functools.cache
    def task() -> Any:
        return load_task(env, split, **arguments)

    def compute_score(
        data_source: str,
        solution_str: str,
        ground_truth: Any,
        extra_info: Mapping[str, Any] | None = None,
        **unused: Any,
    ) -> dict[str, Any]:
        row = extra_info or {}
        problem = task().problems[int(row["index"])]
        check_row(row, env, problem)
        return result_of(judged(task().verifier, solution_str, problem, "verl"))

    return compute_score


def check_row(row: Mapping[str, Any], env: str, problem: Problem) -> None:
    """Check that a row's index still belongs to the exported problem.

    Raises:
        DataError: If the index belongs to another problem.
    """
    if problem.id != row["id"]:
        raise DataError(
            f"row {row['index']} was exported as problem {row['id']!r} of {env}, and is {problem.id!r} here: export again, "
            "from the data that are here"
        )


def _text(reference: object) -> str:
    return reference if isinstance(reference, str) else to_json(reference)


def result_of(verdict: Verdict) -> dict[str, Any]:
    """The fields of a verdict that verl logs."""
    return {
        "score": verdict.score,
        "acc": verdict.outcome is verifiers.Outcome.CORRECT,
        "outcome": verdict.outcome.value,
        "pred": verdict.answer or "",
    }


@functools.cache
def _made(name: str, arguments: str) -> Verifier:
    """Make the verifier; it is cached, so that each worker makes only one, since a verifier may hold processes."""
    return verifiers.make(name, **json.loads(arguments))


def _plain(value: Any) -> Any:
    """Convert an array from Parquet to a list or a scalar."""
    return value.tolist() if hasattr(value, "tolist") else value
