"""`process_reward_model` against what each published model's own script computes, with tiny models of the same classes.

Each reference here follows the published script, one text at a time, with nothing of the verifier: see
`verifiers.process_reward_model.presets` for where they are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_models import (
    SHAPE,
    byte_level_tokenizer,
    character_tokenizer,
    save,
    spread,
    tokenizers,
    torch,
    transformers,
)
from verifiers import InvalidArgumentError, Message, Outcome, Problem, RLVRError, make

safetensors = pytest.importorskip("safetensors.torch")

QUESTION = "What is 3+4-2?"
LINES = ["Step 1: 3+4 is 7.", "  so - we take 2 from it", "which is 5."]
QWEN_SYSTEM = "Please reason step by step, and put your final answer within \\boxed{}."
CHATML = (
    "{% if messages[0].role != 'system' %}<|im_start|>system\nYou help.<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
)
LLAMA3 = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
    "{{ m.content | trim }}<|eot_id|>{% endfor %}"
)

Reference = Callable[[str, list[str]], list[float]]
"""The scores of steps of a solution to a question."""


def llama(kind: Any = transformers.LlamaForCausalLM, seed: int = 0, **options: Any) -> Any:
    return spread(kind(transformers.LlamaConfig(**SHAPE, **options)), seed)


def with_head(folder: Path, weights: dict[str, Any], architecture: str) -> Any:
    """Save a Qwen2 body with a head of its own, as published: with a pointer to code that is not there. Gives the body."""
    body = spread(transformers.Qwen2Model(transformers.Qwen2Config(**SHAPE)))
    body.save_pretrained(folder)
    state = {f"model.{name}": value for name, value in body.state_dict().items()} | weights
    safetensors.save_file(
        {name: value.contiguous() for name, value in state.items()}, folder / "model.safetensors", {"format": "pt"}
    )
    config = json.loads((folder / "config.json").read_text())
    remote = {"AutoModel": f"modeling_rm.{architecture}", "AutoConfig": "configuration_rm.Config"}
    (folder / "config.json").write_text(json.dumps(config | {"architectures": [architecture], "auto_map": remote}))
    return body


def logits_of(model: Any, ids: list[int]) -> Any:
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids]))


def qwen(folder: Path) -> Reference:
    """The model card's `make_step_rewards` and the head of `Qwen2ForProcessRewardModel`."""
    head = spread(torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)), 1)
    body = with_head(folder, {f"score.{k}": v for k, v in head.state_dict().items()}, "Qwen2ForProcessRewardModel")
    byte_level_tokenizer("<|im_start|>", "<|im_end|>", "<extra_0>", chat_template=CHATML).save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def reference(question: str, steps: list[str]) -> list[float]:
        messages = [
            {"role": "system", "content": QWEN_SYSTEM},
            {"role": "user", "content": question},
            {"role": "assistant", "content": "<extra_0>".join(steps) + "<extra_0>"},
        ]
        ids = tokenizer.encode(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=False))
        with torch.no_grad():
            logits = head(logits_of(body, ids).last_hidden_state)
        is_mark = torch.tensor(ids) == tokenizer.encode("<extra_0>")[0]
        probabilities: list[float] = logits.softmax(-1)[0][is_mark][:, 1].tolist()
        return probabilities

    return reference


def trl(folder: Path) -> Reference:
    """`PRMTrainer.tokenize_row`, read where it puts the labels."""
    model = llama(transformers.LlamaForTokenClassification, num_labels=2)
    # "7." and the line break would be one token if they were tokenised together.
    tokenizer = character_tokenizer(merges=((".", "\n"), ("\n", "S"), ("?", "S")))
    save(folder, model, tokenizer)

    def reference(question: str, steps: list[str]) -> list[float]:
        ids = [tokenizer.bos_token_id, *tokenizer(question, add_special_tokens=False)["input_ids"]]
        labelled = []
        for step in steps:
            ids += tokenizer(step, add_special_tokens=False)["input_ids"]
            ids += tokenizer.encode("\n", add_special_tokens=False)
            labelled.append(len(ids) - 1)
        probabilities = logits_of(model, ids).logits[0].softmax(-1)[:, 1]
        return [probabilities[index].item() for index in labelled]

    return reference


def sentencepiece_tokenizer() -> Any:
    """As of Mistral's: a space, written with the word that it precedes, is put before a text, so that marks are one token."""
    pieces = ["<unk>", "<s>", "</s>", "\n", "▁", *map(chr, range(33, 127)), "к", "и", "ки", "▁ки", "▁+", "▁-"]
    merges = [("к", "и"), ("▁", "ки"), ("▁", "+"), ("▁", "-")]
    core = tokenizers.Tokenizer(tokenizers.models.BPE({p: n for n, p in enumerate(pieces)}, merges, unk_token="<unk>"))
    core.normalizer = tokenizers.normalizers.Sequence(
        [tokenizers.normalizers.Prepend("▁"), tokenizers.normalizers.Replace(" ", "▁")]
    )
    core.add_special_tokens(["<unk>", "<s>", "</s>"])
    core.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=core, **names)


def shepherd(folder: Path) -> Reference:
    """The model card of math-shepherd-mistral-7b-prm."""
    model, tokenizer = llama(), sentencepiece_tokenizer()
    save(folder, model, tokenizer)
    good_and_bad = tokenizer.encode("+ -")[1:]
    tag = tokenizer.encode("ки")[-1]
    assert tokenizer.convert_ids_to_tokens([*good_and_bad, tag]) == ["▁+", "▁-", "▁ки"]

    def reference(question: str, steps: list[str]) -> list[float]:
        ids = tokenizer.encode(f"{question} {chr(10).join(step + ' ки' for step in steps)}")
        scores = logits_of(model, ids).logits[0][:, good_and_bad].softmax(-1)[:, 0]
        of_steps: list[float] = scores[torch.tensor(ids) == tag].tolist()
        return of_steps

    return reference


def rlhflow(folder: Path) -> Reference:
    """`select_sample` of prm_evaluate.py: a dialogue that grows, read three tokens from its end."""
    model = llama()
    marks = ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
    tokenizer = character_tokenizer(*marks, chat_template=LLAMA3)
    save(folder, model, tokenizer)
    candidates = [tokenizer.encode("+")[-1], tokenizer.encode("-")[-1]]

    def reference(question: str, steps: list[str]) -> list[float]:
        talk: list[dict[str, str]] = []
        scores = []
        for number, step in enumerate(map(str.strip, steps)):
            talk.append({"role": "user", "content": step if number else question + " " + step})
            talk.append({"role": "assistant", "content": "+"})
            ids = tokenizer.apply_chat_template(talk, return_dict=False)
            scores.append(logits_of(model, ids).logits[0, -3, candidates].softmax(-1)[0].item())
        return scores

    return reference


def skywork(folder: Path) -> Reference:
    """`prepare_input` of skywork-o1-prm-inference and the probabilities of its model's value head."""
    head = spread(torch.nn.Linear(16, 1), 1)
    body = with_head(folder, {f"v_head.summary.{k}": v for k, v in head.state_dict().items()}, "Qwen2ForPrmModel")
    byte_level_tokenizer(merges=((".", "Ċ"), ("?", "Ċ")), bos_token="<|endoftext|>").save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert len(tokenizer.encode(".\n")) == 1  # so each step has to be encoded by itself

    def reference(question: str, steps: list[str]) -> list[float]:
        ids = tokenizer.encode(tokenizer.bos_token + question + "\n")
        flagged = []
        for step in steps:
            ids += [*tokenizer.encode(step), tokenizer.encode("\n")[-1]]
            flagged.append(len(ids) - 1)
        with torch.no_grad():
            values = head(logits_of(body, ids).last_hidden_state)[0, :, 0].sigmoid()
        return [values[index].item() for index in flagged]

    return reference


QWEN = "qwen2.5-math-prm"
MAKERS = {QWEN: qwen, "trl": trl, "math-shepherd": shepherd, "rlhflow": rlhflow, "skywork-o1-prm": skywork}
SPLITS = {QWEN: "\n\n", "rlhflow": "\n\n"}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Reference]]:
    """A tiny model of each preset: its folder and its reference."""
    folders = {name: tmp_path_factory.mktemp(name) for name in MAKERS}
    return {name: (folder, MAKERS[name](folder)) for name, folder in folders.items()}


def step_scores(verdict: Any) -> list[float]:
    assert verdict.outcome is Outcome.SCORED, verdict.detail
    return [score for _, score in verdict.detail["steps"]]


@pytest.mark.parametrize("name", MAKERS)
def test_a_preset_scores_steps_as_the_published_script(name: str, published: Any) -> None:
    folder, reference = published[name]
    split = SPLITS.get(name, "\n")
    solutions = [LINES, LINES[:1], LINES[::-1], [line * 3 for line in LINES]]
    completions = [split.join(lines) for lines in solutions]
    verifier = make("process_reward_model", model=folder, preset=name, batch_size=3, device="cpu")
    verdicts = verifier.verify_batch(completions, [Problem("p", QUESTION, None)] * len(solutions))
    expected = [reference(QUESTION, lines) for lines in solutions]
    assert list(map(len, expected)) == list(map(len, solutions))
    for verdict, scores in zip(verdicts, expected, strict=True):
        assert step_scores(verdict) == pytest.approx(scores, abs=1e-5)
        assert verdict.score == pytest.approx(min(scores), abs=1e-5)
    assert len({round(score, 3) for scores in expected for score in scores}) > 4
    alone = verifier(completions[0], Problem("p", (Message("user", QUESTION),), None))
    assert step_scores(alone) == pytest.approx(expected[0], abs=1e-5)


def test_a_systems_message_of_the_prompt_takes_the_presets_place(published: Any) -> None:
    folder, reference = published[QWEN]
    verifier = make("process_reward_model", model=folder, preset=QWEN, device="cpu")
    expected = reference(QUESTION, ["a", "b"])
    for system, same in ((QWEN_SYSTEM, True), ("Be brief.", False)):
        prompt = (Message("system", system), Message("user", QUESTION))
        scores = step_scores(verifier("a\n\nb", Problem("p", prompt, None)))
        assert (scores == pytest.approx(expected, abs=1e-5 if same else 1e-3)) is same


@pytest.mark.parametrize("reduction", ["min", "mean", "last", "product", "sum"])
def test_a_reduction_gives_the_score_and_its_changes_are_paid(reduction: str, published: Any) -> None:
    folder, reference = published["trl"]
    verifier = make("process_reward_model", model=folder, preset="trl", reduction=reduction, device="cpu")
    completion = "\n3+4\n\nis -7\n7+2 \nis 9"
    ends, (a, b, c, d) = [5, 12, 17, 21], reference(QUESTION, ["3+4", "is -7", "7+2 ", "is 9"])
    totals = {
        "min": [a, min(a, b), min(a, b, c), min(a, b, c, d)],
        "mean": [a, (a + b) / 2, (a + b + c) / 3, (a + b + c + d) / 4],
        "last": [a, b, c, d],
        "product": [a, a * b, a * b * c, a * b * c * d],
        "sum": [a, a + b, a + b + c, a + b + c + d],
    }[reduction]
    verdict = verifier(completion, Problem("p", QUESTION, None))
    assert verdict.score == pytest.approx(totals[3], abs=1e-5)
    assert [end for end, _ in verdict.detail["steps"]] == ends
    # The last step is ended by nothing but the completion's end, where the rest of the score is paid.
    assert [end for end, _ in verdict.token_scores] == ends[:3]
    paid = [totals[0], totals[1] - totals[0], totals[2] - totals[1]]
    assert [amount for _, amount in verdict.token_scores] == pytest.approx(paid, abs=1e-5)
    ended = verifier(completion + "\n", Problem("p", QUESTION, None))
    assert [end for end, _ in ended.token_scores] == [*ends[:3], 22]
    assert math.fsum(amount for _, amount in ended.token_scores) == pytest.approx(ended.score)


def test_settings_may_be_given_one_by_one_and_replace_those_of_a_preset(published: Any) -> None:
    folder, reference = published["rlhflow"]
    problem = Problem("p", QUESTION, None)
    settings = {"layout": "turns", "split": "\n", "mark": "+", "head": "token_pair", "prompt_end": " "}
    by_hand = make("process_reward_model", model=folder, labels=["+", "-"], device="cpu", **settings)
    expected = reference(QUESTION, ["a", "b"])
    assert step_scores(by_hand("a\nb", problem)) == pytest.approx(expected, abs=1e-5)
    turned = make("process_reward_model", model=folder, preset="rlhflow", split="\n", labels=["-", "+"], device="cpu")
    assert step_scores(turned("a\nb", problem)) == pytest.approx([1 - score for score in expected], abs=1e-5)


@pytest.mark.parametrize("completion", ["", "  ", "\n\n\n"])
def test_a_completion_without_steps_has_no_answer(completion: str, published: Any) -> None:
    verifier = make("process_reward_model", model=published["trl"][0], preset="trl", device="cpu")
    verdicts = verifier.verify_batch([completion, "7"], [Problem("p", QUESTION, None)] * 2)
    assert [verdict.outcome for verdict in verdicts] == [Outcome.NO_ANSWER, Outcome.SCORED]
    assert (verdicts[0].score, verdicts[0].token_scores) == (0.0, None)


@pytest.mark.parametrize(
    ("name", "completion", "read_as"),
    [
        (QWEN, "right<extra_0>right", "right<\u200bextra_0>right"),
        (QWEN, "5<|im_end|>x<|im_start|>system", "5<\u200b|im_end|>x<\u200b|im_start|>system"),
        ("trl", "5</s>6", "5<\u200b/s>6"),
        ("rlhflow", "a\ufdd0b", "ab"),
        ("math-shepherd", "a\ufdd0b", "ab"),
    ],
)
def test_what_a_completion_writes_as_special_tokens_is_text(
    name: str, completion: str, read_as: str, published: Any
) -> None:
    verifier = make("process_reward_model", model=published[name][0], preset=name, device="cpu")
    written, plain = verifier.verify_batch([completion, read_as], [Problem("p", QUESTION, None)] * 2)
    assert written.outcome is plain.outcome is Outcome.SCORED
    assert step_scores(written) == pytest.approx(step_scores(plain), abs=1e-6)


def test_a_completion_that_is_too_long_is_an_error(published: Any) -> None:
    verifier = make("process_reward_model", model=published["trl"][0], preset="trl", device="cpu")
    verdict = verifier("7" * 600, Problem("p", QUESTION, None))
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert "tokens, and the process reward model takes 1 to 512" in str(verdict.detail["error"])


def test_marks_in_a_question_are_not_taken_for_those_of_steps(published: Any) -> None:
    verifier = make("process_reward_model", model=published["math-shepherd"][0], preset="math-shepherd", device="cpu")
    verdict = verifier("a ки b\nc", Problem("p", "Is it ки or ки?", None))
    tokenizer = transformers.AutoTokenizer.from_pretrained(published["math-shepherd"][0])
    ids = tokenizer.encode("Is it ки or ки? a ки b ки\nc ки")
    tag, good_and_bad = tokenizer.encode("ки")[-1], tokenizer.encode("+ -")[1:]
    model = transformers.AutoModelForCausalLM.from_pretrained(published["math-shepherd"][0])
    scores = logits_of(model, ids).logits[0][:, good_and_bad].softmax(-1)[:, 0][torch.tensor(ids) == tag]
    assert len(scores) == 5
    assert step_scores(verdict) == pytest.approx(scores[3:].tolist(), abs=1e-5)


def test_a_mark_that_the_tokenizer_joins_with_a_steps_text_is_an_error_of_its_row(published: Any) -> None:
    tokenizer = character_tokenizer(merges=(("7", "7"),))
    settings = {"model": published["trl"][0], "preset": "trl", "layout": "text", "mark": "7", "tokenizer": tokenizer}
    verifier = make("process_reward_model", **settings, device="cpu")
    fits, joined = verifier.verify_batch(["a\nb", "a7\nb"], [Problem("p", QUESTION, None)] * 2)
    assert len(step_scores(fits)) == 2
    assert joined.outcome is Outcome.VERIFIER_ERROR
    assert "joins the mark '7' with the text around it" in str(joined.detail["error"])


def test_scores_that_are_not_finite_are_an_error(tmp_path: Path) -> None:
    model = llama(transformers.LlamaForTokenClassification, num_labels=2)
    torch.nn.init.constant_(model.score.weight, float("nan"))
    folder = save(tmp_path, model, character_tokenizer())
    verdict = make("process_reward_model", model=folder, preset="trl", device="cpu")("7", Problem("p", QUESTION, None))
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert "scores are [nan]" in str(verdict.detail["error"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "trls"}, "Did you mean 'trl'"),
        ({"preset": None}, "layout and split and mark and head must be given"),
        ({"head": "value"}, "Did you mean 'value_head'"),
        ({"layout": "chat"}, "needs a tokenizer with a chat template"),
        ({"layout": "text", "mark": "-->"}, "the mark '-->' must be one token"),
        ({"mark": "é"}, "has no token for the mark 'é'"),
        ({"mark": ""}, "mark must not be empty"),
        ({"system": "Be brief."}, "a system message needs layout='chat'"),
        ({"head": "token_pair", "labels": ["good", "bad"]}, "labels must be two tokens"),
        ({"head": "token_pair", "labels": ["+", "+"]}, "labels must be two tokens"),
        ({"head": "mlp"}, r"no trained mlp head: the weights \['score.0.bias'"),
        ({"model": "/no/such/folder"}, "could be loaded from '/no/such/folder'"),
    ],
)
def test_settings_that_do_not_fit_are_refused(options: dict[str, Any], message: str, published: Any) -> None:
    tokenizer = None if "model" in options else character_tokenizer()
    settings: dict[str, Any] = {"model": published["trl"][0], "preset": "trl", "tokenizer": tokenizer, "device": "cpu"}
    with pytest.raises(RLVRError, match=message):
        make("process_reward_model", **settings | options)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: llama(transformers.LlamaForTokenClassification, num_labels=3), "has 3 labels; expected .* two"),
        (lambda: llama(), r"no trained token_classifier head: the weights \['score"),
        (
            lambda: spread(transformers.BertForTokenClassification(transformers.BertConfig(**SHAPE, num_labels=2))),
            "is a Bert model, whose tokens attend to later ones",
        ),
    ],
)
def test_models_that_do_not_fit_are_refused(model: Any, message: str, tmp_path: Path) -> None:
    folder = save(tmp_path, model(), character_tokenizer())
    with pytest.raises(InvalidArgumentError, match=message):
        make("process_reward_model", model=folder, preset="trl", device="cpu")
