"""Tokens as bytes: what environments read is what the tokenizer itself would decode."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import BpeTrainer
from transformers import PreTrainedTokenizerFast

from rlvr_envs import (
    ByteTokenizer,
    CharTokenizer,
    HuggingFaceTokenizer,
    decode,
    environment_class,
    get_tokenizer,
)
from verifiers import DataError, InvalidArgumentError, Problem

CORPUS = ["the quick brown fox\n    return x + 1\n", "naïve café ½ 日本語 12345 <|no|>", "a b  c   d"] * 3


def byte_level() -> Any:
    """As GPT-2 and Llama 3 have it, with special tokens that are named and others that are not."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    inner.train_from_iterator(CORPUS, BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<|end|>", pad_token="<|end|>")
    tokenizer.add_tokens(["<tool>", "a plain one"])
    tokenizer.add_tokens(["<|eot_id|>"], special_tokens=True)
    tokenizer.chat_template = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|eot_id|>{% endfor %}<|assistant|>"
    )
    return tokenizer


def metaspace() -> Any:
    """As Llama 2 has it: a space before every text, bytes for what is not in the vocabulary, BOS."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *"abcdefgrtuhx+=1", "th", "▁th"]
    vocabulary, merges = {piece: index for index, piece in enumerate(pieces)}, [("t", "h"), ("▁", "th")]
    inner = Tokenizer(models.BPE(vocabulary, merges, byte_fallback=True, unk_token="<unk>"))
    inner.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    inner.decoder = decoders.Sequence(steps)
    inner.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


BYTE_LEVEL, METASPACE = HuggingFaceTokenizer(byte_level()), HuggingFaceTokenizer(metaspace())


@given(st.text(max_size=40))
def test_bytes_and_byte_level_tokens_give_every_text_back(text: str) -> None:
    for tokenizer in (ByteTokenizer(), BYTE_LEVEL):
        assert decode(tokenizer, tokenizer.encode(text).tolist()) == text


@given(st.text("abth xé\n日", max_size=20))
def test_a_continuation_gets_no_space_of_its_own(text: str) -> None:
    assert decode(METASPACE, METASPACE.encode(text).tolist()) == text


@given(st.lists(st.integers(0, BYTE_LEVEL.vocab_size - 1), max_size=12))
def test_byte_level_tokens_decode_as_the_tokenizer_does(tokens: list[int]) -> None:
    kept = [token for token in tokens if token not in BYTE_LEVEL.inner.all_special_ids]
    expected = BYTE_LEVEL.inner.decode(kept, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    assert decode(BYTE_LEVEL, tokens) == expected


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("text", ["café", "naïve ½", "日本", "Ġzq", "Āz", "<0xAB", "plain"])
def test_added_tokens_are_the_text_that_they_were_added_as(text: str, normalized: bool) -> None:
    for inner in (byte_level(), metaspace()):
        assert inner.add_tokens([AddedToken(text, normalized=normalized)]) == 1
        tokenizer, token = HuggingFaceTokenizer(inner), inner.added_tokens_encoder[text]
        assert token in tokenizer.encode(f"a {text}").tolist()
        assert decode(tokenizer, tokenizer.encode(f"a {text}").tolist()) == f"a {text}"
    assert tokenizer.token_bytes(token).decode() == (f" {text}" if normalized else text)  # this one begins with a space


def test_added_tokens_are_bytes_where_the_normalizer_makes_bytes_of_them() -> None:
    inner = byte_level()
    inner.backend_tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    inner.backend_tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.ByteLevel()])
    inner.add_tokens([AddedToken("café", normalized=True), AddedToken("naïve", normalized=False)])
    tokenizer = HuggingFaceTokenizer(inner)
    tokens = tokenizer.encode("+café naïve é").tolist()
    assert {inner.added_tokens_encoder[text] for text in ("café", "naïve")} < set(tokens)
    assert decode(tokenizer, tokens) == "+café naïve é"


def test_what_the_vocabulary_has_stays_its_bytes_when_it_is_added_too() -> None:
    inner = byte_level()
    inner.add_tokens(["é", "Ġ"])  # the bytes E9 and 20
    tokenizer = HuggingFaceTokenizer(inner)
    assert tokenizer.token_bytes(inner.convert_tokens_to_ids("é")) == b"\xe9"
    assert decode(tokenizer, tokenizer.encode("a \u9910").tolist()) == "a \u9910"  # E9 A4 90
    inner = metaspace()
    inner.add_tokens([AddedToken("<0x41>", normalized=False), AddedToken("▁th", normalized=False)])
    tokenizer = HuggingFaceTokenizer(inner)
    assert [tokenizer.token_bytes(inner.convert_tokens_to_ids(piece)) for piece in ("<0x41>", "▁th")] == [b"A", b" th"]


def test_bos_is_put_once_and_only_at_the_start() -> None:
    assert METASPACE.encode("a", start=True)[0] == 1
    assert (METASPACE.encode("a", start=True) == 1).sum() == 1
    assert 1 not in METASPACE.encode("a")
    assert BYTE_LEVEL.encode("a", start=True).tolist() == BYTE_LEVEL.encode("a").tolist()


def test_special_tokens_are_silent_whether_they_are_named_or_not() -> None:
    tokens = BYTE_LEVEL.encode("42<|eot_id|><|end|><tool>").tolist()
    assert decode(BYTE_LEVEL, tokens) == "42<tool>"


@pytest.mark.parametrize("tokenizer", [ByteTokenizer(), BYTE_LEVEL, METASPACE], ids=["byte", "byte-level", "metaspace"])
@given(
    texts=st.lists(
        st.text("abth x\n", min_size=1, max_size=30) | st.text(min_size=1, max_size=12), min_size=1, max_size=8
    )
)
def test_the_room_for_prompts_is_that_of_the_longest_in_tokens(tokenizer: Any, texts: list[str]) -> None:
    problems = [Problem(str(index), text, "") for index, text in enumerate(texts)]
    env = environment_class("rlvr/Text-v0")(dataset=problems, prompt="{problem}", tokenizer=tokenizer)
    assert env.streams.rules.max_prompt_tokens == max(len(tokenizer.encode(text, start=True)) for text in texts)


def test_characters() -> None:
    tokenizer = CharTokenizer("ab+a")
    assert (tokenizer.vocab_size, tokenizer.encode("a+b").tolist()) == (4, [1, 3, 2])
    assert decode(tokenizer, [1, 3, 2, 0]) == "a+b"
    with pytest.raises(DataError, match="the character 'é' of 'aé' is not in the tokenizer's alphabet 'ab\\+'"):
        tokenizer.encode("aé")
    with pytest.raises(InvalidArgumentError, match="at least one character"):
        CharTokenizer("")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("char", "small alphabet"),
        (7, "a tokenizer must be 'byte', 'char'"),
        ("/no/such/folder", "no tokenizer could be loaded from '/no/such/folder'"),
    ],
)
def test_what_is_no_tokenizer_is_refused(spec: object, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        get_tokenizer(spec)


def test_a_tokenizer_without_definite_bytes_or_without_an_end_is_refused() -> None:
    inner = Tokenizer(models.WordLevel({"a": 0, "</s>": 1}, unk_token="a"))
    with pytest.raises(InvalidArgumentError, match="decodes with nothing; expected byte-level BPE"):
        HuggingFaceTokenizer(PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="</s>"))
    with pytest.raises(InvalidArgumentError, match="has no eos_token"):
        HuggingFaceTokenizer(PreTrainedTokenizerFast(tokenizer_object=inner))
