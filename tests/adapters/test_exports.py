"""Data sets written for other libraries: what stands in the files."""

from __future__ import annotations

import json
import math
import runpy
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import verifiers
from agents.adapters import lm_eval, primeintellect, trl, verl
from agents.adapters.problems import json_row
from rlvr_envs import environment_class
from tests.commands import Command
from verifiers import DataError, InvalidArgumentError, Problem


def test_a_row_keeps_any_reference_that_json_can() -> None:
    row = json.loads(json_row(Problem("p", "2+2?", {"tests": ["a\u2028b", 1.5, None]}, {"level": 3}), "2+2?"))
    assert row["id"] == "p"
    assert json.loads(row["reference"]) == {"tests": ["a\u2028b", 1.5, None]}
    assert json.loads(row["metadata"]) == {"level": 3}


@pytest.mark.parametrize("reference", [b"4", (1, 2), {1: 2}, object(), math.nan])
def test_a_reference_that_would_be_another_one_is_refused(reference: object) -> None:
    with pytest.raises(DataError, match="the reference of problem 'p' can't be written as JSON"):
        json_row(Problem("p", "", reference), "")


def function_in(path: Path, name: str) -> Any:
    """What another library finds in a Python file."""
    return runpy.run_path(str(path))[name]


@pytest.fixture
def verl_rows(tmp_path: Path) -> dict[str, object]:
    """Arguments of rlvr/Text-v0 for rows of two sources, of which "03" is right by one verifier and wrong by the other."""
    answer = {"reward_model": {"ground_truth": "3"}}
    rows = [
        {"data_source": source, "prompt": [{"role": "user", "content": "1 + 2?"}], **answer, "extra_info": {}}
        for source in ("mine/text", "openai/gsm8k")
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"dataset": str(path), "layout": "verl", "verifiers": {"mine/*": ("exact", {})}}


def test_lm_eval_judges_each_row_by_its_source(tmp_path: Path, verl_rows: dict[str, object]) -> None:
    lm_eval.export("Text", tmp_path / "mixed", split="train", **verl_rows)
    rows = [json.loads(line) for line in (tmp_path / "mixed" / "mixed.jsonl").read_text("utf-8").splitlines()]
    score = function_in(tmp_path / "mixed" / "metrics.py", "process_results")
    assert [score(row, ["03"])["score"] for row in rows] == [0.0, 1.0]
    assert [score(row, ["3"])["score"] for row in rows] == [1.0, 1.0]


def test_primeintellect_serves_the_verifier_of_the_rows(tmp_path: Path, verl_rows: dict[str, object]) -> None:
    name, arguments = primeintellect.export("Text", tmp_path / "mixed", split="train", **verl_rows)
    assert name == "by_metadata"
    lines = (tmp_path / "mixed" / "mixed" / "problems.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    problems = [Problem(row["id"], "", json.loads(row["reference"]), json.loads(row["metadata"])) for row in rows]
    verdicts = verifiers.verify_batch(verifiers.make(name, **arguments), ["03", "03"], problems)
    assert [verdict.score for verdict in verdicts] == [0.0, 1.0]


def test_a_verifier_that_can_not_be_written_is_refused(tmp_path: Path, verl_rows: dict[str, object]) -> None:
    judge = ("weighted_sum", {"parts": {"a": verifiers.make("exact")}})
    with pytest.raises(InvalidArgumentError, match="the arguments of the verifier 'by_metadata' must be plain data"):
        lm_eval.export("Text", tmp_path / "mixed", split="train", **verl_rows | {"verifiers": {"mine/*": judge}})


def test_lm_eval_files(tmp_path: Path) -> None:
    yaml = lm_eval.export("Addition", tmp_path / "sums", limit=2)
    assert sorted(path.name for path in yaml.parent.iterdir()) == ["metrics.py", "sums.jsonl", "sums.yaml"]
    problems = environment_class("Addition").task.load(split="test")
    rows = [json.loads(line) for line in (tmp_path / "sums" / "sums.jsonl").read_text("utf-8").splitlines()]
    assert [row["prompt"] for row in rows] == [problems[0].prompt, problems[1].prompt]  # of the test split, by default
    score = function_in(tmp_path / "sums" / "metrics.py", "process_results")
    assert score(rows[0], [str(problems[0].reference)]) == {"score": 1.0, "verifier_errors": 0.0}
    assert score(rows[0], ["no"])["score"] == 0.0


def test_what_can_not_be_judged_is_in_no_mean() -> None:
    assert lm_eval.mean_of_judged([1.0, math.nan, 0.0]) == 0.5
    assert math.isnan(lm_eval.mean_of_judged([math.nan]))


def test_primeintellect_files(tmp_path: Path) -> None:
    verifier = primeintellect.export("Addition", tmp_path / "sums", split="test", limit=2)
    assert verifier == environment_class("Addition").task.chat_verifier
    source = (tmp_path / "sums" / "sums" / "__init__.py").read_text("utf-8")
    compile(source, "sums", "exec")
    assert "stop" not in source.lower()  # the model answers a chat, in its template
    lines = (tmp_path / "sums" / "sums" / "problems.jsonl").read_text("utf-8").splitlines()
    rows = list(map(json.loads, lines))
    problem = environment_class("Addition").task.load(split="test")[1]
    assert rows[1]["prompt"][0]["content"].startswith(f"What is {str(problem.prompt).removesuffix('=')}?")
    assert json.loads(rows[1]["reference"]) == problem.reference


def test_a_folder_that_can_not_be_a_package_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"got 'my-sums'"):
        primeintellect.export("Addition", tmp_path / "my-sums")
    with pytest.raises(InvalidArgumentError, match="no problems"):
        primeintellect.export("Addition", tmp_path / "sums", limit=0)


def test_verl_rows_and_their_reward(tmp_path: Path) -> None:
    data, reward = verl.export("Addition", tmp_path / "sums", split="test", limit=3, digits=1)
    assert [data.name, reward.name] == ["test.parquet", "reward.py"]
    rows = pyarrow.parquet.read_table(data).to_pylist()
    problems = environment_class("Addition").task.load(split="test", digits=1)
    asked = [row["prompt"][0]["content"].partition("?")[0] for row in rows]
    assert asked == [f"What is {str(problems[i].prompt).removesuffix('=')}" for i in range(3)]
    assert [row["reward_model"]["ground_truth"] for row in rows] == [problems[i].reference for i in range(3)]
    compute_score = function_in(reward, "compute_score")
    row = {"data_source": rows[2]["data_source"], "extra_info": rows[2]["extra_info"]}
    right = compute_score(solution_str=str(problems[2].reference), ground_truth="", **row)
    assert right == {"score": 1.0, "acc": True, "outcome": "correct", "pred": str(problems[2].reference)}
    assert compute_score(solution_str="no", ground_truth="", reward_router_address=None, **row)["score"] == 0.0
    row["extra_info"]["id"] = "another"
    with pytest.raises(DataError, match=r"row 2 was exported as problem 'another' .* export again"):
        compute_score(solution_str="4", ground_truth="", **row)


@pytest.mark.usefixtures("local_data")
def test_verl_takes_references_of_any_kind(tmp_path: Path) -> None:
    data, _ = verl.export("HumanEval", tmp_path / "programs")
    (written,) = pyarrow.parquet.read_table(data).to_pylist()
    assert "candidate(2) == 4" in written["reward_model"]["ground_truth"]


def test_what_is_exported_runs_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sums.jsonl").write_text('{"question": "1 + 1?", "answer": "2"}', encoding="utf-8")
    data, reward = verl.export("Text", "for_verl", dataset=Path("sums.jsonl"))
    script = trl.export("Text", "for_trl", dataset="sums.jsonl")
    (row,) = pyarrow.parquet.read_table(data).to_pylist()
    source = script.read_text("utf-8")
    assert f"**{{'dataset': {str(tmp_path / 'sums.jsonl')!r}}})" in source
    compute_score = function_in(tmp_path / reward, "compute_score")
    monkeypatch.chdir("/")
    judgement = compute_score("any", "2", "2", extra_info=row["extra_info"])
    assert judgement["outcome"] == "correct"
    with pytest.raises(InvalidArgumentError, match="the arguments of the data set must be plain data"):
        trl.export("Text", tmp_path / "other", dataset=[Problem("1", "1 + 1?", "2")])


def test_the_trl_script_names_the_environment(tmp_path: Path) -> None:
    script = trl.export("Addition", tmp_path / "sums", split="test", limit=3, digits=1)
    source = script.read_text("utf-8")
    compile(source, "train", "exec")
    assert "adapter.environment('rlvr/Addition-v0', 'test', limit=3, tokenizer=name, **{'digits': 1})" in source
    rows, reward = trl.environment("rlvr/Addition-v0", "test", limit=3, digits=1)
    answers = [str(environment_class("Addition").task.load(split="test", digits=1)[i].reference) for i in range(3)]
    assert reward(prompts=rows["prompt"], completions=answers, problem=rows["problem"]) == [1.0, 1.0, 1.0]
    assert reward.__name__ == "Addition"


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("verl", "reward.custom_reward_function.name=compute_score"),
        ("trl", "train.py --model_name_or_path MODEL"),
        ("prime-rl", "rlvr serve-verifier --verifier numeric"),
        ("lm-eval", "--tasks sums --model hf"),
    ],
)
def test_the_command_says_what_to_do_with_the_files(target: str, said: str, tmp_path: Path, rlvr: Command) -> None:
    folder = tmp_path / "sums"
    code, output, _ = rlvr(
        "export", target, "--env", "Addition", "--folder", folder, "--limit", "2", "--args", "digits=1"
    )
    assert code == 0
    assert said in output
    assert any(folder.iterdir())


def test_the_command_refuses_what_the_data_do_not_take(tmp_path: Path, rlvr: Command) -> None:
    code, _, errors = rlvr("export", "verl", "--env", "Addition", "--folder", tmp_path, "--args", "digit=1")
    assert code == 2
    assert "Did you mean 'digits'" in errors
    assert not any(tmp_path.iterdir())


def test_no_file_is_replaced_unasked(tmp_path: Path, rlvr: Command) -> None:
    (tmp_path / "train.py").write_text("print('mine')")
    words = ["export", "trl", "--env", "Addition", "--folder", str(tmp_path), "--limit", "2"]
    code, _, errors = rlvr(*words)
    assert code == 2
    assert "holds files" in errors
    assert (tmp_path / "train.py").read_text() == "print('mine')"
    code, _, _ = rlvr(*words, "--overwrite")
    assert code == 0
    assert (tmp_path / "train.py").read_text() != "print('mine')"
