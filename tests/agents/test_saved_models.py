"""What is saved of a model: in which type, how many bytes, with which permissions, and that nothing is lost for resuming."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub.utils import are_progress_bars_disabled
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM
from transformers.utils import logging

from agents import CausalLMPolicy, PolicyConfig, add_lora, load_policy, save_model, tiny_model
from agents.commands import training
from agents.commands.main import main
from agents.console.step_text import Pace
from agents.policies.transformers.loading import load_model
from agents.policies.transformers.lora import base_of, merged
from agents.policies.transformers.rounding import restored, rounded
from agents.preferences.reward_model import new_reward_model
from agents.runs.files.sizes import in_words
from rlvr_envs import ByteTokenizer
from tests.commands import Command
from verifiers import InvalidArgumentError, RLVRError

SIZE: dict[str, Any] = {"layers": 2, "hidden_size": 32, "heads": 2, "intermediate_size": 64}
OPTIONS = ("--env", "Sort", "--env-args", "max_new_tokens=6", "--problems-per-step", "2", "--group-size", "2")
LEARNING = ("--num-envs", "4", "--learning-rate", "0.003", "--loggers", "--verifier", f"{__name__}:length")


def length(completion: str, reference: str) -> float:
    """A score that differs within groups, so that every step changes weights."""
    return sum(completion.encode()) % 11 / 10


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The folder of a model in bfloat16."""
    model = tiny_model(257, max_tokens=512, **SIZE).to(torch.bfloat16)
    save_model(tmp_path / "source", model, ByteTokenizer())
    return tmp_path / "source"


@pytest.fixture
def umask() -> Iterator[None]:
    """A umask that is neither the usual one nor that of safetensors."""
    before = os.umask(0o027)
    yield
    os.umask(before)


def run(*arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert not ended.value.code


def train(folder: Path, *more: str, steps: int = 2) -> Path:
    """Train, and return the last checkpoint."""
    run("train", "grpo", *OPTIONS, *LEARNING, "--run-folder", str(folder), "--steps", str(steps), *more)
    return folder / "checkpoints" / f"step-{steps:06d}"


def types(folder: Path) -> set[torch.dtype]:
    return {weight.dtype for weight in load_file(folder / "model.safetensors").values()}


def test_rounding_is_undone_exactly_for_every_bit_pattern() -> None:
    generator = torch.Generator().manual_seed(0)
    bits = torch.randint(-(2**31), 2**31, (10**6,), generator=generator)
    bits[:4096] = bits[:4096] & -65536 | 2**15  # ties of bfloat16
    weights = {"a": bits.to(torch.int32).view(torch.float32)}
    for dtype in (torch.bfloat16, torch.float16, torch.float64, torch.float32):
        saved = rounded(weights, dtype)
        again = restored({"a": saved.weights["a"].float()}, saved.dropped)
        assert torch.equal(again["a"].view(torch.int32), weights["a"].view(torch.int32))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_are_rounded_to_the_nearest_and_the_rest_takes_two_bytes(dtype: torch.dtype) -> None:
    weights = torch.randn(10**5, generator=torch.Generator().manual_seed(0))
    weights[:64] = (torch.arange(64) * 2**16 + 0x3F808000).to(torch.int32).view(torch.float32)  # ties
    saved = rounded({"a": weights, "tied": weights, "count": torch.arange(3)}, dtype)
    near = saved.weights["a"].float()
    assert torch.equal((near - weights).abs(), (weights.to(dtype).float() - weights).abs())
    assert saved.weights["tied"] is saved.weights["a"]
    assert saved.weights["count"].dtype == torch.int64
    assert {name: one.dtype for name, one in saved.dropped.items()} == {"a": torch.int16, "tied": torch.int16}
    assert rounded({"a": near}, dtype).dropped == {}


def test_a_checkpoint_has_the_type_of_the_source_and_each_weight_once(source: Path, tmp_path: Path) -> None:
    checkpoint = train(tmp_path / "run")  # of a model made in memory
    assert types(checkpoint / "model") == {torch.float32}
    checkpoint = train(tmp_path / "run-of-source", "--model", str(source))
    assert types(checkpoint / "model") == {torch.bfloat16}
    assert json.loads((checkpoint / "model" / "config.json").read_text())["dtype"] == "bfloat16"
    weights = sum(parameter.numel() for parameter in load_model(source).parameters())
    overhead = 64_000  # names, shapes, and the states of generators
    assert 2 * weights <= (checkpoint / "model" / "model.safetensors").stat().st_size <= 2 * weights + overhead
    moments, dropped = 8 * weights, 2 * weights
    assert moments + dropped <= (checkpoint / "state.pt").stat().st_size <= moments + dropped + overhead
    assert load_policy(tmp_path / "run-of-source")[0].model.dtype == torch.bfloat16
    assert load_policy(tmp_path / "run-of-source", dtype="float32")[0].model.dtype == torch.float32


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("adapter", [(), ("--lora-rank", "2")])
def test_a_resumed_run_has_the_numbers_of_a_whole_one(
    source: Path, tmp_path: Path, dtype: str, adapter: tuple[str, ...]
) -> None:
    options = ("--model", str(source), *adapter)
    whole = train(tmp_path / "whole", *options, steps=4)
    train(tmp_path / "resumed", *options, "--save-dtype", dtype, steps=2)
    resumed = train(tmp_path / "resumed", *options, "--resume", steps=4)
    file = "adapter_model.safetensors" if adapter else "model.safetensors"
    assert (resumed / "model" / file).read_bytes() == (whole / "model" / file).read_bytes()
    first, second = (torch.load(one / "state.pt")["dropped"] for one in (whole, resumed))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert bool(first) == (not adapter)


def test_the_type_can_be_chosen(source: Path, tmp_path: Path) -> None:
    checkpoint = train(tmp_path / "run", "--model", str(source), "--save-dtype", "float16", steps=1)
    assert types(checkpoint / "model") == {torch.float16}
    out = tmp_path / "tuned"
    sft = ("sft", "--env", "Sort", "--model", str(source), "--steps", "1", "--batch-size", "2", "--out")
    run(*sft, str(out))
    assert types(out) == {torch.bfloat16}
    run(*sft, str(tmp_path / "other"), "--save-dtype", "float32")
    assert types(tmp_path / "other") == {torch.float32}
    with pytest.raises(RLVRError, match="save_dtype"):
        PolicyConfig(save_dtype="int8")  # type: ignore[arg-type]
    made = tiny_model(257, **SIZE)  # in memory
    assert CausalLMPolicy(made).saved_dtype is None
    assert CausalLMPolicy(made, PolicyConfig(save_dtype="float16")).saved_dtype == torch.float16


def test_permissions_follow_the_umask(source: Path, tmp_path: Path, umask: None) -> None:
    train(tmp_path / "full", "--model", str(source), steps=1)
    train(tmp_path / "adapted", "--model", str(source), "--lora-rank", "2", steps=1)
    run("export", "--merge", str(tmp_path / "adapted"), "--folder", str(tmp_path / "merged"))
    new_reward_model(source).save(tmp_path / "reward-model")
    names = ("full", "adapted", "merged", "reward-model")
    files = [path for name in names for path in (tmp_path / name).rglob("*") if path.is_file()]
    assert {"model.safetensors", "adapter_model.safetensors", "state.pt", "metrics.jsonl"} <= {
        one.name for one in files
    }
    assert {path: oct(path.stat().st_mode & 0o777) for path in files} == dict.fromkeys(files, oct(0o640))


class TestAdapters:
    """A model with an adapter, on a base that was loaded from a folder."""

    pytest.importorskip("peft")

    @pytest.fixture
    def trained(self, source: Path, tmp_path: Path) -> Path:
        return train(tmp_path / "run", "--model", str(source), "--lora-rank", "2")

    def test_the_adapter_alone_is_saved_and_names_its_base(self, trained: Path, source: Path) -> None:
        names = {path.name for path in (trained / "model").iterdir()}
        assert names == {"adapter_config.json", "adapter_model.safetensors", "rlvr_base.json", "rlvr_tokenizer.json"}
        settings = json.loads((trained / "model" / "adapter_config.json").read_text())
        assert (settings["base_model_name_or_path"], settings["r"]) == (str(source), 2)
        adapter = load_file(trained / "model" / "adapter_model.safetensors")
        weights = sum(weight.numel() for weight in adapter.values())
        assert sum(path.stat().st_size for path in trained.rglob("*") if path.is_file()) <= 3 * 4 * weights + 128_000
        state = torch.load(trained / "state.pt")
        assert state["adapter"] is None
        assert not state["dropped"]

    def test_whatever_reads_a_model_reads_it(self, trained: Path, source: Path, tmp_path: Path) -> None:
        tokens = torch.arange(8)[None]
        run_folder = trained.parent.parent
        adapted = AutoModelForCausalLM.from_pretrained(trained / "model", dtype="float32")
        policy, tokenizer = load_policy(run_folder, dtype="float32")
        plain = load_policy(source, dtype="float32")[0]
        with torch.no_grad():
            ours, theirs = policy.model(tokens).logits, adapted(tokens).logits
            torch.testing.assert_close(ours, theirs)
            assert not torch.allclose(ours, plain.model(tokens).logits, atol=1e-4)
        assert tokenizer.fingerprint == ByteTokenizer().fingerprint
        half = load_policy(run_folder)[0].model
        assert {parameter.dtype for parameter in half.parameters()} == {torch.bfloat16}
        run("eval", *OPTIONS[:4], "--model", str(run_folder), "--problems", "2", "--out", str(tmp_path / "scores"))
        checkpoint = train(tmp_path / "second", "--model", str(run_folder), "--lora-rank", "2", steps=1)
        # The base is the merged model, which is in no folder, so that it is saved.
        assert types(checkpoint / "model") == {torch.bfloat16}
        new_reward_model(run_folder)

    def test_merging_writes_a_model_of_its_own(self, trained: Path, source: Path, tmp_path: Path) -> None:
        run("export", "--merge", str(trained), "--folder", str(tmp_path / "merged"))
        assert types(tmp_path / "merged") == {torch.bfloat16}
        expected = load_policy(trained)[0].model.state_dict()
        source.rename(tmp_path / "moved")
        result = load_policy(tmp_path / "merged")[0].model.state_dict()
        assert all(torch.equal(result[name], expected[name]) for name in expected)
        moved = ("--base-model", str(tmp_path / "moved"), "--save-dtype", "float32")
        run("export", "--merge", str(trained), "--folder", str(tmp_path / "whole"), *moved)
        assert types(tmp_path / "whole") == {torch.float32}

    def test_a_base_that_is_not_there_or_another_is_named(self, trained: Path, source: Path, tmp_path: Path) -> None:
        source.rename(tmp_path / "moved")
        with pytest.raises(InvalidArgumentError, match=r"the model '.*source', to which the adapter at .* belongs"):
            load_policy(trained)
        assert load_policy(trained, base_model=tmp_path / "moved")[0].model.dtype == torch.bfloat16
        path = trained / "model" / "adapter_config.json"
        text = path.read_text()
        path.write_text(json.dumps(json.loads(text) | {"base_model_name_or_path": str(tmp_path / "moved")}))
        load_policy(trained)
        path.write_text(text)
        save_model(source, tiny_model(257, seed=1, max_tokens=512, **SIZE), ByteTokenizer())
        with pytest.raises(InvalidArgumentError, match="was trained on other weights than those at"):
            load_policy(trained)

    def test_a_base_that_has_changed_since_it_was_loaded_is_saved(self, source: Path, tmp_path: Path) -> None:
        model = load_model(source, dtype="float32")
        assert base_of(add_lora(model, rank=2)) == str(source)
        model = load_model(source, dtype="float32")
        with torch.no_grad():
            model.get_input_embeddings().weight.mul_(1.01)
        adapted = add_lora(model, rank=2)
        assert base_of(adapted) is None
        save_model(tmp_path / "saved", adapted, ByteTokenizer())
        saved = load_policy(tmp_path / "saved")[0].model.state_dict()
        assert all(torch.equal(saved[name], weight) for name, weight in merged(adapted).state_dict().items())


@pytest.mark.parametrize("adapter", [(), ("--lora-rank", "2")])
@pytest.mark.parametrize("kl", [(), ("--kl-coefficient", "0.1")])
def test_what_a_checkpoint_takes_is_said_before_and_what_it_took_after(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], adapter: tuple[str, ...], kl: tuple[str, ...]
) -> None:
    sizes: list[Any] = []
    say_disk = training.say_disk
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(training, "say_disk", lambda *told: sizes.extend(told[1:3]) or say_disk(*told))
        options = ("--model", str(source), "--checkpoint-every", "1", *adapter, *kl)
        checkpoint = train(tmp_path / "my run", *options, steps=4)
    size, kept = sizes
    took = (checkpoint / "state.pt").stat().st_size
    assert size.optimizer + size.other <= took <= size.optimizer + size.other + 64_000
    assert kept == 3
    took = sum(path.stat().st_size for path in (checkpoint / "model").glob("*.safetensors"))
    assert size.model <= took <= size.model + 16_000
    output = capsys.readouterr().out.splitlines()
    if not adapter and not kl:
        whole = sum(parameter.numel() for parameter in load_model(source).parameters())
        said = f"a checkpoint takes about {in_words(12 * whole)} ({in_words(2 * whole)} the model in bfloat16, "
        optimiser = f"{in_words(8 * whole)} the optimiser's 2 numbers for each trained weight"
        assert any(line.startswith(said) and optimiser in line for line in output)
    assert output[-2].startswith(f"from_pretrained reads {checkpoint / 'model'}, ")
    command = shlex.split(output[-1].removeprefix("evaluate it: "))
    assert command[:6] == ["rlvr", "eval", "--env", "Sort", "--model", str(tmp_path / "my run")]
    run(*command[1:], "--problems", "2", "--out", str(tmp_path / "scores"))


def test_the_pace_is_said_once_after_the_first_steps() -> None:
    pace = Pace(begun=10, total=110)
    said = [pace.after(10 + step, seconds) for step, seconds in ((1, 60.0), (2, 3.0), (3, 5.0), (4, 5.0))]
    assert said == [None, None, "4 s a step; the rest takes about 6 min", None]
    pace = Pace(begun=0, total=30_000)  # tokens
    assert [pace.after(1000 * step, 2.0) for step in (1, 2, 3)][-1] == "2 s a step; the rest takes about 54 s"
    pace = Pace(begun=0, total=3)
    assert [pace.after(step, 2.0) for step in (1, 2, 3)] == [None, None, None]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "a target and --env are needed"),
        (("verl", "--env", "Sort", "--base-model", "x"), "--base-model has no effect without --merge: leave"),
        (("verl", "--merge", "x"), "the target has no effect with --merge 'x', which"),
        (("--merge", "x", "--limit", "3"), "--limit has no effect with --merge 'x'"),
        (("--merge", "no/such/run"), "no/such/run"),
    ],
)
def test_options_of_the_other_export_are_refused(
    tmp_path: Path, rlvr: Command, arguments: tuple[str, ...], message: str
) -> None:
    code, _, errors = rlvr("export", *arguments, "--folder", tmp_path / "out")
    assert code == 2
    assert message in errors


# Bars of progress


def test_loading_and_saving_are_quiet_and_leave_the_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logging.enable_progress_bar()
    save_model(tmp_path, tiny_model(16, layers=1, hidden_size=16, heads=2), None)
    load_model(tmp_path)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""
    assert logging.is_progress_bar_enabled()
    assert not are_progress_bars_disabled()
