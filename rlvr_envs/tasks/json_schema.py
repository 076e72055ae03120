"""JSONSchemaBench: real schemas to write JSON for (Geng et al. 2025, arXiv:2501.10868), its part `Github_easy`.

The columns are those that lm-eval reads from `epfl-dlab/JSONSchemaBench` (`json_schema`, and `unique_id` beside it; splits
`train`, `val` and `test`). The sizes are the hub's, and were not checked here.
"""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import Row, Source
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task
from verifiers import Problem


def _to_problem(row: Row, default_id: str) -> Problem:
    schema = row.text("json_schema")
    prompt = f"Give a JSON value that fits this JSON schema.\n\n```json\n{schema.strip()}\n```"
    return Problem(f"json_schema/{row.text('unique_id')}", prompt, schema, row.without("json_schema", "unique_id"))


SOURCE = Source(
    name="json_schema",
    hub_id="epfl-dlab/JSONSchemaBench",
    hub_config="Github_easy",
    sizes={"train": 1170, "val": 196, "test": 577},
    to_problem=_to_problem,
)
"""The prompt asks for a value that fits the schema, the reference is the schema, as JSON text. There are no gold
completions. Ids are the source's own, `"json_schema/<unique_id>"`. A local file of any schemas has the same two columns.
"""


class JSONSchemaEnv(TaskEnv):
    """JSON schemas to write a value for.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Schemas found on GitHub, the easy ones of JSONSchemaBench (Geng et al. 2025, arXiv:2501.10868).

    ## Starting State
    The request for a value, and the schema. Default prompt `chat`: one user message with these alone.

    ## Reward
    1 when the completion's JSON fits the schema, else 0. Any value that fits is right: for most schemas an empty object or
    list does, so this is practice in form, not in content.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="train"`,
    `max_new_tokens=1024`, `verifier="json_schema"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        SOURCE,
        default_split="train",
        verifier=("json_schema", {}),
        prompt="chat",
        max_new_tokens=1024,
    )
