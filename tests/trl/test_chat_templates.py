"""The chat templates of models in use that TRL brings: a bridge between turns is what the template writes there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rlvr_envs import HuggingFaceTokenizer
from rlvr_envs.dialogue import TemplateDialogue
from tests.dialogue.templates import CALL, TOOL
from tests.tiny_models import byte_level_tokenizer
from verifiers import InvalidArgumentError, Message, ToolMessage

trl = pytest.importorskip("trl")

FOLDER = Path(trl.__file__).parent / "chat_templates"
NAMES = sorted(path.stem for path in FOLDER.glob("*.jinja") if not path.stem.endswith("_training"))
SPECIAL = re.compile(r"<\|[a-zA-Z_0-9]+\|>|<｜[^｜>]+｜>|<(?:start|end)_of_turn>|<\|?turn\|?>")
ENDS = ("<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<｜end▁of▁sentence｜>", "<|return|>", "<turn|>", "<|end|>")
WITH_TOOLS = {
    *("gptoss", "llama3_1", "llama3_2", "qwen2_5", "qwen3", "qwen3_instruct_2507", "qwen3_vl"),
    *("nemotron_3_nano", "nemotron_3_super", "nemotron_3_ultra", "qwen3_5_think", "qwen3_5_nothink", "qwen3_6"),
}
"""Templates whose calls are in one of our formats; at least these have to work."""


def tokenizer_of(name: str) -> HuggingFaceTokenizer:
    template = (FOLDER / f"{name}.jinja").read_text(encoding="utf-8")
    special = sorted(set(SPECIAL.findall(template)) | {"<s>", *(["<|call|>"] if "<|call|>" in template else [])})
    end = next((mark for mark in ENDS if mark in special), "<|endoftext|>")
    inner = byte_level_tokenizer(*special, eos_token=end, bos_token="<s>")
    inner.chat_template = template
    return HuggingFaceTokenizer(inner)


def rendered(tokenizer: HuggingFaceTokenizer, chat: list[dict[str, Any]], *, tools: bool) -> str:
    try:
        text = tokenizer.inner.apply_chat_template(
            chat, tools=[TOOL] if tools else None, tokenize=False, add_generation_prompt=True
        )
    except Exception as error:  # noqa: BLE001 - templates raise what they like
        pytest.skip(f"the template itself refuses: {error}")
    return str(text)


def check_bridge(tokenizer: HuggingFaceTokenizer, whole: str, said: str, bridge_of: Any) -> None:
    """Compare a bridge behind the first special token after what the assistant said with the template's text."""
    after = whole.rindex(said) + len(said)
    ends = sorted((whole.index(mark, after), mark) for mark in tokenizer.special_tokens if mark in whole[after:])
    own = [(at, mark) for at, mark in ends if tokenizer.special_tokens[mark] == tokenizer.eos_token]
    at, mark = (own or ends)[0]
    bridge = bridge_of(tokenizer.special_tokens[mark])
    before = tokenizer.encode(whole[: at + len(mark)], start=True)
    assert [*before, *bridge] == tokenizer.encode(whole, start=True).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_a_conversation_is_the_templates(name: str) -> None:
    tokenizer = tokenizer_of(name)
    chat = [
        {"role": role, "content": text}
        for role, text in (("user", "Hi"), ("assistant", "Yo, friend"), ("user", "Go on"))
    ]
    whole = rendered(tokenizer, chat, tools=False)
    dialogue = TemplateDialogue(tokenizer)
    if "Hi" not in whole:  # a template for images, which takes no text as a message
        with pytest.raises(InvalidArgumentError, match="leaves out what a message says"):
            dialogue.open([Message("user", "Hi")])
        return
    opening = rendered(tokenizer, chat[:1], tools=False)
    assert dialogue.open([Message("user", "Hi")]).tolist() == tokenizer.encode(opening, start=True).tolist()
    check_bridge(tokenizer, whole, "Yo, friend", lambda last: dialogue.bridge([Message("user", "Go on")], last))


@pytest.mark.parametrize("name", NAMES)
def test_a_call_and_its_result_are_the_templates_or_it_is_refused(name: str) -> None:
    tokenizer = tokenizer_of(name)
    try:
        dialogue = TemplateDialogue(tokenizer, [TOOL])
    except InvalidArgumentError:
        assert name not in WITH_TOOLS
        return
    chat = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "content": '"23"\n{}', "name": "add", "tool_call_id": "123456789"},
    ]
    whole = rendered(tokenizer, chat, tools=True)
    result = ToolMessage("tool", '"23"\n{}', "add", "123456789")
    check_bridge(tokenizer, whole, "22", lambda last: dialogue.bridge([result], last))
    prompt = rendered(tokenizer, chat[:1], tools=True)
    said = whole[len(prompt) :] if whole.startswith(prompt) else whole[whole.rindex("Hi") + 2 :]
    calls = dialogue.parse(tokenizer.encode(said[: said.index("22") + 40])).calls
    assert [(call.name, call.arguments) for call in calls] == [("add", {"a": 1, "b": 22})]
