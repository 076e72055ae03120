"""Scores from a learned reward model: any `transformers` sequence classifier with one logit."""

from __future__ import annotations

import math
import string
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from verifiers._settings import is_whole_number
from verifiers.errors import InvalidArgumentError, missing_dependency
from verifiers.types import Outcome, Problem, Verdict

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_NO_LIMIT = 10**9
"""A tokenizer without a limit states a huge number of tokens instead."""


class RewardModelVerifier:
    """The one logit of a sequence classifier over prompt and completion, as a `SCORED` verdict.

    What is scored is the first of these that is there: `template`, filled in; for a prompt of messages the tokenizer's
    chat template, with the completion as the assistant's last message; for a prompt of text the prompt and, directly
    after it, the completion.

    A score does not depend on the batch, up to the rounding of the device's arithmetic (1e-5 in 32-bit floats): only texts
    of equal length in tokens share a forward pass, so that nothing is ever padded, and each is pooled as the model itself
    does for this text alone. Models that `transformers` does not batch without padding (no padding token, or an encoder
    with a decoder) are run text by text.

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
        template: A format string with `{prompt}` and `{completion}`; messages are joined by blank lines.

    Raises:
        InvalidArgumentError: If nothing can be loaded from the name, the model has more than one logit or no trained
            head, the tokenizer is missing, or another argument is out of range.
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
        template: str | None = None,
    ) -> None:
        _check_arguments(batch_size, max_tokens, template)
        _require_packages()
        self._model = _loaded_model(model, device)
        self._tokenizer = _loaded_tokenizer(model, tokenizer)
        self._template = template
        self._max_tokens = _token_limit(self._model, self._tokenizer) if max_tokens is None else max_tokens
        self._batch_size = batch_size if _batches_without_padding(self._model) else 1

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Score one completion."""
        return self.verify_batch([completion], [problem])[0]

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Score completion i on problem i.

        Raises:
            InvalidArgumentError: If a prompt is a chat, and there is neither a template nor a chat template.
        """
        texts = [self._tokens(*pair) for pair in zip(completions, problems, strict=True)]
        verdicts = {row: self._refused(len(tokens)) for row, tokens in enumerate(texts) if not self._fits(len(tokens))}
        for rows in self._batches(texts):
            logits = self._logits([texts[row] for row in rows])
            verdicts.update(zip(rows, map(_scored, logits), strict=True))
        return [verdicts[row] for row in range(len(texts))]

    def _tokens(self, completion: str, problem: Problem) -> list[int]:
        prompt = problem.prompt
        if self._template is not None:
            text = prompt if isinstance(prompt, str) else "\n\n".join(message.content for message in prompt)
            return self._encoded(self._template.format(prompt=text, completion=completion))
        if isinstance(prompt, str):
            return self._encoded(prompt + completion)
        if not self._tokenizer.chat_template:
            raise InvalidArgumentError(
                f"the prompt of problem {problem.id!r} is a chat, and the reward model's tokenizer has no chat template; "
                "pass template='{prompt}...{completion}'"
            )
        chat = [{"role": message.role, "content": message.content} for message in prompt]
        chat.append({"role": "assistant", "content": completion})
        # A chat template writes the special tokens itself.
        return self._encoded(self._tokenizer.apply_chat_template(chat, tokenize=False), add_special_tokens=False)

    def _encoded(self, text: Any, add_special_tokens: bool = True) -> list[int]:
        ids = self._tokenizer(text, add_special_tokens=add_special_tokens, truncation=False, verbose=False)["input_ids"]
        return list(ids)

    def _fits(self, length: int) -> bool:
        return 0 < length <= self._max_tokens

    def _refused(self, length: int) -> Verdict:
        reason = f"prompt and completion are {length} tokens, and the reward model takes 1 to {self._max_tokens:.0f}"
        return Verdict.of(Outcome.VERIFIER_ERROR, detail={"error": reason, "tokens": length})

    def _batches(self, texts: list[list[int]]) -> Iterator[list[int]]:
        """Rows of texts that fit, of one length in each batch."""
        rows_of: dict[int, list[int]] = {}
        for row, tokens in enumerate(texts):
            if self._fits(len(tokens)):
                rows_of.setdefault(len(tokens), []).append(row)
        for rows in rows_of.values():
            for start in range(0, len(rows), self._batch_size):
                yield rows[start : start + self._batch_size]

    def _logits(self, texts: list[list[int]]) -> list[float]:
        import torch

        ids = torch.tensor(texts, device=self._model.device)
        with torch.inference_mode():
            logits: torch.Tensor = self._model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
        return [float(logit) for logit in logits.reshape(len(texts)).float().tolist()]


def _scored(logit: float) -> Verdict:
    if not math.isfinite(logit):
        return Verdict.of(Outcome.VERIFIER_ERROR, detail={"error": f"the reward model's logit is {logit}"})
    return Verdict(logit, Outcome.SCORED)


def _check_arguments(batch_size: int, max_tokens: int | None, template: str | None) -> None:
    for name, value in (("batch_size", batch_size), ("max_tokens", max_tokens)):
        if value is not None and not (is_whole_number(value) and value >= 1):
            raise InvalidArgumentError(f"{name} is at least 1, got {value!r}")
    if template is not None and not isinstance(template, str):
        raise InvalidArgumentError(f"a template is text, got {template!r}")
    if template is not None:
        fields = {field for _, field, _, _ in string.Formatter().parse(template) if field is not None}
        if fields != {"prompt", "completion"}:
            raise InvalidArgumentError(
                f"a template has the fields {{prompt}} and {{completion}} and no others, got {template!r}"
            )


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
    else:
        loaded = model
    logits = loaded.config.num_labels
    if logits != 1:
        raise InvalidArgumentError(
            f"a reward model has one logit, and {_name(model)} has {logits}; expected a sequence classifier with num_labels=1"
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
        loaded, info = AutoModelForSequenceClassification.from_pretrained(name, dtype="auto", output_loading_info=True)
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(f"no sequence classifier could be loaded from {str(name)!r}: {error}") from error
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
        return AutoTokenizer.from_pretrained(tokenizer)
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(f"no tokenizer could be loaded from {str(tokenizer)!r}: {error}") from error


def _name(model: object) -> str:
    return repr(str(model)) if isinstance(model, str | PathLike) else f"the {type(model).__name__}"


def _token_limit(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> float:
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    stated = tokenizer.model_max_length
    return min(positions or math.inf, stated if stated < _NO_LIMIT else math.inf)


def _batches_without_padding(model: PreTrainedModel) -> bool:
    return model.config.get_text_config().pad_token_id is not None and not model.config.is_encoder_decoder
