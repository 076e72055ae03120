"""The console command, as a user types it."""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from agents import AGENTS, Agent, Learner, load_policy, save_model, tiny_model
from agents.runs.reading import RecordedRun
from rlvr_envs import ENVIRONMENTS, ByteTokenizer, HuggingFaceTokenizer
from rlvr_envs.tasks import CLASSES
from tests.commands import Command
from tests.conftest import USABLE
from tests.dialogue.templates import CHATML
from tests.tiny_models import byte_level_tokenizer

BENCHMARKS = [
    cls.__name__.removesuffix("Env")
    for cls in CLASSES
    if cls.task.data_options == ("data_dir",) and f"rlvr/{cls.__name__.removesuffix('Env')}-v0" in USABLE
]


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    tokenizer = ByteTokenizer()
    size: dict[str, Any] = {"layers": 1, "hidden_size": 16, "heads": 2, "intermediate_size": 32}
    save_model(folder, tiny_model(tokenizer.vocab_size, max_tokens=8192, **size), tokenizer)
    return folder


def test_help_lists_the_commands_without_loading_torch() -> None:
    code = "import sys; sys.argv = ['rlvr', '--help']\nfrom rlvr_envs.console import main\ntry: main()\n"
    code += "finally: print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name in ("envs", "check-dataset", "verify", "audit-verifier", "sft", "train", "eval", "gradient-lab", "demo"):
        assert f"  {name} " in done.stdout
    assert done.stdout.splitlines()[-1] == "False"


def test_envs_lists_every_id_and_describes_one(rlvr: Command) -> None:
    code, output, _ = rlvr("envs")
    assert code == 0
    assert all(name in output for name in ENVIRONMENTS)
    assert "train 7473" in output
    # At the width of 80 characters no name is broken.
    names = {cls.task.verifier[0].rpartition(":")[2] for cls in CLASSES}
    assert names <= set(output.split())
    code, output, _ = rlvr("envs", "GridWorld")
    assert "Walk from a start to a goal in an open grid" in output
    sections = ["Description", "Action Space", "Observation Space", "Starting State", "Reward", "Episode End"]
    assert all(f"\n## {name}\n" in output for name in [*sections, "Information", "Arguments", "Version History"])


SQUARE_IS_8 = {"entry_point": "square", "cases": [{"args": [3], "expected": 8}]}
PEOPLE = "CREATE TABLE person (name TEXT, age INT); INSERT INTO person VALUES ('Ada', 36), ('Bo', 20);"
SQUARE = "def square(x): return x * x"
NAMES = {"query": "SELECT name FROM person", "scripts": [PEOPLE]}


@pytest.mark.parametrize(
    ("completion", "reference", "options", "code", "text"),
    [
        (r"so \boxed{1/2}", "0.5", "", 0, "correct (score 1)"),
        (r"so \boxed{1/3}", "0.5", "", 1, "incorrect (score 0)"),
        ("", "0.5", "", 1, "no_answer (score 0)"),
        ("4 ", "4", "--verifier exact", 0, "correct"),
        ("37+58", "95", "--verifier numeric --args whole=True", 1, "score 0"),
        # References that are JSON; what a verifier takes as text stays text.
        ("SELECT name FROM person", NAMES, "--verifier sql", 0, "correct"),
        ("SELECT age FROM person", NAMES, "--verifier sql", 1, "incorrect"),
        ("SELECT 1", {"query": "SELECT 1"}, "--verifier sql", 2, ""),
        (SQUARE, {"asserts": ["assert square(3) == 9"]}, "--verifier unit_tests", 0, "correct"),
        (SQUARE, SQUARE_IS_8, "--verifier unit_tests", 1, "incorrect"),
        ("print(input())", [{"input": "a", "output": "a"}], "--verifier unit_tests", 0, "correct"),
        (SQUARE, {"assert": ["assert square(3) == 9"]}, "--verifier unit_tests", 2, ""),
        ("no, ", {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}, "--verifier ifeval", 1, "score 0"),
        ('{"a": 1}', '{"a": 1}', "--verifier exact", 0, "correct"),
    ],
)
def test_verify_says_what_and_why(
    completion: str, reference: object, options: str, code: int, text: str, rlvr: Command
) -> None:
    given = reference if isinstance(reference, str) else json.dumps(reference)
    result, output, _ = rlvr("verify", completion, given, *options.split())
    assert result == code, output
    assert text in output
    assert "answer:" in output


@pytest.mark.parametrize("name", [*BENCHMARKS, "Text"])
def test_gold_answers_pass(name: str, local_data: Path, rlvr: Command) -> None:
    code, output, _ = rlvr("check-dataset", name)
    assert code == 0, output
    assert "gold completion" in output


def test_gold_answers_that_do_not_pass_are_named_and_equal_faults_are_told_once(tmp_path: Path, rlvr: Command) -> None:
    def checked(*arguments: str, **rows: Any) -> tuple[int, str, str]:
        """`check-dataset Text` with rows, of which the columns are given."""
        lines = [json.dumps(dict(zip(rows, values, strict=True))) for values in zip(*rows.values(), strict=True)]
        (tmp_path / "data.jsonl").write_text("\n".join(lines), encoding="utf-8")
        words = ("check-dataset", "Text", "--split", "train", "--args", f"dataset={tmp_path / 'data.jsonl'}")
        return rlvr(*words, *arguments)

    columns = "columns={'prompt': 'question', 'reference': 'answer', 'gold_completion': 'gold'}"
    code, output, _ = checked(columns, question=["1+1", "1+2"], answer=["2", "3"], gold=["2", "4"])
    assert code == 1
    assert "/train/1: incorrect, answer '4'" in output
    assert "1 of 2 gold completions pass, 1 incorrect" in output
    code, output, _ = checked("--verifier", "exact", question=["q"] * 8, answer=[n + 0.5 for n in range(8)])
    assert code == 1
    assert "data/train/0, data/train/1, data/train/2 and 5 more: verifier_error" in output
    assert output.count("exact match compares") == 1


def test_references_without_a_gold_completion_are_read(tmp_path: Path, rlvr: Command) -> None:
    (tmp_path / "ifeval").mkdir()
    row = {"key": 1, "prompt": "Write.", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    (tmp_path / "ifeval" / "test.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    code, output, _ = rlvr("check-dataset", "IFEval", "--args", f"data_dir={tmp_path}")
    said = "test: 1 problem without a gold completion; 1 have a readable reference\n"
    assert (code, output) == (0, said)


def test_eval_runs_a_model_folder_and_records_every_sample(
    model_folder: Path, local_data: Path, tmp_path: Path, rlvr: Command
) -> None:
    out = tmp_path / "results" / "run"
    arguments = ("eval", "--env", "GSM8K", "--model", str(model_folder), "--out", str(out), "--samples", "2")
    code, output, _ = rlvr(*arguments, "--temperature", "1", "--env-args", "max_new_tokens=8")
    assert code == 0
    assert "score 0.000" in output
    assert f"rlvr/GSM8K-v0 test, model {model_folder}, temperature 1, seed 0" in output
    assert "rlvr-envs 0.1.0, gymnasium" in output
    manifest = json.loads((out / "manifest.json").read_text())
    settings, summary = manifest["settings"], manifest["summary"]
    assert (summary["problems"], summary["samples"], summary["score"]) == (2, 2, 0.0)
    expected = {"env": "rlvr/GSM8K-v0", "split": "test", "model": str(model_folder), "seed": 0, "samples": 2}
    assert {name: settings[name] for name in (*expected, "temperature")} == {**expected, "temperature": 1.0}
    assert settings["environment"]["prompt"]["name"] == "gsm8k_cot_8shot"
    assert settings["example_prompt"].endswith("Question: Ada has 3 pens and buys 4 more. How many has she?\nAnswer:")
    assert set(manifest["versions"]) >= {"torch", "transformers", "rlvr-envs"}
    rows = sorted(RecordedRun.read(out).rows, key=lambda row: (row["problem"], row["sample"]))
    assert [row["problem_id"] for row in rows] == ["gsm8k/test/0"] * 2 + ["gsm8k/test/1"] * 2
    assert [row["sample"] for row in rows] == [0, 1, 0, 1]
    assert (rows[0]["prompt"], rows[0]["reference"]) == ("Ada has 3 pens and buys 4 more. How many has she?", "7")
    assert len({row["seed"] for row in rows}) == 4
    assert all(row["tokens"] <= 8 and row["outcome"] for row in rows)


def test_eval_searches_and_says_if_the_score_is_no_accuracy(model_folder: Path, tmp_path: Path, rlvr: Command) -> None:
    arguments = ("eval", "--env", "Reverse", "--model", str(model_folder), "--problems", "1", "--temperature", "1")
    arguments += ("--env-args", "max_new_tokens=2", "--search-args", "n=2", "--search", "best-of-n", "--guide")
    for guide in ("oracle", "likelihood"):
        code, output, errors = rlvr(*arguments, guide, "--out", str(tmp_path / guide))
        assert code == 0
        assert f"found by best-of-n with the guide {guide}" in output
        assert ("warning: the samples were chosen by the verdicts" in errors) == (guide == "oracle")
    code, output, errors = rlvr("compare", str(tmp_path / "likelihood"), str(tmp_path / "oracle"))
    assert (code, "oracle: its samples were chosen by the verdicts that score them" in output + errors) == (0, True)


def test_training_writes_a_run(tmp_path: Path, rlvr: Command) -> None:
    folder = tmp_path / "run"
    options = ("--env", "Reverse", "--env-args", "tokenizer=char", "--steps", "2", "--run-folder", str(folder))
    first = (*options, "--problems-per-step", "4", "--checkpoint-every", "1", "--resume")  # no run is there yet
    code, output, _ = rlvr("train", "reinforce", *first)
    assert code == 0
    assert "2 steps done" in output
    config = json.loads((folder / "config.json").read_text())
    assert config["config"]["problems_per_step"] == 4
    assert config["environment"]["tokenizer"].startswith("char-")
    assert set(config["versions"]) >= {"torch", "transformers", "gymnasium"}
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [1, 2]
    assert {"reward", "loss", "grad_norm", "verifier_errors", "tokens_per_s"} <= set(rows[0])
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["step-000001", "step-000002"]
    assert list((folder / "tensorboard").iterdir())
    for trained in (folder, folder / "checkpoints" / "step-000001"):
        out = tmp_path / f"eval-{trained.name}"
        evaluated = ("eval", "--env", "Reverse", "--model", str(trained), "--problems", "3", "--out", str(out))
        code, output, _ = rlvr(*evaluated)
        assert code == 0
        assert "(3 problems x 1)" in output


def test_an_agent_of_the_users_trains_from_the_current_folder(
    tmp_path: Path, rlvr: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With settings of its own, found where the console script does not look by itself."""
    (tmp_path / "users_agent.py").write_text(
        "from dataclasses import dataclass\n"
        "from agents import Agent, AgentConfig\n"
        "@dataclass(frozen=True)\n"
        "class TimesConfig(AgentConfig):\n"
        "    factor: float = 1.0\n"
        "class Times(Agent):\n"
        "    name = 'times'\n"
        "    config: TimesConfig\n"
        "    def advantages(self, batch):\n"
        "        return self.config.factor * batch.scores[:, None].expand(batch.tokens.shape)\n"
        "    def loss(self, batch, logprobs, advantages):\n"
        "        return -advantages * logprobs\n"
        "class Flat(Times):\n"
        "    def advantages(self, batch):\n"
        "        return batch.scores\n"
        "class Silent(Times):\n"
        "    def advantages(self, batch):\n"
        "        return batch.loss_mask.double()\n"
        "    def loss(self, batch, logprobs, advantages):\n"
        "        pass\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    options = (*SMALL, "--problems-per-step", "2", "--run-folder", "run", "--factor", "3")
    code, output, errors = rlvr("train", "users_agent:Times", *options)
    assert code == 0, errors
    assert "1 step done" in output
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["agent"], config["config"]["factor"]) == ("times", 3.0)
    for name, message in {
        "users_agent:Flat": "Flat.advantages must return a floating-point number for each token, a tensor of shape (",
        "users_agent:Silent": "Silent.loss must return a floating-point number for each token, a tensor of shape (",
        "users_agent:Tims": "Did you mean 'Times'?",
        "no_such_module:Mine": "there is no module 'no_such_module'",
    }.items():
        code, _, error = rlvr("train", name, *SMALL)
        assert code == 2
        assert message in error


SMALL = ("--env", "Addition", "--env-args", "tokenizer=char", "max_new_tokens=4", "--steps", "1")
NEEDED = {"dr-grpo": ("--max-tokens", "4"), "pass-at-k": ("--k", "2"), "gdpo": None}


@pytest.mark.parametrize("name", [name for name in AGENTS if NEEDED.get(name, ()) is not None])
def test_every_agent_trains_from_the_command_line(name: str, tmp_path: Path, rlvr: Command) -> None:
    folder = tmp_path / "run"
    extra = NEEDED.get(name) or ()
    options = (*SMALL, "--run-folder", str(folder), "--problems-per-step", "4", "--num-envs", "8", *extra)
    code, output, errors = rlvr("train", name, *options)
    assert code == 0, errors
    assert "1 step done" in output
    row = json.loads((folder / "metrics.jsonl").read_text())
    assert row["num_tokens"] > 0
    assert json.loads((folder / "config.json").read_text())["agent"] == name


def test_a_run_with_the_card_of_its_verifier(tmp_path: Path, rlvr: Command) -> None:
    card = tmp_path / "card.md"
    card.write_text("| all wrong answers | 100 | 10 |\n| all right answers | 100 | 5 |\n")
    options = (*SMALL, "--problems-per-step", "4", "--num-envs", "8", "--run-folder")
    code, _, errors = rlvr("train", "grpo", *options, tmp_path / "run", "--verifier-card", card)
    assert code == 0, errors
    row = json.loads((tmp_path / "run" / "metrics.jsonl").read_text())
    assert 0 <= row["noise/false_positives/low"] <= row["noise/false_positives"] <= row["noise/false_positives/high"]
    assert rlvr("train", "grpo", *options, tmp_path / "run", "--resume")[0] == 0  # a card changes no result


@pytest.mark.parametrize("lora", [(), ("--lora-rank", "2")])
def test_the_policys_settings_are_options(
    lora: tuple[str, ...], tmp_path: Path, model_folder: Path, rlvr: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    policies = []
    monkeypatch.setattr(Agent, "learn", lambda self, *_, **__: policies.append(self.policy))
    asked = {"precision": "bfloat16", "checkpointing": "on", "max_cached_tokens": 99, "temperature": 0.5}
    options = [word for name, value in asked.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    options += ["--no-shared-prefix", "--no-fast", *lora]
    asked |= {"shared_prefix": False, "fast": False}
    for number, model in enumerate(("tiny", str(model_folder))):
        folder = tmp_path / str(number)
        small = [word for word in SMALL if model == "tiny" or word != "tokenizer=char"]  # a model has its own
        code, _, errors = rlvr("train", "grpo", *small, "--model", model, "--run-folder", str(folder), *options)
        assert code == 0, errors
        config = json.loads((folder / "config.json").read_text())
        assert {name: getattr(policies[number].config, name) for name in asked} == asked
        assert {name: config[name] for name in asked} == asked


def equal_models(*folders: Path) -> bool:
    first, second = (load_policy(folder)[0].model.state_dict() for folder in folders)
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_a_supervised_run_goes_on_as_if_it_had_not_been_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rlvr: Command
) -> None:
    step, steps = Learner.step, itertools.count(1)

    def stopped_at_the_second(self: Learner, *args: Any, **kwargs: Any) -> dict[str, float]:
        metrics = step(self, *args, **kwargs)
        if next(steps) == 2:
            signal.raise_signal(signal.SIGINT)
        return metrics

    out = tmp_path / "model"
    options = ("--env", "Reverse", "--env-args", "tokenizer=char", "--batch-size", "8", "--schedule", "linear")
    start = ("sft", *options, "--steps", "4")
    assert rlvr(*start, "--out", str(tmp_path / "whole"))[0] == 0
    with monkeypatch.context() as patched:
        patched.setattr(Learner, "step", stopped_at_the_second)
        code, output, _ = rlvr(*start, "--out", str(out))
    assert (code, "continue with the same command and --resume" in output) == (130, True)
    code, _, errors = rlvr(*start, "--out", str(out), "--resume", "--seed", "3")
    assert (code, "had seed 0, not 3: resume it with the options of its command" in errors) == (1, True)
    code, output, errors = rlvr(*start, "--out", str(out), "--resume")
    assert code == 0, errors
    assert "4 steps, last loss" in output
    assert equal_models(out, tmp_path / "whole")
    code, _, errors = rlvr(*start, "--out", str(out), "--resume")
    assert (code, f"no checkpoint at {out}" in errors) == (1, True)


def test_a_warm_start_is_a_model_to_train_and_to_score(tmp_path: Path, rlvr: Command) -> None:
    model = tmp_path / "model"
    start = ("--env", "Reverse", "--out", str(model), "--env-args", "tokenizer=char", "--batch-size", "8")
    code, output, _ = rlvr("sft", *start, "--steps", "2")
    assert code == 0
    assert "2 steps, last loss" in output
    assert "2 steps, learning rate 9.6e-04, chosen for 1.05 M parameters; set --steps and --learning-rate" in output
    folder = tmp_path / "run"
    options = ("--env", "Reverse", "--model", str(model), "--steps", "1", "--run-folder", str(folder))
    code, output, errors = rlvr("train", "grpo", *options, "--problems-per-step", "2", "--lora-rank", "2")
    assert code == 0, errors
    # Ten times that of the model without adapter; what is recorded is the number, not that it was chosen.
    assert re.search(
        r"learning rate 9.\de-04, chosen for 1.* M parameters and its adapter; set --learning-rate", output
    )
    record = json.loads((folder / "config.json").read_text())
    assert record["config"]["learner"]["learning_rate"] == pytest.approx(9.5e-4, rel=0.05)
    scored = ("--env", "Reverse", "--model", str(folder), "--problems", "2", "--out", str(tmp_path / "eval"))
    code, output, errors = rlvr("eval", *scored)
    assert code == 0, errors
    assert "2 problems x 1" in output


OWN = '''
from rlvr_envs import TaskEnv, TaskSpec
from verifiers import Problem


def problems(split):
    return [Problem(f"{split}/{n}", f"{n}=", str(n)) for n in range(4)]


class Echo(TaskEnv):
    """The number again."""

    task = TaskSpec(load=problems, sizes={"train": 4, "test": 4}, source="made", verifier=("exact", {}), max_new_tokens=3)


class Louder(Echo):
    def step(self, action):
        return super().step(action)


def without_split():
    return problems("train")


def vowels(completion, problem):
    return sum(map(completion.count, "aeiou")) / 3


def nothing(completion, reference):
    return None


NUMBER = 3
'''


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own_things.py").write_text(OWN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own_things", raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


COUNT_UP = "tests.agents.test_adapter:CountUp"
_SMALL = ("--steps", "1", "--num-envs", "4", "--problems-per-step", "2", "--group-size", "2")


def test_commands_take_environments_verifiers_and_data_of_ones_own(own_folder: Path, rlvr: Command) -> None:
    verifier = ("--verifier", "own_things:vowels")
    code, _, said = rlvr("train", "grpo", "--env", "own_things:Echo", *verifier, *_SMALL)
    assert code == 0, said
    config = json.loads((own_folder / "runs" / "grpo-own_things.Echo" / "config.json").read_text())
    assert config["environment"]["verifier"] == ["own_things:vowels", {}]
    assert config["environment"]["problems"] == 4
    # A plain environment of Gymnasium, which pays 1 for each even token, and allows no other.
    code, _, said = rlvr("train", "grpo", "--env", COUNT_UP, "--env-args", "masked=True", *_SMALL)
    assert code == 0, said
    [line] = (own_folder / "runs" / f"grpo-{COUNT_UP.replace(':', '.')}" / "metrics.jsonl").read_text().splitlines()
    assert json.loads(line)["reward"] >= 1
    code, output, _ = rlvr("envs", "own_things:Echo")
    assert (code, "The number again." in output, "## Action Space" in output) == (0, True, True)
    arguments = ("--dataset", "Text", "--data-args", "dataset=own_things:problems", "--split", "test", "--limit", "1")
    code, output, said = rlvr("audit-verifier", *verifier, *arguments)
    assert code in (0, 1), said
    assert "vowels" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train grpo --env own_things:NUMBER", "'own_things:NUMBER' is 3; expected a class of environments"),
        ("train grpo --env not_there:Env", "there is no module 'not_there'"),
        (f"envs {COUNT_UP}", "expected a subclass of rlvr_envs.TaskEnv"),
        (f"sft --env {COUNT_UP} --out m", "CountUp has no data set of gold completions"),
        ("train grpo --env Addition --verifier-args a=1", "of no verifier: name it with --verifier"),
        ("train grpo --env Addition --verifier own_things:NUMBER", "of type int, which cannot be called"),
        ("audit-verifier --dataset Addition", "no verifier to audit"),
        ("check-dataset own_things:Echo --split dev", "unknown split 'dev'. Known: test, train."),
        ("verify x 4 --verifier own_things:nothing", "of a tuple, return the score)\n"),
        ("train grpo --env own_things:Louder", "Louder overrides step, which its vector environment does not"),
        ("check-dataset Text --args dataset=own_things:without_split", "is called as without_split(split='train')"),
        ("check-dataset Text --args dataset=own_things:problems columns=3", "this data set already holds problems"),
        ("eval --env own_things:Echo --model own_things.py", "own_things.py is a file: expected the folder"),
        ("audit-verifier math --verifier exact --dataset Addition", "two verifiers: 'math' and 'exact'"),
    ],
)
def test_what_is_wrong_with_ones_own_is_said_in_one_line(
    own_folder: Path, arguments: str, message: str, rlvr: Command
) -> None:
    code, _, said = rlvr(*arguments.split())
    assert code == 2
    assert message in f"{said}\n"
    assert "Traceback" not in said


def test_what_ends_turns_is_said_where_it_is_more_than_the_end_token(tmp_path: Path, rlvr: Command) -> None:
    inner = byte_level_tokenizer("<|im_start|>", "<|im_end|>")
    inner.chat_template = CHATML
    tokenizer = HuggingFaceTokenizer(inner)
    size: dict[str, Any] = {"layers": 1, "hidden_size": 16, "heads": 2, "intermediate_size": 32}
    model, tuned = tmp_path / "model", tmp_path / "tuned"
    save_model(model, tiny_model(tokenizer.vocab_size, **size), tokenizer)
    said = "turns end with <|im_end|> (chat template) or <|endoftext|> (tokenizer)\n"
    env = ("--env", "Addition", "--env-args", "prompt=chat", "max_new_tokens=3")
    code, output, _ = rlvr("sft", *env, "--model", str(model), "--out", str(tuned), "--steps", "1", "--batch-size", "2")
    assert (code, output.count(said)) == (0, 1)
    few = ("--problems", "2", "--out", str(tmp_path / "eval"))
    code, output, _ = rlvr("eval", *env, "--model", str(tuned), *few)
    assert (code, output.count(said)) == (0, 1)
    sizes = ("--steps", "1", "--problems-per-step", "1", "--group-size", "2", "--loggers")
    folder = tmp_path / "run"
    code, output, _ = rlvr("train", "grpo", *env, "--model", str(tuned), *sizes, "--run-folder", str(folder))
    assert (code, output.count(said)) == (0, 1)
    assert json.loads((folder / "config.json").read_text())["environment"]["stop_tokens"] == [0, 2]
    code, output, _ = rlvr("play", *env, "--model", str(folder))
    assert (code, output.count(said)) == (0, 1)
    code, output, _ = rlvr("sft", *env, "--out", str(tmp_path / "tiny"), "--steps", "1", "--batch-size", "2")
    assert (code, "turns end with" in output) == (0, False)
