"""What an evaluation leaves behind: each sample as it comes, the same after any interruption, and nothing overwritten."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from agents import CausalLMPolicy, EvaluationRecord, Reinforce, ReinforceConfig, evaluate, save_model, tiny_model
from agents.runs.evaluation_record import MANIFEST, SAMPLES
from agents.seeding import uniforms
from agents.types import Action
from rlvr_envs import ByteTokenizer, Observation, TokenVectorEnv
from tests.agents.test_adapter import DrawnPrompt, third_party
from tests.agents.trajectories import tiny_policy
from tests.commands import Command
from tests.envs.helpers import EOS, PROBLEMS, vector_env
from verifiers import DataError, InvalidArgumentError, Message, Outcome, Problem, Verdict

SIZE: dict[str, Any] = {"layers": 1, "hidden_size": 16, "heads": 2, "intermediate_size": 32}
VOCAB = ByteTokenizer().vocab_size
Rows = dict[tuple[int, int], dict[str, Any]]


def policy(seed: int = 0) -> CausalLMPolicy:
    return CausalLMPolicy(tiny_model(VOCAB, max_tokens=64, seed=seed, **SIZE))


class Seeded:
    """Says letters that follow from the episode's seed and their place, exactly."""

    version, seeds = 0, np.zeros(64, dtype=np.uint64)

    def begin(self, rows: np.ndarray, seeds: np.ndarray) -> None:
        self.seeds[rows] = seeds

    def act(self, observation: Observation, **_: object) -> Action:
        length = observation["length"].reshape(-1).astype(np.int64)
        letters = ord("a") + (uniforms(self.seeds[: len(length)], length) * 6).astype(np.int64)
        tokens = np.where(letters == ord("f"), EOS, letters)[:, None]
        return Action(tokens, np.ones(len(length), dtype=np.int64), np.zeros(tokens.shape, dtype=np.float32))


def rows_of(folder: Path) -> Rows:
    """The lines by problem and sample; a later one takes the place of an earlier one."""
    lines = (folder / SAMPLES).read_bytes()
    assert lines.endswith(b"\n")
    rows = [json.loads(line) for line in lines.split(b"\n")[:-1]]
    return {(row["problem"], row["sample"]): row for row in rows}


def manifest_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return content


def record_in(
    folder: Path, env: TokenVectorEnv | None = None, *, stop: Callable[[object], None] | None = None, **how: Any
) -> Any:
    """Evaluate 5 problems x 3, with a call after each sample that may stop it by an exception."""
    settings = {"problems": 5, "samples": 3, "seed": 1}
    settings |= {name: how.pop(name) for name in settings if name in how}
    played = how.pop("policy", None) or Seeded()
    with EvaluationRecord(folder, **how) as record:
        return evaluate(env or vector_env(4), played, record=record, on_sample=stop, **settings)


def test_a_record_holds_all_of_every_sample(tmp_path: Path) -> None:
    results = record_in(tmp_path / "a", settings={"model": "mine"})
    rows = rows_of(tmp_path / "a")
    assert sorted(rows) == [(problem, sample) for problem in range(5) for sample in range(3)]
    for sample, trajectory in zip(results.rows, results.trajectories, strict=True):
        row = rows[sample.key]
        problem = PROBLEMS[sample.problem]
        assert (row["problem_id"], row["prompt"], row["reference"]) == (problem.id, problem.prompt, problem.reference)
        assert row["completion"] == row["answer"] == trajectory.completion
        assert (row["outcome"], row["score"], row["detail"]) == ("scored", trajectory.score, {})
        assert (row["tokens"], row["truncated"]) == (trajectory.policy_mask.sum(), trajectory.truncated)
        assert row["seed"] == sample.seed
    manifest = manifest_of(tmp_path / "a")
    expected = {"model": "mine", "problems": 5, "samples": 3, "seed": 1, "example_prompt": "Q"}
    assert manifest["settings"] | expected == manifest["settings"]
    assert manifest["summary"] == json.loads(json.dumps(results.summary()))
    assert manifest["summary"]["score"] == results.score
    assert manifest["finished"] >= manifest["started"]


def test_no_verdict_id_or_answer_costs_a_sample(tmp_path: Path) -> None:
    def hostile(completion: str, problem: Problem) -> Verdict:
        if problem.id == "raises":
            raise ValueError("\ud800")
        return Verdict(0.5, Outcome.SCORED, "answer \udfff", {"tuple": {("a", 1): "key"}, "nan": [math.nan, b"\xff"]})

    chat = (Message("user", "hi \ud800"),)
    problems = [Problem("id\ud800", "Q", {1: ("x",)}), Problem("raises", "Q", None), Problem("chat", chat, b"\x00")]
    env = vector_env(2, problems=problems, verifier=hostile, render_prompt=lambda problem: "Q")
    result = record_in(tmp_path / "a", env, problems=3, samples=1)
    assert (result.score, result.verifier_errors) == (0.5, 1)
    first, raised, chatted = (rows_of(tmp_path / "a")[index, 0] for index in range(3))
    assert (first["problem_id"], first["answer"], first["reference"]) == ("id\\ud800", "answer \\udfff", {"1": ["x"]})
    assert first["detail"] == {"tuple": {'["a", 1]': "key"}, "nan": ["NaN", "\\xff"]}
    assert (raised["outcome"], raised["score"]) == ("verifier_error", None)
    assert raised["detail"]["error"] == raised["error"] == "ValueError: \\ud800"
    assert manifest_of(tmp_path / "a")["summary"]["error_causes"] == {"ValueError: \\ud800": 1}
    assert chatted["prompt"] == [{"role": "user", "content": "hi \\ud800"}]


@pytest.mark.parametrize("after", range(1, 16))
def test_an_interrupted_evaluation_goes_on_to_the_same_rows(after: int, tmp_path: Path) -> None:
    whole = record_in(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        record_in(tmp_path / "part", stop=mock.Mock(side_effect=[None] * (after - 1) + [KeyboardInterrupt]))
    assert len(rows_of(tmp_path / "part")) == after
    assert manifest_of(tmp_path / "part")["summary"] is None
    path = tmp_path / "part" / SAMPLES
    path.write_bytes(path.read_bytes()[:-7])  # and killed in the middle of the last line
    resumed = record_in(tmp_path / "part", resume=True)
    assert rows_of(tmp_path / "part") == rows_of(tmp_path / "whole")
    assert resumed.rows == whole.rows
    assert len(resumed.trajectories) == 16 - after
    assert manifest_of(tmp_path / "part")["summary"] == manifest_of(tmp_path / "whole")["summary"]


def test_ids_and_answers_that_are_numbers_are_resumed(tmp_path: Path) -> None:
    def answers_a_number(completion: str, problem: Problem) -> Verdict:
        return Verdict(1.0, Outcome.CORRECT, 42)  # type: ignore[arg-type]  # as verifiers do that nobody checks

    env = vector_env(3, verifier=answers_a_number, problems=[Problem(7, "Q", "")] * 5)  # type: ignore[arg-type]
    whole = record_in(tmp_path / "a", env)
    assert record_in(tmp_path / "a", env, resume=True).rows == whole.rows
    assert {(row.answer, row.problem_id) for row in whole.rows} == {("42", "7")}


def test_samples_whose_verifier_broke_are_made_again(tmp_path: Path) -> None:
    breaking = True

    def sometimes(completion: str, problem: Problem) -> Verdict:
        if breaking and problem.id in ("p1", "p4"):
            raise ConnectionError("refused")
        return Verdict(float(len(problem.id)), Outcome.SCORED, completion)

    folder = tmp_path / "a"
    first = record_in(folder, vector_env(3, verifier=sometimes))
    assert first.verifier_errors == 6
    assert rows_of(folder)[1, 2]["detail"]["error"] == "ConnectionError: refused"
    breaking = False
    second = record_in(folder, vector_env(3, verifier=sometimes), resume=True)
    assert (second.verifier_errors, len(second.trajectories)) == (0, 6)
    whole = record_in(tmp_path / "whole", vector_env(3, verifier=sometimes))
    assert second.rows == whole.rows
    assert rows_of(folder) == rows_of(tmp_path / "whole")
    assert len((folder / SAMPLES).read_bytes().splitlines()) == 15 + 6  # what was written stays


def test_more_problems_and_samples_add_to_what_is_there(tmp_path: Path) -> None:
    record_in(tmp_path / "a", problems=3, samples=1)
    grown = record_in(tmp_path / "a", resume=True)
    assert len(grown.trajectories) == 12
    whole = record_in(tmp_path / "b")
    assert grown.rows == whole.rows
    with pytest.raises(InvalidArgumentError, match="started with problems=5 and can't be continued with 4"):
        record_in(tmp_path / "a", resume=True, problems=4)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"seed": 2}, "started with seed=1 and can't be continued with 2"),
        ({"policy": policy(seed=1)}, "started with weights='"),
        ({"env": vector_env(4, render_prompt=lambda problem: "R")}, "example_prompt='Q' and can't be continued with"),
        ({"settings": {"model": "b"}}, "started with model='a' and can't be continued with 'b'"),
    ],
)
def test_another_evaluation_is_not_resumed(how: dict[str, Any], message: str, tmp_path: Path) -> None:
    record_in(tmp_path / "a", settings={"model": "a"}, policy=policy())
    before = (tmp_path / "a" / SAMPLES).read_bytes(), manifest_of(tmp_path / "a")
    with pytest.raises(InvalidArgumentError, match=message):
        record_in(tmp_path / "a", resume=True, **{"settings": {"model": "a"}, "policy": policy(), **how})
    assert ((tmp_path / "a" / SAMPLES).read_bytes(), manifest_of(tmp_path / "a")) == before


def test_other_versions_hardware_and_arguments_of_the_engine_are_warned_of(tmp_path: Path) -> None:
    record_in(tmp_path / "a", samples=1, settings={"engine_args": ["dtype=float32"]})
    manifest = manifest_of(tmp_path / "a")
    assert manifest["hardware"]["cores"] >= 1
    manifest["hardware"]["gpus"], manifest["versions"]["torch"] = ["T4"], "1.0"
    (tmp_path / "a" / MANIFEST).write_text(json.dumps(manifest))
    changed = r"started with torch 1.0 and now .*, gpus \['T4'\] and now \[\], engine_args \['dtype=float32'\] and now"
    with pytest.warns(UserWarning, match=changed):
        record_in(tmp_path / "a", resume=True, samples=2, settings={"engine_args": ["dtype=bfloat16"]})
    assert manifest_of(tmp_path / "a")["hardware"]["gpus"] == ["T4"]  # that of the first samples


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    record_in(folder, samples=1)
    before = rows_of(folder)
    with EvaluationRecord(folder, resume=True), pytest.raises(InvalidArgumentError, match="is in use by process"):
        EvaluationRecord(folder, resume=True)
    with pytest.raises(InvalidArgumentError, match=r"holds an evaluation: continue it \(--resume, .*--overwrite"):
        record_in(folder)
    with pytest.raises(InvalidArgumentError, match="resumed or overwritten, not both: choose one"):
        EvaluationRecord(folder, resume=True, overwrite=True)
    EvaluationRecord(folder, overwrite=True).close()  # nothing has begun, nothing is lost
    assert rows_of(folder) == before
    record_in(folder, samples=1, seed=2, overwrite=True)
    assert rows_of(folder).keys() == before.keys()
    assert rows_of(folder) != before
    other = tmp_path / "b"
    other.mkdir()
    (other / "thesis.tex").touch()
    for how in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(InvalidArgumentError, match=r"contains thesis\.tex but no evaluation"):
            EvaluationRecord(other, **how)
    assert [path.name for path in other.iterdir()] == ["thesis.tex"]


def test_what_never_began_leaves_no_folder_and_begins_with_resume_too(tmp_path: Path) -> None:
    EvaluationRecord(tmp_path / "a" / "b").close()
    with EvaluationRecord(tmp_path / "new") as record:
        record.begin({"problems": 3})  # and fails before the first sample
    assert not list(tmp_path.iterdir())
    killed = tmp_path / "killed"  # as a process leaves it that is killed before the manifest is there
    killed.mkdir()
    (killed / SAMPLES).touch()
    (killed / f".{MANIFEST}.partial").write_text("{")
    (tmp_path / "there").mkdir()
    with EvaluationRecord(tmp_path / "there") as record:
        record.begin({"problems": 3})
    for folder, how in (("killed", {"resume": True}), ("new", {"resume": True}), ("there", {})):
        assert len(record_in(tmp_path / folder, **how).trajectories) == 15


def test_a_damaged_record_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    record_in(tmp_path / "a", samples=1)
    samples, manifest = ((tmp_path / "a" / name).read_bytes() for name in (SAMPLES, MANIFEST))
    for name, content, message in (
        (SAMPLES, b"{}\n" + samples, "line 1 is damaged .*not a sample with problem"),
        (SAMPLES, samples + b"\x00\x00\n", "line 6 is damaged"),
        (SAMPLES, samples.replace(b'"tokens": ', b'"tokens": "x'), "line 1 is damaged"),
        (MANIFEST, b"", "is not valid JSON"),
        (MANIFEST, b"[]", "has format None"),
        (MANIFEST, manifest.replace(b'"format": 1', b'"format": 2'), "has format 2, but this release reads 1: use the"),
        (MANIFEST, b'{"format": 1}', "has no settings"),
    ):
        path = tmp_path / "a" / name
        before = path.read_bytes()
        path.write_bytes(content)
        with pytest.raises(DataError, match=message):
            record_in(tmp_path / "a", resume=True, samples=1)
        assert path.read_bytes() == content
        path.write_bytes(before)


def test_an_environment_of_other_makers_is_recorded_too(tmp_path: Path) -> None:
    """It names neither problems nor prompts; what it draws is the same when it is resumed."""

    def play(folder: str, problems: int, **how: Any) -> Any:
        with EvaluationRecord(tmp_path / folder, **how) as record:
            return evaluate(third_party(3, DrawnPrompt), tiny_policy(), problems=problems, samples=2, record=record)

    whole = play("whole", 6)
    play("part", 2)
    assert play("part", 6, resume=True).rows == whole.rows
    assert rows_of(tmp_path / "part") == rows_of(tmp_path / "whole")
    assert rows_of(tmp_path / "part")[0, 0]["prompt"] is None


def test_an_agents_own_evaluation_is_recorded(tmp_path: Path) -> None:
    with EvaluationRecord(tmp_path / "a") as record:
        result = Reinforce(policy(), ReinforceConfig()).evaluate(vector_env(2), samples=2, record=record)
    assert manifest_of(tmp_path / "a")["settings"]["temperature"] == 1.0
    assert manifest_of(tmp_path / "a")["summary"]["score"] == result.score
    assert len(rows_of(tmp_path / "a")) == 10


# The command


@pytest.fixture
def model(tmp_path: Path) -> str:
    folder = tmp_path / "model"
    save_model(folder, tiny_model(VOCAB, max_tokens=256, **SIZE), ByteTokenizer())
    return str(folder)


def command(model: str, folder: Path | None, *more: str) -> list[str]:
    out = [] if folder is None else ["--out", str(folder)]
    sizes = ["--problems", "12", "--samples", "3", "--temperature", "1", "--num-envs", "5", *out, *more]
    return ["eval", "--env", "Addition", "--model", model, *sizes, "--env-args", "max_new_tokens=6"]


def test_several_environments_have_a_folder_each_and_are_resumed(model: str, tmp_path: Path, rlvr: Command) -> None:
    folder = tmp_path / "both"
    both = ["Addition,Reverse" if word == "Addition" else word for word in command(model, folder, "--pass-at", "1,3")]
    code, output, _ = rlvr(*both)
    assert (code, output.count("pass@3 "), output.count("re-run noise ")) == (0, 2, 2)
    assert rlvr(*command(model, tmp_path / "one"))[0] == 0
    assert rows_of(folder / "Addition-v0") == rows_of(tmp_path / "one")
    assert len(rows_of(folder / "Reverse-v0")) == 36
    code, _, error = rlvr(*both)
    assert (code, "holds an evaluation" in error) == (2, True)
    assert rlvr(*both[:-2], "--resume", *both[-2:])[0] == 0
    code, _, error = rlvr(*both[:1], "--env", "Addition,rlvr/Addition-v0", "--model", model)
    assert (code, "names one environment twice" in error) == (2, True)
    # What is wrong with the last environment is said before the first is evaluated.
    for second, options, message in (
        ("Revers", (), "Did you mean"),
        ("GridWorld", ("--problems", "49"), "--problems 49 is too many: rlvr/GridWorld-v0 test has 48"),
    ):
        out = tmp_path / "wrong"
        _, _, error = rlvr("eval", "--env", f"Addition,{second}", "--model", model, "--out", out, *options)
        assert (message in error, out.exists()) == (True, False), error


def test_every_run_has_its_own_folder(
    model: str, tmp_path: Path, rlvr: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        assert f"written to runs/eval/model-Addition-v0-{number}" in rlvr(*command(model, None))[1]
    code, _, error = rlvr(*command(model, None, "--resume"))
    assert (code, "--resume needs --out" in error) == (2, True)
    assert rlvr(*command("/nowhere", tmp_path / "new"))[0] == 2
    assert not (tmp_path / "new").exists()  # nothing began


def test_environment_arguments_that_an_evaluation_lacks_of_its_run_are_named(tmp_path: Path, rlvr: Command) -> None:
    folder = tmp_path / "run" / "checkpoints" / "step-000001" / "model"
    save_model(folder, tiny_model(VOCAB, max_tokens=8, **SIZE), ByteTokenizer())
    config = {"env": "Addition", "env_args": ["digits=1", "max_new_tokens=3"]}
    (tmp_path / "run" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    line = ["eval", "--env", "Addition", "--model", str(folder), "--out", str(tmp_path / "out"), "--problems", "1"]
    code, _, error = rlvr(*line)
    said = "The run was trained with --env-args digits=1 max_new_tokens=3, and rlvr eval does not take these over"
    assert (code, said in error) == (2, True), error
    code, _, error = rlvr(*line, "--env-args", *config["env_args"])
    assert code == 0, error
    code, _, error = rlvr("eval", "--env", "Reverse", *line[3:-4], "--out", str(tmp_path / "other"))
    assert (code, "context holds" in error, "trained with" in error) == (2, True, False)


STALLS = """
import time
from verifiers import Outcome, Verdict

class Stalls:
    left = 8

    def __call__(self, completion, problem):
        self.left -= 1
        if self.left < 0:
            time.sleep(600)
        return Verdict(float(len(completion)), Outcome.SCORED, completion)
"""


def test_a_killed_command_goes_on_to_the_rows(
    model: str, tmp_path: Path, rlvr: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verifier stalls after more verdicts than end at once in 5 rows, so that some of the 36 are written."""
    (tmp_path / "stalling.py").write_text(STALLS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    folder, verifier = tmp_path / "killed", "verifier=stalling:Stalls"
    start = "import sys; from agents.commands.main import main; main(sys.argv[1:])"
    written = [0]
    for number, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 143)):
        more = ["--resume"] if folder.exists() else []
        process = subprocess.Popen(
            [sys.executable, "-c", start, *command(model, folder, *more), verifier],
            env={**os.environ, "PYTHONPATH": path},
            stderr=subprocess.PIPE,
            text=True,
        )
        while process.poll() is None and count_of(folder) == written[-1]:
            time.sleep(0.005)
        process.send_signal(number)
        _, error = process.communicate(timeout=600)
        assert (process.returncode, "Traceback" in error) == (code, False)
        written.append(count_of(folder))
    assert 0 < written[1] < written[2] < 36
    said = f"the samples so far are in {folder}; continue with the same command and --out {folder} --resume"
    assert said in " ".join(error.split())
    (tmp_path / "stalling.py").write_text(STALLS.replace("left = 8", "left = 100"), encoding="utf-8")
    assert rlvr(*command(model, folder, "--resume"), verifier)[0] == 0
    assert rlvr(*command(model, tmp_path / "whole"), verifier)[0] == 0
    assert rows_of(folder) == rows_of(tmp_path / "whole")
    assert len((folder / SAMPLES).read_bytes().splitlines()) == 36
    assert manifest_of(folder)["summary"] == manifest_of(tmp_path / "whole")["summary"]


def count_of(folder: Path) -> int:
    path = folder / SAMPLES
    return path.read_bytes().count(b"\n") if path.exists() else 0
