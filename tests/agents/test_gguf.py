"""Models in GGUF files: loaded, played, trained and saved as ordinary ones, and refused with a reason where they can't be."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import shutil
import struct
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from agents.commands.main import main
from agents.policies.transformers.loading import load_model, load_policy, save_model
from agents.policies.transformers.lora import add_lora, save_adapter
from agents.policies.transformers.model_files import check_model, model_context, model_folder
from agents.policies.transformers.rounding import rounded
from agents.policies.transformers.source import source_of
from agents.preferences.reward_model import new_reward_model
from rlvr_envs import HuggingFaceTokenizer, get_tokenizer
from rlvr_envs.gguf_files import gguf_file, gguf_header
from tests import tiny_models
from tests.commands import Command
from verifiers import InvalidArgumentError, MissingDependencyError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
gguf = pytest.importorskip("gguf", reason="GGUF files need rlvr-envs[gguf]")

MARKS = ("<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
HEADS = 2
SUMS = ("--env", "Addition", "--env-args", "digits=1", "max_new_tokens=4", "prompt=boxed_chat")


def llama() -> Any:
    """A tiny model of the architecture that llama.cpp calls `llama`, in float16 without its norms, as that writes them."""
    shape = tiny_models.SHAPE | {"num_attention_heads": HEADS, "num_key_value_heads": HEADS, "hidden_size": 64}
    config = transformers.LlamaConfig(**shape, tie_word_embeddings=False, rms_norm_eps=1e-5)
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).eval()
    for weight in model.parameters():
        weight.data = weight.data.half().float()
    return model


def permuted(weight: Any) -> Any:
    """The rows of a query or key projection as llama.cpp orders them, for its kind of rotary embedding."""
    return weight.reshape(HEADS, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def write_gguf(file: Path, *, tokenizer: bool = True, quantization: Any = None, **changes: str) -> None:
    """Write a model with a tokenizer of bytes, as llama.cpp converts one; of a name that is `left_out`, no tensors."""
    model = llama()
    config = model.config
    writer = gguf.GGUFWriter(file, changes.get("architecture", "llama"))
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(config.vocab_size)
    if tokenizer:
        add_tokenizer(writer, config.vocab_size)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, weight in model.state_dict().items():
        stem, _, kind = name.rpartition(".")
        data = weight.numpy()
        if stem.endswith(("q_proj", "k_proj")):
            data = permuted(data)
        if changes.get("left_out", "nothing") in name:
            continue
        stored = f"{names.get_name(stem)}.{kind}"
        if "norm" in name or quantization is None:
            writer.add_tensor(stored, data.astype("float32" if "norm" in name else "float16"))
        else:
            writer.add_tensor(stored, packed(data, quantization), raw_dtype=quantization)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def packed(weight: Any, quantization: Any) -> Any:
    """The blocks of a weight; zeros of a type for which the package has no code."""
    try:
        return gguf.quantize(weight, quantization)
    except NotImplementedError:
        return np.zeros(gguf.quant_shape_to_byte_shape(weight.shape, quantization), dtype=np.uint8)


def add_tokenizer(writer: Any, size: int) -> None:
    """A token for each byte, one merged pair, the marks of a chat, and padding up to the model's size."""
    special = ["<|endoftext|>", *MARKS]
    pieces = [*special, *sorted(tiny_models.tokenizers.pre_tokenizers.ByteLevel.alphabet()), "th"]
    pieces += [f"ĠĠpadding{number}" for number in range(size - len(pieces))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(pieces)
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_token_types([control] * len(special) + [normal] * (size - len(special)))
    writer.add_token_merges(["t h"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of weights in float16, alone in its folder."""
    path: Path = tmp_path_factory.mktemp("gguf") / "tiny.f16.gguf"
    write_gguf(path)
    return path


@pytest.fixture(scope="module")
def quantized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of weights in blocks of 8 bits."""
    path: Path = tmp_path_factory.mktemp("quantized") / "tiny.q8_0.gguf"
    write_gguf(path, quantization=gguf.GGMLQuantizationType.Q8_0)
    return path


def run(*arguments: object) -> None:
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    assert stop.value.code == 0


def same_weights(one: Any, other: Any) -> bool:
    here, there = one.state_dict(), other.state_dict()
    return here.keys() == there.keys() and all(torch.equal(here[name], there[name]) for name in here)


def test_the_model_and_the_tokenizer_of_a_file_are_those_that_were_written(file: Path) -> None:
    policy, tokenizer = load_policy(file, dtype="float32")
    assert same_weights(policy.model, llama())
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    assert (tokenizer.vocab_size, tokenizer.turn_end, len(tokenizer.encode("the"))) == (320, 2, 2)
    assert tokenizer.encode("the<|im_end|>").tolist()[-1] == 2
    assert tokenizer.chat_template is not None


@pytest.mark.parametrize("of_folder", [False, True])
def test_a_folder_with_one_file_stands_for_the_file(file: Path, of_folder: bool) -> None:
    name = file.parent if of_folder else file
    check_model(name)
    assert gguf_file(name) == file
    assert model_context(name) == 512
    assert load_model(name).dtype == torch.float16
    assert get_tokenizer(name).fingerprint == load_policy(file)[1].fingerprint


def test_a_quantised_model_becomes_an_ordinary_one_in_bfloat16(quantized: Path) -> None:
    model, exact = load_model(quantized), load_model(quantized, dtype="float32")
    assert (model.dtype, exact.dtype) == (torch.bfloat16, torch.float32)
    assert not getattr(model, "is_quantized", False)
    for name, weight in llama().state_dict().items():
        assert torch.allclose(exact.state_dict()[name], weight, atol=float(weight.abs().max()) / 200), name
        assert torch.equal(model.state_dict()[name], exact.state_dict()[name].bfloat16())
    for source in map(source_of, (model, exact)):
        assert source is not None
        assert (source.name, source.dtype) == (None, torch.bfloat16)


def test_evaluations_and_data_sets_take_a_file(file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run("eval", *SUMS, "--model", file, "--problems", 2, "--out", tmp_path / "sums")
    run("eval", *SUMS, f"tokenizer={file}", "--model", file.parent, "--problems", 1, "--out", tmp_path / "again")
    assert "Converting" not in capfd.readouterr().err
    assert str(file) in (tmp_path / "sums" / "manifest.json").read_text()


@pytest.mark.parametrize("lora", [False, True])
def test_what_training_saves_needs_no_gguf(quantized: Path, tmp_path: Path, lora: bool) -> None:
    if lora:
        pytest.importorskip("peft")
    size = ("--group-size", 2, "--problems-per-step", 1, *(("--lora-rank", 2) if lora else ()))
    line = ("train", "grpo", *SUMS, "--model", quantized, *size, "--run-folder", tmp_path / "run", "--steps")
    run(*line, 1)
    saved = Path(model_folder(tmp_path / "run"))
    config = json.loads((saved / "config.json").read_text())
    assert ("quantization_config" in config, config["dtype"]) == (False, "bfloat16")
    assert not (saved / "adapter_config.json").exists()
    with mock.patch.dict(sys.modules, {"gguf": None}):
        model = transformers.AutoModelForCausalLM.from_pretrained(saved)
        own = transformers.AutoTokenizer.from_pretrained(saved)
    assert (model.dtype, model.generation_config.eos_token_id) == (torch.bfloat16, 2)
    shown = own.apply_chat_template([{"role": "user", "content": "x"}], tokenize=False)
    assert shown == "<|im_start|>user\nx<|im_end|>\n"
    again, tokenizer = load_policy(tmp_path / "run")
    assert same_weights(again.model, model)
    assert tokenizer.fingerprint == load_policy(quantized)[1].fingerprint
    run(*line, 2, "--resume")


def test_an_adapter_whose_base_is_a_file_is_merged(quantized: Path, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    model = add_lora(load_model(quantized, dtype="float32"), rank=2)
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.constant_(weight, 0.01)
    save_adapter(tmp_path / "adapter", model, str(quantized))
    save_model(tmp_path / "merged", model, None, dtype=torch.bfloat16)
    named, plain = load_model(tmp_path / "adapter"), load_model(tmp_path / "merged")
    assert same_weights(named, plain)
    assert not same_weights(named, load_model(quantized))


def test_a_file_is_exported_as_an_ordinary_model(quantized: Path, tmp_path: Path) -> None:
    run("export", "--merge", quantized, "--folder", tmp_path / "model")
    plain = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "model").state_dict()
    expected = rounded(load_model(quantized, dtype="float32").state_dict(), torch.bfloat16).weights
    assert plain.keys() == expected.keys()
    assert all(torch.equal(plain[name], weight) for name, weight in expected.items())


def test_a_reward_model_starts_from_a_file_and_is_refused_in_one(file: Path, rlvr: Command) -> None:
    made = new_reward_model(file, device="cpu")
    assert torch.equal(made.model.model.embed_tokens.weight, llama().model.embed_tokens.weight)
    _, _, errors = rlvr("eval", *SUMS, "--model", file, "--reward-model", file)
    assert "a reward model is a sequence classifier" in errors


def test_a_file_whose_name_says_otherwise_or_that_is_damaged_is_refused(file: Path, tmp_path: Path) -> None:
    content, path = file.read_bytes(), tmp_path / "damaged.gguf"
    for damaged in (b"", b"GGUF", b"text", content[:100], content[:2000], struct.pack("<4sIQQ", b"GGUF", 9, 1, 1)):
        path.write_bytes(damaged)
        with pytest.raises(InvalidArgumentError, match=r"damaged\.gguf is not a complete GGUF file"):
            check_model(path)
    path.write_bytes(content[:-5000])
    with pytest.raises(InvalidArgumentError, match="expected a whole GGUF file"):
        load_model(path)
    for position in range(8, 400, 4):  # whatever eight bytes of the header say, the file is read or refused
        path.write_bytes(content[:position] + b"\xff" * 8 + content[position + 8 :])
        with contextlib.suppress(InvalidArgumentError):
            gguf_header(path)


def test_a_folder_with_two_files_asks_for_one(file: Path, tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        shutil.copy(file, tmp_path / name)
    for check in (check_model, load_model, get_tokenizer):
        with pytest.raises(InvalidArgumentError, match=r"holds 2 GGUF files.*name the file itself, as in .*a\.gguf"):
            check(tmp_path)
    assert load_model(tmp_path / "b.gguf").dtype == torch.float16


def test_a_file_without_a_tokenizer_needs_one(tmp_path: Path) -> None:
    path = tmp_path / "bare.gguf"
    write_gguf(path, tokenizer=False)
    for load, message in ((load_policy, "has no tokenizer of its own"), (get_tokenizer, "the file holds no tokenizer")):
        with pytest.raises(InvalidArgumentError, match=message):
            load(path)
    tiny_models.byte_level_tokenizer(*MARKS).save_pretrained(tmp_path / "tokenizer")
    assert load_policy(path, tokenizer=tmp_path / "tokenizer")[1].special_tokens["<|im_end|>"] == 2


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"architecture": "rwkv7"}, "rwkv7 is not supported"),
        ({"quantization": gguf.GGMLQuantizationType.Q8_1}, "Q8_1"),
        ({"left_out": "layers.1.mlp"}, "do not match its header: 3 are missing"),
    ],
)
def test_what_transformers_can_not_read_is_refused(tmp_path: Path, options: dict[str, Any], cause: str) -> None:
    path = tmp_path / "other.gguf"
    write_gguf(path, **options)
    with pytest.raises(InvalidArgumentError, match=cause) as refused:
        load_model(path)
    assert "\n" not in str(refused.value)


def test_without_the_package_the_extra_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "gguf" else found(name))
    for load in (load_policy, get_tokenizer):
        with pytest.raises(MissingDependencyError, match=r"rlvr-envs\[gguf\]"):
            load(file)
