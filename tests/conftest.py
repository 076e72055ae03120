"""Shared fixtures: a sandbox for each test file, and small data of every benchmark's layout, so that nothing is downloaded."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import rlvr_envs
from tests import parts
from verifiers import _workers
from verifiers.sandbox import Limits, Sandbox
from verifiers.unit_tests import UnitTestVerifier

# Several test processes share the machine; with a thread for each core in each of them they would wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Tests that interrupt need Python's own handler, which a process that is started in the background of a script does not have.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes depends on the machine's load; the environments of tests/vllm and tests/trl have no hypothesis.
with contextlib.suppress(ImportError):
    import hypothesis

    hypothesis.settings.register_profile(
        "any load", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("any load")

_ROWS: dict[str, list[dict[str, object]]] = {
    "gsm8k": [
        {"question": "Ada has 3 pens and buys 4 more. How many has she?", "answer": "3 + 4 = <<3+4=7>>7\n#### 7"},
        {"question": "A box holds 12 eggs. How many do 5 boxes hold?", "answer": "12 * 5 = 60\n#### 60"},
    ],
    "math": [
        {"problem": "Halve $3$.", "level": "Level 1", "type": "Algebra", "solution": "It is $\\boxed{\\frac{3}{2}}$."},
        {"problem": "Square $-4$.", "level": "Level 1", "type": "Algebra", "solution": "It is $\\boxed{16}$."},
    ],
    "math500": [
        {
            "problem": "What is $2^5$?",
            "solution": "Doubling gives $\\boxed{32}$.",
            "answer": "32",
            "subject": "Algebra",
            "level": 1,
            "unique_id": "test/algebra/0.json",
        }
    ],
    "aime24": [{"id": 1, "problem": "Find $100+4$.", "solution": "It is 104.", "answer": "104", "url": "u"}],
    "amc23": [{"id": 1, "problem": "Find $6 \\cdot 6$.", "question": "Find 36.", "answer": 36.0, "url": "u"}],
    "aime25": [{"problem_idx": 1, "problem": "Find $100+5$.", "answer": 105}],
    "aime26": [{"problem_idx": 1, "problem": "Find $100+6$.", "answer": 106}],
    "hmmt25": [{"problem_idx": 1, "problem": "Halve $3$.", "answer": "\\frac{3}{2}"}],
    "dapo_math_17k": [{"prompt": "Find $30+4$.", "solution": "34"}],
    "deepscaler": [{"problem": "Which positive number squared is $2$?", "answer": "\\sqrt{2}", "solution": ""}],
    "polaris": [{"problem": "Halve $5$.", "answer": "\\frac{5}{2}", "difficulty": "7/8"}],
    "gpqa": [
        {
            "Record ID": "rec1",
            "Question": "How many legs has a spider?",
            "Correct Answer": "eight",
            "Incorrect Answer 1": "four",
            "Incorrect Answer 2": "six",
            "Incorrect Answer 3": "ten",
        }
    ],
    "mmlu_pro": [
        {
            "question": "Which is a noble gas?",
            "options": ["oxygen", "argon", "chlorine"],
            "answer": "B",
            "answer_index": 1,
            "category": "chemistry",
        }
    ],
    "omni_math": [{"problem": "Halve $7$.", "answer": "\\frac{7}{2}", "difficulty": 1.5, "domain": ["Algebra"]}],
    "olympiadbench": [{"question": "Which $x$ have $x^2=4$?", "context": None, "final_answer": ["$2$", "$-2$"]}],
    "numina_math": [
        {
            "problem": "Halve $9$.",
            "solution": "It is $9/2$.",
            "answer": "\\frac{9}{2}",
            "question_type": "math-word-problem",
            "problem_is_valid": "Yes",
            "solution_is_valid": "Yes",
        }
    ],
    "supergpqa": [
        {
            "uuid": "u1",
            "question": "Which is a noble gas?",
            "options": ["oxygen", "argon", "chlorine", "iron"],
            "answer": "argon",
            "answer_letter": "B",
            "difficulty": "easy",
        }
    ],
    "livecodebench": [
        {
            "question_id": "q1",
            "question_content": "Double the number.",
            "starter_code": "",
            "public_test_cases": '[{"input": "1", "output": "2", "testtype": "stdin"}]',
            "private_test_cases": '[{"input": "-4", "output": "-8", "testtype": "stdin"}]',
            "metadata": "{}",
            "difficulty": "easy",
        }
    ],
    **{
        name: [
            {
                "question": "Double the number.",
                "solutions": '["print(2 * int(input()))"]',
                "input_output": '{"inputs": ["1", "-4"], "outputs": ["2", "-8"]}',
                "starter_code": "",
                "difficulty": "EASY",
            }
        ]
        for name in ("apps", "taco")
    },
    "codecontests": [
        {
            "description": "Double the number.",
            "public_tests": {"input": ["1"], "output": ["2"]},
            "private_tests": {"input": ["-4"], "output": ["-8"]},
            "generated_tests": {"input": [], "output": []},
            "solutions": {"language": [3], "solution": ["print(2 * int(input()))"]},
            "time_limit": {"seconds": 2, "nanos": 0},
        }
    ],
    "deepcoder": [
        {
            "problem": "Double the number.",
            "tests": '[{"type": "function_call", "fn_name": "twice", "input": [2], "output": 4}]',
            "solutions": ["```python\ndef twice(n):\n    return 2 * n\n```"],
        }
    ],
    "ifeval": [
        {
            "key": 1000,
            "prompt": "Write about rivers in at least 5 words. Do not use any commas.",
            "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
            "kwargs": [{}, {"relation": "at least", "num_words": 5}],
        }
    ],
    "ifbench": [
        {
            "key": "0",
            "prompt": "Write about rivers. The output should not contain any whitespace.",
            "instruction_id_list": ["format:no_whitespace"],
            "kwargs": [{"N": None, "keyword": None}],
        }
    ],
    "json_schema": [{"json_schema": '{"type": "object", "required": ["name"]}', "unique_id": "a-1"}],
    "sql": [
        {
            "id": 1,
            "sql_prompt": "Who is older than 30?",
            "sql_context": "CREATE TABLE person (name TEXT, age INT); INSERT INTO person VALUES ('Ada', 36), ('Bo', 20);",
            "sql": "SELECT name FROM person WHERE age > 30;",
        }
    ],
    "humaneval": [
        {
            "task_id": "HumanEval/0",
            "prompt": 'def double(x):\n    """Give twice x."""\n',
            "canonical_solution": "    return 2 * x\n",
            "test": "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(-1) == -2\n",
            "entry_point": "double",
        }
    ],
    "mbpp": [
        {
            "task_id": task_id,
            "text": "Write a function to add one.",
            "code": "def inc(x):\n    return x + 1",
            "test_setup_code": "",
            "test_list": ["assert inc(1) == 2"],
            "challenge_test_list": [],
        }
        for task_id in (2, 12, 512, 602)
    ],
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--divide-cpu-limits",
        type=float,
        default=1.0,
        metavar="N",
        help="divide every limit on processor time by N, as if the processor were N times slower; leaves out tests of limits",
    )

    parser.addoption("--part", choices=(parts.CORE, parts.FULL), help="run one part of the tests; see tests/parts.py")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "sandbox(**settings): of the `verifier` of a test file, in place of the usual ones"
    )
    config.addinivalue_line("markers", "limit: asserts what a limit on processor time does")
    if (divisor := config.getoption("--divide-cpu-limits")) != 1:
        _divide_cpu_limits(divisor)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    left_out = (
        config.getoption("--part") == parts.CORE and collection_path.suffix == ".py" and parts.is_full(collection_path)
    )
    return True if left_out else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    part, divisor = config.getoption("--part"), config.getoption("--divide-cpu-limits")
    kept = [
        item
        for item in items
        if part in (None, parts.part_of(item)) and (divisor == 1 or not item.get_closest_marker("limit"))
    ]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept


def _divide_cpu_limits(divisor: float) -> None:
    """Shorten what programs in the sandbox and worker processes may take."""
    divided = f"""
import verifiers._workers as workers
whole = workers.limit_processor_time
workers.limit_processor_time = lambda seconds: whole(seconds / {divisor})
"""
    head, load = _workers._BOOTSTRAP.split("importlib.import_module(module)")
    _workers._BOOTSTRAP = f"{head}{divided}importlib.import_module(module){load}"
    limits_within = Sandbox.limits_within

    def shorter(self: Sandbox, timeout_s: float | None) -> Limits:
        limits = limits_within(self, timeout_s)
        return dataclasses.replace(limits, cpu_s=limits.cpu_s / divisor)

    Sandbox.limits_within = shorter  # type: ignore[method-assign]


@pytest.fixture(scope="module")
def verifier(request: pytest.FixtureRequest) -> Iterator[UnitTestVerifier]:
    """A sandbox that the tests of a file share; a program that breaks its fork server disturbs no other file.

    A file that needs other settings says `pytestmark = pytest.mark.sandbox(timeout_s=5)`.
    """
    marker = request.node.get_closest_marker("sandbox")
    settings = {"timeout_s": 2, "memory_mib": 512} | (marker.kwargs if marker else {})
    with contextlib.closing(UnitTestVerifier(**settings)) as made:
        yield made


@pytest.fixture(scope="session")
def small_data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a row or two of every benchmark, our own, in each split."""
    folder = tmp_path_factory.mktemp("data")
    for name, rows in _ROWS.items():
        (folder / name).mkdir()
        text = "".join(json.dumps(row) + "\n" for row in rows)
        for split in ("train", "test"):
            if name != "mbpp" or split == "test":
                (folder / name / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def local_data(small_data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point RLVR_DATA_DIR at the small data."""
    monkeypatch.setenv("RLVR_DATA_DIR", str(small_data_dir))
    return small_data_dir


NEEDED = {
    "rlvr/JSONSchema-v0": "jsonschema",
    "rlvr/ReasoningGym-v0": "reasoning_gym",
    "rlvr/TextArena-v0": "textarena",
    "rlvr/GEM-v0": "gem",
}
"""What an id needs beside the base install."""
USABLE = [name for name in rlvr_envs.ENVIRONMENTS if name not in NEEDED or importlib.util.find_spec(NEEDED[name])]
"""The ids that can be made here; `make test` has all of them but those of reasoning-gym, TextArena and GEM."""


@pytest.fixture(params=USABLE)
def every_id(request: pytest.FixtureRequest, local_data: Path) -> str:
    """Each registered id in turn, with its data at hand."""
    name: str = request.param
    return name
