"""What is wrong with a command line is said before torch and transformers are imported, and leaves nothing behind."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents import save_model, tiny_model
from agents.commands.before_loading import check_policy
from agents.commands.main import CANNOT, REFUSED, main
from agents.policies.transformers.model_files import check_model, model_context, model_folder
from agents.runs.files.outputs import locked
from rlvr_envs import ByteTokenizer
from tests import tiny_models
from verifiers import InvalidArgumentError

ROOT = Path(__file__).parents[2]
CHILD = """
import contextlib, io, json, sys
from agents.commands.main import main

answers = []
for arguments in json.load(sys.stdin):
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            main(arguments)
        except SystemExit as stop:
            code = stop.code
    heavy = [name for name in ("torch", "transformers") if name in sys.modules]
    answers.append([code, " ".join(said.getvalue().split()), heavy])
print(json.dumps(answers))
"""
SMALL = ("--env-args", "tokenizer=char", "max_new_tokens=4")
RUN = ("--env", "Sort", *SMALL, "--num-envs", "8", "--group-size", "4", "--problems-per-step", "2")
PLAY = ("--env", "Sort", "--model", "model")


@dataclasses.dataclass(frozen=True)
class Refusal:
    line: str
    """The words after `rlvr`."""
    text: str
    """What the message has to say."""
    code: int = REFUSED


REFUSALS = (
    # Names that don't exist.
    Refusal("train grop --env Sort", "Did you mean 'grpo'?"),
    Refusal("train grpo --env Srot", "Did you mean 'Sort'?"),
    Refusal("train q-learning --env Maize", "Did you mean 'Maze'?"),
    Refusal("eval --env Srot --model model", "Did you mean 'Sort'?"),
    Refusal("sft --env Srot --out NEW", "Did you mean 'Sort'?"),
    Refusal("rlhf --env Srot --out NEW", "Did you mean 'Sort'?"),
    Refusal("play --env Srot --model model", "Did you mean 'Sort'?"),
    Refusal("export trl --env Srot --folder NEW", "Did you mean 'Sort'?"),
    Refusal("check-dataset Srot", "Did you mean 'Sort'?"),
    Refusal("bench --suite croe --model model --out NEW", "'core'"),
    Refusal("rescore missing", "missing"),
    Refusal("train-rm --pairs missing.jsonl --out NEW", "missing.jsonl"),
    # Options and settings.
    Refusal("train grpo --env Sort --group-sise 4", "Did you mean --group-size?"),
    Refusal("train dqn --env CartPole-v1 --learning-rat 1", "Did you mean --learning-rate?"),
    Refusal("sft --env Sort --out NEW --batch-sise 4", "Did you mean --batch-size?"),
    Refusal("train-rm --pairs pairs.jsonl --out NEW --epoch 4", "Did you mean --epochs?"),
    Refusal("rlhf --env Sort --out NEW --step 4", "Did you mean --steps?"),
    Refusal("train grpo --env Sort --steps few", "--steps: expected a whole number, got 'few'"),
    Refusal("train grpo --env Sort --engine vlm", "--engine: expected one of"),
    *(
        Refusal(f"{command} --save-dtype float64", "--save-dtype: expected one of")
        for command in ("train grpo --env Sort", "sft --env Sort --out NEW")
    ),
    Refusal("train grpo --env Sort --loggers tensorbord", "Did you mean 'tensorboard'?"),
    Refusal("train grpo --env Sort --device cuda-1", "unknown device 'cuda-1'"),
    Refusal("train grpo --env Sort --engine-args a=1", "takes no arguments"),
    Refusal("eval --env Sort --model model --engine-args a=1", "takes no arguments"),
    Refusal("eval --env Sort --model model --problems 1000000000", "1000000000"),
    # Packages that are not installed.
    *(
        Refusal(f"{command} --env Sort --model model --engine vllm", "needs the package 'vllm'", CANNOT)
        for command in ("train grpo", "eval")
        if importlib.util.find_spec("vllm") is None
    ),
    # Arguments of environments, and verifiers.
    *(
        Refusal(f"{command} {arguments}", text)
        for command in ("train grpo --env Sort", "eval --env Sort --model model", "play --env Sort --model model")
        for arguments, text in (
            ("--env-args max_new_token=4", "max_new_tokens"),
            ("--env-args max_new_tokens=few", "max_new_tokens"),
            ("--env-args size=few", "size"),
            ("--env-args prompt=no_such_prompt", "no_such_prompt"),
            ("--env-args tokenizer=no/such/folder", "no/such/folder"),
            ("--split tset", "Did you mean 'test'?"),
            ("--env-args verifier=7", "verifier"),
            ("--verifier exakt", "Did you mean 'exact'?"),
            ("--verifier missing.toml", "missing.toml"),
            ("--verifier exact --env-args prompt=boxed_chat", "the verifier 'exact' can't read an answer"),
            ("--env-args describe_tools=text", "give tools=, too"),
            ("--env-args describe_tools=words", "describe_tools"),
            ("--env-args prompt=plain system=Hi", "is text: choose a chat prompt"),
            ("--verifier exact --verifier-args strip=1", "strip"),
            ("--verifier reward_model --verifier-args modle=x", "Did you mean 'model'?"),
            ("--reward-model missing/model", "missing/model"),
        )
        if not (command.startswith(("eval", "play")) and "tokenizer" in arguments)
    ),
    Refusal("train grpo --env Sort --verifier exact --gold-verifier maht", "Did you mean 'math'?"),
    Refusal("sft --env Sort --out NEW --env-args siez=4", "size"),
    Refusal("rlhf --env Sort --out NEW --env-args siez=4", "size"),
    Refusal("rlhf --env Sort --out NEW --verifier exakt", "Did you mean 'exact'?"),
    Refusal("train q-learning --env Maze --env-args siez=4", "siez"),
    Refusal("check-dataset Sort --args siez=4", "size"),
    Refusal("export trl --env Sort --folder NEW --args siez=4", "size"),
    # Models.
    *(
        Refusal(f"{command} --model {model}", text)
        for command in (
            "train grpo --env Sort",
            "eval --env Sort",
            "play --env Sort",
            "sft --env Sort --out NEW",
            "rlhf --env Sort --out NEW",
            "train-rm --pairs pairs.jsonl --out NEW",
            "bench --suite tiny --out NEW",
        )
        for model, text in (
            ("/no/such/model", "there is no such folder here"),
            ("above", "did you mean above/model?"),
            ("gguf", "weights.gguf is not a complete GGUF file"),
            ("gguf/weights.gguf", "is not a complete GGUF file"),
            ("text.txt", "is a file"),
        )
    ),
    Refusal("eval --env Sort --model /no/such/model --device cpu", "there is no such folder here"),
    Refusal("train grpo --env Sort --model unpaired", "has no tokenizer of its own"),
    Refusal("train grpo --env Sort --model model --env-args max_new_tokens=60", "the model's context holds 64"),
    Refusal(
        "train grpo --env Sort,Addition --model model --env-args Sort.max_new_tokens=60", "the model's context holds 64"
    ),
    Refusal("eval --env Sort --model model --env-args max_new_tokens=60", "the model's context holds 64"),
    Refusal("eval --env Sort --model learned --env-args max_new_tokens=600", "the model's context holds 512"),
    # Folders.
    Refusal("train grpo --env Sort --run-folder text.txt", "it is not a folder"),
    Refusal("train grpo --env Sort --run-folder run", "holds a run already"),
    Refusal("train grpo --env Sort --run-folder model", "not that of a run"),
    Refusal("train grpo --env Sort --run-folder busy --resume", "is in use by"),
    Refusal("train q-learning --env Maze --run-folder run", "holds a run already"),
    Refusal("sft --env Sort --out full", "is not empty"),
    Refusal("rlhf --env Sort --out full", "is not empty"),
    Refusal("train-rm --pairs pairs.jsonl --out full", "is not empty"),
    Refusal("bench --suite tiny --model model --out full", "is not empty"),
    Refusal("eval --env Sort --model model --out full", "no evaluation"),
    Refusal("eval --env Sort --model model --out evaluated", "holds an evaluation"),
    Refusal("export trl --env Sort --folder text.txt", "it is not a folder"),
    Refusal("demo --folder text.txt", "it is not a folder"),
    # Resuming.
    Refusal(f"train rloo {' '.join(RUN)} --run-folder run --resume", "was started with agent 'grpo'"),
    Refusal(
        f"train grpo {' '.join(RUN)} --run-folder run --resume --temperature 0.5", "temperature was 1.0 and is now 0.5"
    ),
    Refusal(
        f"train grpo {' '.join(RUN)} --run-folder run --resume --seed=7 --learning-rate None",
        "config.seed was 0 and is now 7",
    ),
    Refusal(
        f"train grpo {' '.join(RUN)} --run-folder run --resume --no-skip-zero-advantages",
        "skip_zero_advantages was True and is now False",
    ),
    Refusal("eval --env Sort --model model --out evaluated --resume --seed 3", "was started with --seed 0"),
    Refusal("eval --env Sort --model learned --out evaluated --resume", "was started with --model model"),
)


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def run(*arguments: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 0


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What one process says to all the command lines, in a folder with models and results."""
    folder = tmp_path_factory.mktemp("work")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("HF_HUB_OFFLINE", "1")
        size: dict[str, Any] = {"layers": 1, "hidden_size": 16, "heads": 2, "intermediate_size": 32}
        save_model(Path("model"), tiny_model(257, max_tokens=64, **size), ByteTokenizer())
        save_model(Path("unpaired"), tiny_model(257, max_tokens=64, **size), None)
        save_model(Path("above/model"), tiny_model(257, max_tokens=64, **size), ByteTokenizer())
        save_model(Path("learned"), tiny_model(320, max_tokens=512, **size), None)
        tiny_models.byte_level_tokenizer().save_pretrained("learned")
        Path("gguf").mkdir()
        Path("gguf/weights.gguf").write_bytes(b"GGUF")
        Path("full").mkdir()
        for file in ("text.txt", "full/text.txt"):
            Path(file).write_text("text\n", encoding="utf-8")
        pair = {"prompt": "a", "chosen": "b", "rejected": "c"}
        Path("pairs.jsonl").write_text(f"{json.dumps(pair)}\n" * 20, encoding="utf-8")
        run("train", "grpo", *RUN, "--steps", "1", "--run-folder", "run", "--loggers", "tensorboard")
        run("eval", *PLAY, "--env-args", "max_new_tokens=4", "--problems", "1", "--out", "evaluated")
        shutil.copytree("run", "busy")
        with locked(Path("busy")):
            before = listing(folder)
            lines = [refusal.line.split() for refusal in REFUSALS]
            done = subprocess.run(
                [sys.executable, "-c", CHILD],
                input=json.dumps(lines),
                capture_output=True,
                text=True,
                check=True,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
            )
            after = listing(folder)
        given = dict(zip((refusal.line for refusal in REFUSALS), json.loads(done.stdout), strict=True))
        yield {"given": given, "before": before, "after": after}


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.line)
def test_a_mistake_is_answered_without_torch(refusal: Refusal, answers: dict[str, Any]) -> None:
    code, said, heavy = answers["given"][refusal.line]
    assert refusal.text in said, said
    assert (code, heavy) == (refusal.code, []), said


def test_what_is_refused_leaves_nothing_behind(answers: dict[str, Any]) -> None:
    assert answers["after"] == answers["before"]


def test_runs_and_checkpoints_are_told_from_folders_that_hold_a_model(tmp_path: Path) -> None:
    model = tmp_path / "run" / "checkpoints" / "step-000001" / "model"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}", encoding="utf-8")
    assert model_folder(tmp_path / "run") == model
    # A checkpoint by itself is one by the checksums that every one has.
    assert model_folder(model.parent) == model.parent
    (model.parent / "checksums.json").write_text("{}", encoding="utf-8")
    assert model_folder(model.parent) == model


def test_an_adapter_has_the_context_of_its_base_which_has_to_be_there(tmp_path: Path) -> None:
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    adapter.mkdir()
    named = {"base_model_name_or_path": str(base)}
    (adapter / "adapter_config.json").write_text(json.dumps(named), encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match=rf"the model '{base}', to which the adapter at {adapter} belongs"):
        check_model(adapter)
    base.mkdir()
    (base / "config.json").write_text('{"max_position_embeddings": 48}', encoding="utf-8")
    check_model(adapter)
    assert model_context(adapter) == 48


def test_a_run_that_saved_an_adapter_holds_a_model(tmp_path: Path) -> None:
    model = tmp_path / "checkpoints" / "step-000001" / "model"
    model.mkdir(parents=True)
    (model / "adapter_config.json").write_text("{}", encoding="utf-8")
    assert model_folder(tmp_path) == model


def test_a_run_without_a_checkpoint_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"run_id": "run-1"}', encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match="that of a run, which has saved no checkpoint of a language model"):
        check_model(tmp_path)


WITHOUT_TORCH = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, Missing())
from agents.commands.main import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    "line", ["train grpo --env Sort", "train q-learning --env Maze", "sft --env Sort --out NEW", "demo"]
)
def test_a_missing_torch_is_named_with_the_command_that_installs_it(line: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *line.split()],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert (
        "needs the package 'torch', which is not installed. Install it with: pip install 'rlvr-envs[train]'"
        in done.stderr
    )
    assert listing(tmp_path) == []


def test_a_folder_named_tiny_is_not_mistaken_for_a_model_with_random_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_policy("tiny", "Addition", {}, {})
    Path("tiny").mkdir()
    with pytest.raises(InvalidArgumentError, match=r"there is a folder of this name, too: write \./tiny"):
        check_policy("tiny", "Addition", {}, {})
