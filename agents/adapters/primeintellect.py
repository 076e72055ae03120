"""Prime Intellect's `verifiers`: use an environment's problems as a taskset.

That distribution and rlvr-envs both have a package `verifiers`, so they can't share a Python environment. The exported package
holds the problems and does not need rlvr-envs. It gets its rewards from a running `rlvr serve-verifier`.

```
python -c "from agents.adapters import primeintellect; primeintellect.export('GSM8K', 'rlvr_gsm8k', split='train')"
rlvr serve-verifier --verifier math
RLVR_VERIFIER_URL=http://127.0.0.1:8000 uv run eval rlvr_gsm8k
```

Run the middle line in the environment of rlvr-envs, with the verifier that `export` returns, and the last line in the
environment of Prime Intellect's `verifiers`, after `pip install ./rlvr_gsm8k`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from agents.adapters.problems import json_row, load_task, number_of_problems
from verifiers import InvalidArgumentError

_PROJECT = """\
[build-system]
requires = ["hatchling>=1.25"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "0"
requires-python = ">=3.11"
dependencies = ["verifiers>=0.4"]

[tool.hatch.build.targets.wheel]
packages = ["{name}"]
"""
_TASKSET = '''\
"""Problems of {env}, judged by the service `rlvr serve-verifier` of rlvr-envs.

RLVR_VERIFIER_URL is its address, by default http://127.0.0.1:8000, and RLVR_VERIFIER_TOKEN its token, if it has one.
"""

import asyncio
import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import verifiers.v1 as vf


class ProblemData(vf.TaskData):
    reference: str
    """JSON."""
    metadata: str
    """JSON."""


class ProblemTask(vf.Task[ProblemData, vf.State, vf.TaskConfig]):
    @vf.reward
    async def verdict(self, trace: vf.Trace) -> float:
        return await asyncio.to_thread(_score, self.data, trace.last_reply)


class ProblemTaskset(vf.Taskset[ProblemTask, vf.TasksetConfig]):
    def load(self) -> Iterator[ProblemTask]:
        for line in Path(__file__).with_name("problems.jsonl").read_text(encoding="utf-8").splitlines():
            yield ProblemTask(ProblemData(**json.loads(line)), self.config.task)


def _score(data: ProblemData, completion: str) -> float:
    """The verdict's score; any answer but a verdict is an error, never a score."""
    item = {{
        "completion": completion,
        "reference": json.loads(data.reference),
        "prompt": data.prompt_text,
        "id": data.id,
        "metadata": json.loads(data.metadata),
    }}
    address = os.environ.get("RLVR_VERIFIER_URL", "http://127.0.0.1:8000")
    headers = {{"Content-Type": "application/json"}}
    if token := os.environ.get("RLVR_VERIFIER_TOKEN"):
        headers["Authorization"] = f"Bearer {{token}}"
    request = urllib.request.Request(f"{{address}}/verify", json.dumps({{"items": [item]}}).encode(), headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return float(json.load(answer)["verdicts"][0]["score"])
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{{address}} answered {{error.code}}: {{error.read().decode(errors='replace')}}") from error


__all__ = ["ProblemTaskset"]
'''


def export(
    env: str, folder: str | Path, *, split: str | None = None, limit: int | None = None, **arguments: Any
) -> tuple[str, dict[str, object]]:
    """Write a taskset as an installable package. The folder's name is the package's name.

    Args:
        env: As for `rlvr_envs.environment_class`.
        folder: Folder to write to, which is created if necessary.
        split: None for the environment's own default.
        limit: Number of problems; None for all.
        **arguments: Arguments of the data set, such as `data_dir`.

    Returns:
        Name and arguments of the verifier to serve.

    Raises:
        DataError: If a reference can't be written as JSON.
        InvalidArgumentError: If the folder's name can't be the name of a package, or there are no problems.
    """
    path = Path(folder).absolute()
    if not re.fullmatch(r"[a-z][a-z0-9_]*", path.name):
        raise InvalidArgumentError(f"the folder's name is the package's: letters, digits and _, got {path.name!r}")
    task = load_task(env, split, **arguments)
    count = number_of_problems(task.problems, env, limit)
    rows = [json_row(task.problems[index], task.messages(index)) for index in range(count)]
    package = path / path.name
    package.mkdir(parents=True, exist_ok=True)
    (path / "pyproject.toml").write_text(_PROJECT.format(name=path.name), encoding="utf-8")
    (package / "__init__.py").write_text(_TASKSET.format(env=env), encoding="utf-8")
    (package / "problems.jsonl").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    name, verifier_arguments = task.verifier_spec
    return name, dict(verifier_arguments)
