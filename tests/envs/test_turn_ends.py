"""A turn ends with the tokenizer's end token, with those of the generation config, and with that of the chat template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from agents.experiments.supervised import demonstration
from rlvr_envs import (
    ChatPrompt,
    HuggingFaceTokenizer,
    PromptRenderer,
    TaskEnv,
    TaskSpec,
    TextPrompt,
    get_tokenizer,
    stop_tokens,
    turn_end,
)
from rlvr_envs.dialogue import TemplateDialogue, spell
from tests.dialogue.templates import CHATML, LLAMA
from tests.tiny_models import byte_level_tokenizer
from verifiers import InvalidArgumentError, Message, Problem

GEMMA = """\
{%- for message in messages %}
{{- '<start_of_turn>' + ('model' if message.role == 'assistant' else 'user') + '\\n' + message.content + '<end_of_turn>\\n' }}
{%- endfor %}{% if add_generation_prompt %}{{- '<start_of_turn>model\\n' }}{% endif %}"""
PLAIN = """\
{%- for message in messages %}{{- message.role + ': ' + message.content + '\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{- 'assistant: ' }}{% endif %}"""
OPEN_TURNS = """\
{%- for message in messages %}{{- '<|' + message.role + '|>' + message.content }}{% endfor %}
{%- if add_generation_prompt %}{{- '<|assistant|>' }}{% endif %}"""
LAST_CLOSED = """\
{%- for message in messages %}{{- '<|' + message.role + '|>' + message.content + '<|end|>' }}{% endfor %}
{{- '<|assistant|>' if add_generation_prompt else eos_token }}"""
NO_ASSISTANT = (
    "{% for message in messages %}{% if message.role == 'user' %}{{ message.content }}{% endif %}{% endfor %}"
)
REFUSES = "{% if messages | length > 1 %}{{ raise_exception('one message') }}{% endif %}{{ messages[0].content }}"
ROLES = ("<|user|>", "<|assistant|>")


def tokenizer_with(template: str, *special: str, eos: str = "<|endoftext|>") -> Any:
    """A `transformers` tokenizer with a template, whose end token the template need not use."""
    inner = byte_level_tokenizer(*special, eos_token=eos)
    inner.chat_template = template
    return inner


def chatml() -> Any:
    """Whose token 0 is the end token, and 2 closes turns."""
    return tokenizer_with(CHATML, "<|im_start|>", "<|im_end|>")


def saved(folder: Path, tokenizer: Any, **generation_config: Any) -> str:
    tokenizer.save_pretrained(folder)
    (folder / "generation_config.json").write_text(json.dumps(generation_config))
    return str(folder)


@pytest.mark.parametrize(
    ("inner", "closes"),
    [
        (chatml(), "<|im_end|>"),
        (tokenizer_with(LLAMA, "<|eot_id|>", "<|end_of_text|>", eos="<|end_of_text|>"), "<|eot_id|>"),
        (tokenizer_with(GEMMA, "<eos>", "<start_of_turn>", "<end_of_turn>", eos="<eos>"), "<end_of_turn>"),
        (tokenizer_with(LAST_CLOSED, *ROLES, "<|end|>"), "<|end|>"),
    ],
    ids=["chatml", "llama", "gemma", "end token behind the last turn"],
)
def test_the_token_that_closes_a_turn_in_the_template_ends_turns(inner: Any, closes: str) -> None:
    tokenizer = HuggingFaceTokenizer(inner)
    sources = {spell(tokenizer, [token]): source for token, source in stop_tokens(tokenizer).items()}
    assert sources == {inner.eos_token: "tokenizer", closes: "chat template"}
    assert next(iter(stop_tokens(tokenizer))) == tokenizer.eos_token
    assert spell(tokenizer, [turn_end(tokenizer)]) == closes


@pytest.mark.parametrize("template", [PLAIN, OPEN_TURNS, NO_ASSISTANT, REFUSES, None])
def test_a_template_may_close_turns_with_no_special_token(template: str | None) -> None:
    tokenizer = HuggingFaceTokenizer(tokenizer_with(template, *ROLES) if template else byte_level_tokenizer(*ROLES))
    assert stop_tokens(tokenizer) == {tokenizer.eos_token: "tokenizer"}
    assert turn_end(tokenizer) == tokenizer.eos_token


@pytest.mark.parametrize(
    ("named", "tokens"), [([2, 0], {0, 2}), (1, {0, 1}), ([1, 3], {0, 1, 3}), (None, {0}), ([], {0})]
)
def test_the_generation_config_beside_a_tokenizer_names_end_tokens(
    named: object, tokens: set[int], tmp_path: Path
) -> None:
    inner = byte_level_tokenizer("<a>", "<b>")
    tokenizer = get_tokenizer(saved(tmp_path, inner, eos_token_id=named))
    assert set(stop_tokens(tokenizer)) == tokens
    assert next(iter(stop_tokens(tokenizer))) == tokenizer.eos_token == 0


def test_all_sources_of_a_token_are_said_and_of_an_architectures_default_only_special_tokens_count(
    tmp_path: Path,
) -> None:
    tokenizer = get_tokenizer(saved(tmp_path, chatml(), eos_token_id=[2, 0]))
    assert stop_tokens(tokenizer) == {0: "tokenizer, generation config", 2: "generation config, chat template"}
    path = saved(tmp_path, byte_level_tokenizer("<a>"), eos_token_id=[1, 7, 50256], _from_model_config=True)
    assert set(stop_tokens(get_tokenizer(path))) == {0, 1}


@pytest.mark.parametrize("content", ["{", "[]", '{"eos_token_id": "<a>"}', '{"eos_token_id": [0, 50256]}'])
def test_a_damaged_generation_config_is_an_error(content: str, tmp_path: Path) -> None:
    path = saved(tmp_path, byte_level_tokenizer())
    (tmp_path / "generation_config.json").write_text(content)
    message = "says that the token 50256 ends a" if "50256" in content else "is damaged: expected a JSON object"
    with pytest.raises(InvalidArgumentError, match=f"generation_config.json.* {message}"):
        get_tokenizer(path)


def test_an_episode_ends_where_the_template_ends_the_turn() -> None:
    tokenizer = HuggingFaceTokenizer(chatml())
    for end in (0, 2):
        env: Any = gymnasium.make("rlvr/Addition-v0", tokenizer=tokenizer, prompt="chat")
        env.reset(seed=0)
        terminated = False
        for token in [*tokenizer.encode("12"), end]:
            assert not terminated
            _, _, terminated, truncated, info = env.step(int(token))
        assert (terminated, truncated, info["completion"]) == (True, False, "12")
        assert env.unwrapped.manifest["stop_tokens"] == [0, 2]


def test_gold_completions_end_with_the_token_that_closes_the_turn() -> None:
    env: Any = gymnasium.make_vec("rlvr/Addition-v0", num_envs=1, tokenizer=chatml(), prompt="chat")
    shown = demonstration(env.streams, 0)
    chat = [
        {"role": "user", "content": env.streams.dataset.in_words(env.streams.dataset[0])},
        {"role": "assistant", "content": shown.completion},
    ]
    inner = env.streams.rules.tokenizer.inner
    text = inner.apply_chat_template(chat, tokenize=False)
    assert spell(env.streams.rules.tokenizer, shown.tokens) + "\n" == text
    assert shown.policy_mask[-1]


def test_a_turn_that_ends_with_another_end_token_is_closed_by_the_template() -> None:
    tokenizer = HuggingFaceTokenizer(chatml())
    bridge = TemplateDialogue(tokenizer).bridge([Message("user", "Hi")], tokenizer.eos_token)
    assert spell(tokenizer, bridge) == "<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"


def stop_of(**options: Any) -> list[Any]:
    env: Any = gymnasium.make_vec("rlvr/Addition-v0", num_envs=1, **options)
    assert env.manifest["stop"] == list(env.streams.rules.stop)
    return list(env.streams.rules.stop)


def test_a_chat_in_the_template_has_no_stop_strings_but_those_that_are_given() -> None:
    assert stop_of(prompt="chat") == ["\n\nUser:"]
    assert stop_of(prompt="chat", tokenizer=chatml()) == []
    assert stop_of(prompt="chat", tokenizer=chatml(), stop="END") == ["END"]
    assert stop_of(prompt="chat", tokenizer=chatml(), stop="\n\nUser:") == ["\n\nUser:"]
    assert stop_of(prompt=ChatPrompt(stop=("END",)), tokenizer=chatml()) == []


class Chats(TaskEnv):
    """Problems that are chats."""

    task = TaskSpec(
        load=lambda split: [Problem("0", (Message("user", "1 + 1"),), "2")],
        sizes={"test": 1},
        default_split="test",
        source="made",
        verifier=("exact", {}),
        prompt=TextPrompt("{problem} =", stop=("\n",)),
        max_new_tokens=4,
    )


def test_a_prompt_that_is_text_keeps_its_stop_strings_unless_the_template_renders_it() -> None:
    assert stop_of(prompt="answer_only", tokenizer=chatml()) == ["\n"]
    assert Chats().streams.rules.stop == ("\n",)
    assert Chats(tokenizer=chatml()).streams.rules.stop == ()
    options: dict[str, Any] = {"prompt": "answer_only", "tools": ["calculator"]}  # opened by the template, with tools
    assert stop_of(**options) == ["\n", "</tool>"]
    assert stop_of(**options, tokenizer=chatml()) == []


def test_any_prompt_may_use_the_template() -> None:
    class Own:
        name, stop, fingerprint = "own", ("END",), "own-1"

        def render(self, problem: Problem, chat_template: Any = None) -> str:
            messages = (Message("user", str(problem.prompt)),)
            return chat_template(messages) if chat_template else str(problem.prompt)

    tokenizer = HuggingFaceTokenizer(chatml())
    assert PromptRenderer(Own(), tokenizer).is_chat(Problem("", "1", None))
    assert stop_of(prompt=Own()) == ["END"]
    assert stop_of(prompt=Own(), tokenizer=tokenizer) == []
