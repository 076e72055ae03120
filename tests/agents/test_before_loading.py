"""What is wrong with a command line is said before torch and transformers are imported, and leaves nothing behind."""

from __future__ import annotations

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


RESUMED = f"train grpo {' '.join(RUN)} --run-folder run --resume"
IN = ("train grpo --env Sort", "eval --env Sort --model model", "play --env Sort --model model")
WITH_ENV_ARGS = {
    "--env-args max_new_token=4": "max_new_tokens",
    "--env-args max_new_tokens=few": "max_new_tokens",
    "--split tset": "Did you mean 'test'?",
    "--verifier exakt": "Did you mean 'exact'?",
    "--verifier exact --env-args prompt=boxed_chat": "the verifier 'exact' can't read an answer",
    "--env-args describe_tools=text": "give tools=, too",
    "--verifier exact --verifier-args strip=1": "strip",
    "--verifier reward_model --verifier-args modle=x": "Did you mean 'model'?",
    "--reward-model missing/model": "missing/model",
}
OTHERS = ("sft --env Sort --out NEW", "rlhf --env Sort --out NEW", "train-rm --pairs pairs.jsonl --out NEW")
MODELS = {
    "/no/such/model": "there is no such folder here",
    "above": "did you mean above/model?",
    "gguf": "weights.gguf is not a complete GGUF file",
    "gguf/weights.gguf": "is not a complete GGUF file",
    "text.txt": "is a file",
}
OUT_OF = ("sft --env Sort", "rlhf --env Sort", "train-rm --pairs pairs.jsonl", "bench --suite tiny --model model")
MISNAMED = (
    "train grpo",
    "eval --model model",
    "sft --out NEW",
    "rlhf --out NEW",
    "play --model model",
    "export trl --folder NEW",
)
REFUSALS = {
    # Names that don't exist.
    "train grop --env Sort": "Did you mean 'grpo'?",
    "train q-learning --env Maize": "Did you mean 'Maze'?",
    **{f"{command} --env Srot": "Did you mean 'Sort'?" for command in MISNAMED},
    "export trl --env Srot --folder NEW": "Did you mean 'Sort'?",
    "check-dataset Srot": "Did you mean 'Sort'?",
    "bench --suite croe --model model --out NEW": "'core'",
    "rescore missing": "missing",
    "train-rm --pairs missing.jsonl --out NEW": "missing.jsonl",
    # Options and settings.
    "train grpo --env Sort --group-sise 4": "Did you mean --group-size?",
    "sft --env Sort --out NEW --batch-sise 4": "Did you mean --batch-size?",
    "train grpo --env Sort --save-dtype float64": "--save-dtype: expected one of",
    "train grpo --env Sort --loggers tensorbord": "Did you mean 'tensorboard'?",
    "train grpo --env Sort --device cuda-1": "unknown device 'cuda-1'",
    "train grpo --env Sort --engine-args a=1": "takes no arguments",
    "eval --env Sort --model model --problems 1000000000": "1000000000",
    # Arguments of environments, and verifiers.
    **{f"{command} {arguments}": text for command in IN for arguments, text in WITH_ENV_ARGS.items()},
    "train grpo --env Sort --env-args tokenizer=no/such/folder": "no/such/folder",
    "train grpo --env Sort --verifier exact --gold-verifier maht": "Did you mean 'math'?",
    "rlhf --env Sort --out NEW --verifier exakt": "Did you mean 'exact'?",
    "train q-learning --env Maze --env-args siez=4": "siez",
    # Models.
    **{
        f"{command} --model {model}": text
        for command in (*(line.replace(" --model model", "") for line in IN), *OTHERS, "bench --suite tiny --out NEW")
        for model, text in MODELS.items()
    },
    "train grpo --env Sort --model unpaired": "has no tokenizer of its own",
    "train grpo --env Sort --model model --env-args max_new_tokens=60": "the model's context holds 64",
    "train grpo --env Sort,Addition --model model --env-args Sort.max_new_tokens=60": "the model's context holds 64",
    "eval --env Sort --model model --env-args max_new_tokens=60": "the model's context holds 64",
    "eval --env Sort --model learned --env-args max_new_tokens=600": "the model's context holds 512",
    # Folders.
    "train grpo --env Sort --run-folder text.txt": "it is not a folder",
    "train grpo --env Sort --run-folder run": "holds a run already",
    "train grpo --env Sort --run-folder model": "not that of a run",
    "train grpo --env Sort --run-folder busy --resume": "is in use by",
    **{f"{command} --out full": "is not empty" for command in OUT_OF},
    "eval --env Sort --model model --out full": "no evaluation",
    "eval --env Sort --model model --out evaluated": "holds an evaluation",
    "export trl --env Sort --folder text.txt": "it is not a folder",
    "demo --folder text.txt": "it is not a folder",
    # Resuming.
    RESUMED.replace("grpo", "rloo"): "was started with agent 'grpo'",
    f"{RESUMED} --temperature 0.5": "temperature was 1.0 and is now 0.5",
    f"{RESUMED} --seed=7 --learning-rate None": "config.seed was 0 and is now 7",
    "eval --env Sort --model model --out evaluated --resume --seed 3": "was started with --seed 0",
}
"""Command lines after `rlvr`, and a part of what each is answered."""
if importlib.util.find_spec("vllm") is None:
    REFUSALS |= {
        f"{command} --env Sort --model model --engine vllm": "needs the package 'vllm'"
        for command in ("train grpo", "eval")
    }


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
            done = subprocess.run(
                [sys.executable, "-c", CHILD],
                input=json.dumps([line.split() for line in REFUSALS]),
                capture_output=True,
                text=True,
                check=True,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
            )
            after = listing(folder)
        given = dict(zip(REFUSALS, json.loads(done.stdout), strict=True))
        yield {"given": given, "before": before, "after": after}


@pytest.mark.parametrize("line", REFUSALS)
def test_a_mistake_is_answered_without_torch(line: str, answers: dict[str, Any]) -> None:
    code, said, heavy = answers["given"][line]
    assert REFUSALS[line] in said, said
    assert (code, heavy) == (CANNOT if "--engine vllm" in line else REFUSED, []), said


def test_what_is_refused_leaves_nothing_behind(answers: dict[str, Any]) -> None:
    assert answers["after"] == answers["before"]


def test_runs_and_checkpoints_are_told_from_folders_that_hold_a_model(tmp_path: Path) -> None:
    model = tmp_path / "run" / "checkpoints" / "step-000001" / "model"
    model.mkdir(parents=True)
    for file in ("adapter_config.json", "config.json"):
        (model / file).write_text("{}", encoding="utf-8")
        assert model_folder(tmp_path / "run") == model
    # A checkpoint by itself is one by the checksums that every one has.
    assert model_folder(model.parent) == model.parent
    (model.parent / "checksums.json").write_text("{}", encoding="utf-8")
    assert model_folder(model.parent) == model
    (tmp_path / "config.json").write_text('{"run_id": "run-1"}', encoding="utf-8")
    with pytest.raises(InvalidArgumentError, match="that of a run, which has saved no checkpoint of a language model"):
        check_model(tmp_path)


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
    command, env = [sys.executable, "-c", WITHOUT_TORCH, *line.split()], os.environ | {"PYTHONPATH": str(ROOT)}
    said = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=env).stderr
    assert "needs the package 'torch', which is not installed. Install it with: pip install 'rlvr-envs[train]'" in said
    assert listing(tmp_path) == []


def test_a_folder_named_tiny_is_not_mistaken_for_a_model_with_random_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_policy("tiny", "Addition", {}, {})
    Path("tiny").mkdir()
    with pytest.raises(InvalidArgumentError, match=r"there is a folder of this name, too: write \./tiny"):
        check_policy("tiny", "Addition", {}, {})
