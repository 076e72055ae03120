"""Environments that are rows of a table; `tests/data` has what becomes of the rows of each data set."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

import rlvr_envs
from rlvr_envs.tasks import BENCHMARKS, benchmarks
from rlvr_envs.tasks.benchmarks import rows


def test_the_names_found_without_reading_the_tables_are_those_of_their_rows() -> None:
    assert {name: kind for kind in dict.fromkeys(BENCHMARKS.values()) for name in rows(kind)} == BENCHMARKS


def test_a_row_has_the_defaults_of_its_table_where_it_has_none_of_its_own() -> None:
    first, second = rows("mathematics")["GSM8K"], rows("mathematics")["AIME25"]
    assert (first.verifier, first.prompt, first.max_new_tokens) == ("math", "gsm8k_cot_8shot", 512)
    assert (second.verifier, second.prompt, second.max_new_tokens) == ("math", "boxed_chat", 4096)


def test_a_class_is_made_once_and_can_be_pickled() -> None:
    cls = benchmarks.GSM8KEnv
    assert rlvr_envs.environment_class("GSM8K") is cls
    assert pickle.loads(pickle.dumps(cls)) is cls
    assert (cls.__module__, cls.__qualname__) == ("rlvr_envs.tasks.benchmarks", "GSM8KEnv")


@pytest.mark.parametrize("name", ["GSM9KEnv", "GSM8K", "AdditionEnv"])
def test_only_classes_of_rows_are_there(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'rlvr_envs.tasks.benchmarks' has no attribute '{name}'"):
        getattr(benchmarks, name)


def test_a_class_loads_the_code_of_its_own_row_alone() -> None:
    code = (
        "import sys, rlvr_envs; rlvr_envs.environment_class('GSM8K')\n"
        "print(sorted(name for name in sys.modules if name.startswith('rlvr_envs.tasks.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['rlvr_envs.tasks.benchmarks']"
