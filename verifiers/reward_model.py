"""Scores from a learned reward model: any `transformers` sequence classifier with one logit."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, get_args

from verifiers._settings import is_whole_number
from verifiers.errors import InvalidArgumentError, missing_dependency, unknown_name
from verifiers.hub import ask_once, without_loading_bars
from verifiers.types import Message, Outcome, Problem, Verdict

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Format = Literal["auto", "chat", "text"]
_PLACEHOLDER = re.compile(r"\{(prompt|completion)\}")
_NO_LIMIT = 10**9
"""A tokenizer without a limit states a huge number of tokens instead."""


class RewardModelVerifier:
    """The one logit of a sequence classifier over prompt and completion, as a `SCORED` verdict.

    What is scored is the `template`, filled in; without one a chat, in which the prompt is followed by the completion as the
    assistant's message, or a text, the prompt and directly after it the completion. A prompt of text is the user's message
    of a chat, so that it is scored as the same prompt in a message is.

    A score does not depend on the batch, up to the rounding of the device's arithmetic (1e-5 in 32-bit floats): each text is
    pooled as the model itself does for this text alone. Causal models, in which no token sees a later one, get texts of about
    one length together, padded on the right. For any other only texts of equal length in tokens share a forward pass, and
    models that `transformers` does not batch (no padding token, or an encoder with a decoder) are run text by text.

    A text of more tokens than the model takes is not cut: its verdict is a `VERIFIER_ERROR` that names both numbers. So is
    the verdict of a text without tokens, and of a logit that is not finite.

    Args:
        model: A name or folder for `AutoModelForSequenceClassification`; or a model, which is set to evaluation mode and
            moved to `device`.
        tokenizer: A name, a folder or a tokenizer; by default the one of the model's name or folder.
        batch_size: Most texts in one forward pass.
        max_tokens: Most tokens of a text; by default what the model's configuration and the tokenizer state.
        device: Where to run. By default a model stays where it is, and a name is loaded to the GPU if there is one. On the
            CPU the model computes in 32-bit floats, elsewhere in its own type.
        format: `"chat"`: through the tokenizer's chat template; `"text"`: without it, messages joined by blank lines;
            `"auto"`: as a chat where the tokenizer has a template.
        template: In place of a format, a text in which `{prompt}` and `{completion}` are replaced; messages are joined by blank
            lines.

    Raises:
        InvalidArgumentError: If nothing can be loaded from the name, the model has more than one logit, scores each token or
            has no trained head, the tokenizer or its chat template is missing, or another argument is out of range.
        MissingDependencyError: If torch or transformers are not installed.
    """

    def __init__(
        self,
        model: str | PathLike[str] | PreTrainedModel,
        tokenizer: str | PathLike[str] | PreTrainedTokenizerBase | None = None,
        *,
        batch_size: int = 16,
        max_tokens: int | None = None,
        device: str | torch.device | None = None,
        format: Format = "auto",
        template: str | None = None,
    ) -> None:
        _check_arguments(batch_size, max_tokens, format, template)
        _require_packages()
        self._model = _loaded_model(model, device)
        self._tokenizer = _loaded_tokenizer(model, tokenizer)
        self._template = template
        self._format = format
        self._chat = template is None and _is_chat(format, self._tokenizer)
        self._max_tokens = _token_limit(self._model, self._tokenizer) if max_tokens is None else max_tokens
        self._batch_size = batch_size if _takes_batches(self._model) else 1
        self._pads = _is_causal(self._model)

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Score one completion."""
        return self.verify_batch([completion], [problem])[0]

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Score completion i on problem i.

        Raises:
            InvalidArgumentError: If a prompt is messages, the format `"auto"`, and there is no chat template.
        """
        texts = [self._tokens(*pair) for pair in zip(completions, problems, strict=True)]
        verdicts = {row: self._refused(len(tokens)) for row, tokens in enumerate(texts) if not self._fits(len(tokens))}
        for rows in self._batches(texts):
            logits = self._logits([texts[row] for row in rows])
            verdicts.update(zip(rows, map(_scored, logits), strict=True))
        return [verdicts[row] for row in range(len(texts))]

    def _tokens(self, completion: str, problem: Problem) -> list[int]:
        prompt = problem.prompt
        if self._chat:
            messages = (Message("user", prompt),) if isinstance(prompt, str) else prompt
            chat = [{"role": message.role, "content": message.content} for message in messages]
            chat.append({"role": "assistant", "content": completion})
            # A chat template writes the special tokens itself.
            return self._encoded(self._tokenizer.apply_chat_template(chat, tokenize=False), add_special_tokens=False)
        if not isinstance(prompt, str) and self._template is None and self._format == "auto":
            raise InvalidArgumentError(
                f"the prompt of problem {problem.id!r} is messages, and the reward model's tokenizer has no chat template; "
                "pass template='{prompt}...{completion}', or format='text'"
            )
        text = prompt if isinstance(prompt, str) else "\n\n".join(message.content for message in prompt)
        if self._template is None:
            return self._encoded(text + completion)
        values = {"prompt": text, "completion": completion}
        return self._encoded(_PLACEHOLDER.sub(lambda placeholder: values[placeholder[1]], self._template))

    def _encoded(self, text: Any, add_special_tokens: bool = True) -> list[int]:
        ids = self._tokenizer(text, add_special_tokens=add_special_tokens, truncation=False, verbose=False)["input_ids"]
        return list(ids)

    def _fits(self, length: int) -> bool:
        return 0 < length <= self._max_tokens

    def _refused(self, length: int) -> Verdict:
        reason = f"prompt and completion are {length} tokens, and the reward model takes 1 to {self._max_tokens:.0f}"
        return Verdict.of(Outcome.VERIFIER_ERROR, detail={"error": reason, "tokens": length})

    def _batches(self, texts: list[list[int]]) -> Iterator[list[int]]:
        """Rows of texts that fit, the longest first, and of one length in each batch where nothing may be padded."""
        rows = sorted(
            (row for row, tokens in enumerate(texts) if self._fits(len(tokens))), key=lambda row: -len(texts[row])
        )
        together = (
            [rows] if self._pads else [list(same) for _, same in itertools.groupby(rows, lambda row: len(texts[row]))]
        )
        for group in together:
            yield from (group[start : start + self._batch_size] for start in range(0, len(group), self._batch_size))

    def _logits(self, texts: list[list[int]]) -> list[float]:
        import torch

        lengths = torch.tensor([len(tokens) for tokens in texts])
        mask = (torch.arange(int(lengths.max())) < lengths[:, None]).long()
        ids = torch.full_like(mask, self._model.config.get_text_config().pad_token_id or 0)
        ids[mask.bool()] = torch.tensor([token for tokens in texts for token in tokens])
        device = self._model.device
        with torch.inference_mode():
            logits: torch.Tensor = self._model(input_ids=ids.to(device), attention_mask=mask.to(device)).logits
        return [float(logit) for logit in logits.reshape(len(texts)).float().tolist()]


def _scored(logit: float) -> Verdict:
    if not math.isfinite(logit):
        return Verdict.of(Outcome.VERIFIER_ERROR, detail={"error": f"the reward model's logit is {logit}"})
    return Verdict(logit, Outcome.SCORED)


def _check_arguments(batch_size: int, max_tokens: int | None, format: str, template: str | None) -> None:
    for name, value in (("batch_size", batch_size), ("max_tokens", max_tokens)):
        if value is not None and not (is_whole_number(value) and value >= 1):
            raise InvalidArgumentError(f"{name} must be at least 1, got {value!r}")
    if format not in get_args(Format):
        raise unknown_name("format", format, get_args(Format))
    if template is None:
        return
    if not isinstance(template, str):
        raise InvalidArgumentError(f"a template must be a string, got {template!r}")
    if {*_PLACEHOLDER.findall(template)} != {"prompt", "completion"}:
        raise InvalidArgumentError(f"a template must contain {{prompt}} and {{completion}}, got {template!r}")
    if format != "auto":
        raise InvalidArgumentError(f"a template replaces a format: leave format={format!r} out")


def _is_chat(format: str, tokenizer: PreTrainedTokenizerBase) -> bool:
    if format == "chat" and not tokenizer.chat_template:
        raise InvalidArgumentError("format='chat' needs a tokenizer with a chat template, and this one has none")
    return format == "chat" or (format == "auto" and bool(tokenizer.chat_template))


def _require_packages() -> None:
    for package in ("torch", "transformers"):
        try:
            __import__(package)
        except ImportError as error:
            raise missing_dependency(package, "train", "the reward model verifier") from error


def _loaded_model(model: str | PathLike[str] | PreTrainedModel, device: str | torch.device | None) -> PreTrainedModel:
    import torch

    if isinstance(model, str | PathLike):
        loaded = _from_pretrained(model)
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    elif isinstance(model, torch.nn.Module):
        loaded = model
    else:
        raise InvalidArgumentError(
            f"a reward model must be the path of a folder, a Hugging Face hub name or a transformers model, got {model!r}"
        )
    if "ForTokenClassification" in type(loaded).__name__:
        raise InvalidArgumentError(
            f"{_name(model)} scores each token; expected a sequence classifier, which scores a text"
        )
    logits = loaded.config.num_labels
    if logits != 1:
        raise InvalidArgumentError(
            f"{_name(model)} has {logits} logits; expected a sequence classifier with one (num_labels=1)"
        )
    module: torch.nn.Module = loaded
    module.to(device or loaded.device)
    if loaded.device.type == "cpu":
        module.float()
    module.eval()
    return loaded


def _from_pretrained(name: str | PathLike[str]) -> PreTrainedModel:
    from transformers import AutoModelForSequenceClassification

    loaded: PreTrainedModel
    try:
        ask_once(name, "model")
        with without_loading_bars():
            loaded, info = AutoModelForSequenceClassification.from_pretrained(
                name, dtype="auto", output_loading_info=True
            )
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(f"no sequence classifier could be loaded from {str(name)!r}: {error}") from error
    written_as = " ".join(loaded.config.architectures or ())
    if "ForTokenClassification" in written_as:
        raise InvalidArgumentError(
            f"{str(name)!r} is a {written_as}, which scores each token; expected a sequence classifier, which scores a text"
        )
    if info["missing_keys"]:
        raise InvalidArgumentError(
            f"{str(name)!r} holds no trained reward model: the weights {sorted(info['missing_keys'])} are missing and would "
            "be random; expected a checkpoint of a sequence classifier with num_labels=1"
        )
    return loaded


def _loaded_tokenizer(
    model: str | PathLike[str] | PreTrainedModel, tokenizer: str | PathLike[str] | PreTrainedTokenizerBase | None
) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    if tokenizer is None:
        if not isinstance(model, str | PathLike):
            raise InvalidArgumentError(f"{_name(model)} came without a tokenizer; pass tokenizer=")
        tokenizer = model
    if not isinstance(tokenizer, str | PathLike):
        return tokenizer
    try:
        ask_once(tokenizer, "model")
        return AutoTokenizer.from_pretrained(tokenizer)
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(f"no tokenizer could be loaded from {str(tokenizer)!r}: {error}") from error


def _name(model: object) -> str:
    return repr(str(model)) if isinstance(model, str | PathLike) else f"the {type(model).__name__}"


def _token_limit(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> float:
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    stated = tokenizer.model_max_length
    return min(positions or math.inf, stated if stated < _NO_LIMIT else math.inf)


def _takes_batches(model: PreTrainedModel) -> bool:
    return model.config.get_text_config().pad_token_id is not None and not model.config.is_encoder_decoder


def _is_causal(model: PreTrainedModel) -> bool:
    """Whether no token of this kind of model sees a later one, so that padding on the right changes nothing."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_MASKED_LM_MAPPING

    cls = type(model.config)
    return cls in MODEL_FOR_CAUSAL_LM_MAPPING and cls not in MODEL_FOR_MASKED_LM_MAPPING
