"""lm-evaluation-harness: use an environment's problems as a task.

```
python -c "from agents.adapters import lm_eval; lm_eval.export('GSM8K', 'tasks/gsm8k_rlvr', split='test')"
lm_eval --include_path tasks --tasks gsm8k_rlvr --model hf --model_args pretrained=MODEL
```

The metrics are `score`, the mean over the judged samples, and `verifier_errors`, the share of samples that could not be judged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import rlvr_envs
import verifiers
from agents.adapters.problems import as_python, json_row, load_task, number_of_problems
from verifiers import Problem

# Fields such as `{name}` are filled in with JSON, which is also YAML. `!function` names a Python function in the task's folder.
_TASK = """\
task: {name}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {file}
test_split: test
output_type: generate_until
doc_to_text: "{{{{prompt}}}}"
doc_to_target: ""
process_results: !function metrics.process_results
generation_kwargs:
  until: {stop}
  max_gen_toks: {max_new_tokens}
  do_sample: false
metric_list:
  - metric: score
    aggregation: !function metrics.mean_of_judged
    higher_is_better: true
  - metric: verifier_errors
    aggregation: mean
    higher_is_better: false
metadata:
  version: 0
"""
_METRICS = '''\
"""Scores of {env}, by the verifier of rlvr-envs."""

from agents.adapters.lm_eval import mean_of_judged, scorer_of

process_results = scorer_of({name}, {arguments})
'''


def export(
    env: str, folder: str | Path, *, split: str | None = None, limit: int | None = None, **arguments: Any
) -> Path:
    """Write a task: `NAME.yaml`, `NAME.jsonl` with the problems, and `metrics.py`, where NAME is the folder's name.

    The YAML file contains the absolute path of the problems, so export again instead of moving the folder.

    Args:
        env: As for `rlvr_envs.environment_class`.
        folder: Folder to write to, which is created if necessary.
        split: None for the test split or, if there is no test split, the environment's default.
        limit: Number of problems; None for all.
        **arguments: Arguments of the data set, such as `data_dir`.

    Returns:
        The YAML file.

    Raises:
        DataError: If a reference can't be written as JSON.
        InvalidArgumentError: If there are no problems, or the verifier's arguments can't be written as Python.
    """
    spec = rlvr_envs.environment_class(env).task
    if split is None and "test" in spec.splits:
        split = "test"  # the split for evaluations
    task = load_task(env, split, chat=False, **arguments)
    count = number_of_problems(task.problems, env, limit)
    path = Path(folder).absolute()
    path.mkdir(parents=True, exist_ok=True)
    rows = [json_row(task.problems[index], task.text(index)) for index in range(count)]
    data = path / f"{path.name}.jsonl"
    data.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    yaml = path / f"{path.name}.yaml"
    stop = list(task.prompt.stop)
    settings = {"name": path.name, "file": str(data), "stop": stop, "max_new_tokens": spec.max_new_tokens}
    yaml.write_text(_TASK.format(**{name: json.dumps(value) for name, value in settings.items()}), encoding="utf-8")
    (path / "metrics.py").write_text(_metrics(env, *task.verifier_spec), encoding="utf-8")
    return yaml


def _metrics(env: str, name: str, arguments: Mapping[str, object]) -> str:
    """The source of `metrics.py`, which judges with the verifier of the problems, not with the environment's verifier."""
    written = as_python(f"the verifier {name!r}", arguments)
    return _METRICS.format(env=rlvr_envs.environment_id(env), name=repr(name), arguments=written)


def scorer_of(
    name: str, arguments: Mapping[str, Any]
) -> Callable[[Mapping[str, Any], Sequence[str]], dict[str, float]]:
    """Make `process_results` of an exported task, which judges with the verifier of this name and these arguments."""
    verifier = verifiers.make(name, **arguments)

    def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
        problem = Problem(doc["id"], doc["prompt"], json.loads(doc["reference"]), json.loads(doc["metadata"]))
        (verdict,) = verifiers.verify_batch(verifier, [results[0]], [problem])
        return {"score": verdict.score, "verifier_errors": float(math.isnan(verdict.score))}

    return process_results


def mean_of_judged(scores: Sequence[float]) -> float:
    """The mean over the judged samples; NaN if no sample could be judged."""
    judged = [score for score in scores if not math.isnan(score)]
    return sum(judged) / len(judged) if judged else math.nan
