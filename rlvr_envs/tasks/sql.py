"""Questions to answer with an SQL query, each with the tables and rows that it is about.

The columns are those of `gretelai/synthetic_text_to_sql` (`id`, `sql_prompt`, `sql_context`, `sql`; splits `train` and `test`),
as its card and public training code have them. Rows of Spider (`question`, `query`) and BIRD (`question`, `SQL`, `evidence`)
need one column more, `db_path`: the path of the row's SQLite file.
"""

from __future__ import annotations

from typing import ClassVar

from rlvr_envs.data import Row, Source
from rlvr_envs.envs import TaskEnv, TaskSpec, benchmark_task
from verifiers import InvalidArgumentError, Problem
from verifiers.sql import SQLReference, is_query

_QUESTION, _QUERY, _ID = ("sql_prompt", "question"), ("sql", "query", "SQL"), ("id", "question_id")
_FILE, _SCRIPT = "db_path", ("sql_context", "schema")


def _to_problem(row: Row, default_id: str) -> Problem:
    query = row.text(*_QUERY)
    files = (row.text(_FILE),) if _FILE in row.values else ()
    scripts = () if files and not _has(row, *_SCRIPT) else (row.text(*_SCRIPT),)
    try:
        reference = SQLReference(query, () if files else scripts, files)
    except InvalidArgumentError as error:
        raise row.error(str(error)) from error
    used = (*_QUESTION, *_QUERY, _FILE, *_SCRIPT, "evidence")
    metadata = row.without(*used) | {"gold_completion": f"```sql\n{query.strip()}\n```"}
    return Problem(default_id, _prompt(row, scripts), reference, metadata)


def _prompt(row: Row, scripts: tuple[str, ...]) -> str:
    parts = [*(script.strip() for script in scripts), row.text(*_QUESTION).strip()]
    evidence = row.values.get("evidence")
    return "\n\n".join([*parts, evidence.strip()] if isinstance(evidence, str) and evidence.strip() else parts)


def _has(row: Row, *columns: str) -> bool:
    return any(column in row.values for column in columns)


def _asks(row: Row, split: str) -> bool:
    """Whether a row asks a question; some ask for a change of the tables."""
    return is_query(row.text(*_QUERY))


SOURCE = Source(
    name="sql",
    hub_id="gretelai/synthetic_text_to_sql",
    hub_config=None,
    sizes={"train": 100_000, "test": 5_851},
    to_problem=_to_problem,
    belongs=_asks,
    used="asks a question: no gold query begins with SELECT, WITH or VALUES",
)
"""The prompt is the statements that make the tables, and the question, with BIRD's `evidence` behind it. The reference is the
query and the database: these statements, or the file at `db_path`, beside which `schema` holds the statements to show. Rows
whose query asks nothing (they insert, update or delete) are left out, so that there are fewer problems than the published rows.
Ids count rows.
"""


class SQLEnv(TaskEnv):
    """Questions about tables, to answer with an SQL query.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Made-up questions in a hundred domains, each with small tables of its own (`gretelai/synthetic_text_to_sql`), or the rows of
    Spider, BIRD or your own in a local file.

    ## Starting State
    The statements that make the tables, and the question. Default prompt `sql_chat`: one user message that asks for one
    query in SQLite's dialect, in a fenced block.

    ## Reward
    1 when the query gives what the gold query gives, else 0. The tables of the published rows are small, so that wrong queries
    may give the same by luck: `verifier=("sql", {"changed_copies": 3})` asks changed copies of them, too. Gold queries in other
    dialects than SQLite's, and those that give no rows, are verifier errors; `rlvr check-dataset SQL` lists them.

    ## Arguments
    Those of `rlvr_envs.Settings`, and `data_dir`: a local folder of the data. Defaults: `split="train"`,
    `max_new_tokens=512`, `verifier="sql"`.
    """

    task: ClassVar[TaskSpec] = benchmark_task(
        SOURCE,
        default_split="train",
        verifier=("sql", {}),
        prompt="sql_chat",
        max_new_tokens=512,
    )
