"""Scores texts with a learned reward model: any `transformers` sequence classifier with one logit."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, cast

from verifiers._models import (
    as_plain_text,
    failed,
    is_causal,
    length_batches,
    load_config,
    load_pretrained,
    load_tokenizer,
    move_to_device,
    padded,
    require_packages,
    special_texts,
    token_limit,
    wrong_length,
)
from verifiers._settings import check_arguments
from verifiers.bounds import Above, AtLeast, HTTPAddress
from verifiers.completion.cut import without_end_tokens
from verifiers.errors import InvalidArgumentError
from verifiers.types import Outcome, Problem, Verdict, chat_messages, prompt_text

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

InputFormat = Literal["auto", "chat", "text"]
_PLACEHOLDER = re.compile(r"\{(prompt|completion)\}")


class _Scorer(Protocol):
    def scores(self, texts: Sequence[list[int]]) -> list[Verdict]:
        """The logit of each tokenised text, as a verdict."""


class RewardModelVerifier:
    """Scores prompt and completion with the one logit of a sequence classifier, as a `SCORED` verdict.

    With a `template`, the model scores the filled-in template. Otherwise it scores a chat, in which the completion follows the
    prompt as the assistant's message, or a text, in which the completion directly follows the prompt. In a chat, a plain-text
    prompt becomes the user's message, which is scored like the same prompt in a message. A text that begins with the
    tokenizer's start token gets no second start token.

    A score does not depend on the batch, up to the rounding of the device's arithmetic (1e-5 in 32-bit floats): each text is
    pooled as if the model were given it alone. For causal models, in which no token sees a later token, texts of similar length
    are padded on the right and share a forward pass. For other models, only texts of equal length in tokens share a forward
    pass, and models that `transformers` does not batch (no padding token, or an encoder with a decoder) are run text by text.

    A text with more tokens than the model accepts is not cut: its verdict is a `VERIFIER_ERROR` that states both numbers. A
    text without tokens and a logit that is not finite are `VERIFIER_ERROR` too.

    With `server` the model runs in `vllm serve MODEL --runner pooling`; only its configuration and tokenizer are loaded here.
    A text that the server does not score is a `VERIFIER_ERROR` with the cause; temporary failures are retried twice.

    Args:
        model: A name or folder for `AutoModelForSequenceClassification`; or a model, which is set to evaluation mode and moved
            to `device`. With a server, the model's name on the server.
        tokenizer: A name, a folder or a tokenizer; by default, the tokenizer with the model's name or in its folder. If the
            model's name on the server is not its name on the hub or its folder, give the hub's name or the folder here.
        batch_size: Maximum number of texts in a forward pass, or of concurrent requests to the server.
        max_tokens: Maximum number of tokens of a text; by default, the limit stated by the model's configuration and the
            tokenizer.
        device: Where to run, as for `verifiers.devices.choose_device`. By default, a model object stays on its device, and a
            named model is loaded to the GPU if there is one. On the CPU the model computes in 32-bit floats, elsewhere in its
            own type.
        format: `"chat"`: through the tokenizer's chat template; `"text"`: without it, messages joined by blank lines; `"auto"`:
            as a chat if the tokenizer has a template.
        template: Instead of a format, a text in which `{prompt}` and `{completion}` are replaced; messages are joined by blank
            lines.
        server: Address of a vLLM server (0.32 or later) whose `/pooling` endpoint scores the texts, such as
            http://localhost:8000.
        api_key: The server's key, or `env:NAME` to read it from an environment variable; by default VLLM_API_KEY, if it is set.
        timeout_s: Maximum wait for the server's answer in seconds, for each attempt; 60 by default.

    Raises:
        InvalidArgumentError: If nothing can be loaded from the name, the model has more than one logit, scores each token or
            has no trained head, the tokenizer or its chat template is missing, or another argument is invalid.
        MissingDependencyError: If transformers, or torch for a model without a server, are not installed.
    """

    def __init__(
        self,
        model: str | PathLike[str] | PreTrainedModel,
        tokenizer: str | PathLike[str] | PreTrainedTokenizerBase | None = None,
        *,
        batch_size: int = 16,
        max_tokens: int | None = None,
        device: str | torch.device | None = None,
        format: InputFormat = "auto",
        template: str | None = None,
        server: str | None = None,
        api_key: str | None = None,
        timeout_s: float | None = None,
    ) -> None:
        check_arguments(Annotated[int | None, AtLeast(1)], batch_size=batch_size, max_tokens=max_tokens)
        check_arguments(Annotated[str | None, HTTPAddress()], server=server)
        check_arguments(str | None, api_key=api_key, template=template)
        check_arguments(Annotated[float | None, Above(0)], timeout_s=timeout_s)
        check_arguments(InputFormat, format=format)
        _check_format(format, template)
        _check_server(server, device=device, api_key=api_key, timeout_s=timeout_s)
        packages = ("torch", "transformers") if server is None else ("transformers",)
        require_packages(*packages, purpose="the reward model verifier")
        self._scorer: _Scorer
        if server is None:
            loaded = _loaded_model(model, device)
            config = loaded.config
            self._scorer = _LocalModel(loaded, batch_size)
        else:
            from verifiers._pooling_server import PoolingServer

            config = load_config(tokenizer if isinstance(tokenizer, str | PathLike) else _name_of(model))
            _check_labels(config, _name(model))
            self._scorer = PoolingServer(
                server,
                _name_of(model),
                padding=config.get_text_config().pad_token_id if is_causal(config) else None,
                api_key=api_key,
                timeout_s=60.0 if timeout_s is None else timeout_s,
                at_once=batch_size,
            )
        self._tokenizer = _loaded_tokenizer(model, tokenizer)
        self._special = special_texts(self._tokenizer)
        self._template = template
        self._format = format
        self._chat = template is None and _is_chat(format, self._tokenizer)
        self.max_tokens = token_limit(config, self._tokenizer) if max_tokens is None else max_tokens

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Score one completion."""
        return self.verify_batch([completion], [problem])[0]

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Score completion i on problem i.

        Raises:
            InvalidArgumentError: If a prompt consists of messages, the format is `"auto"`, and there is no chat template.
        """
        texts = [self.tokens(*pair) for pair in zip(completions, problems, strict=True)]
        fits = [0 < len(tokens) <= self.max_tokens for tokens in texts]
        scores = iter(self._scorer.scores([tokens for tokens, fit in zip(texts, fits, strict=True) if fit]))
        return [
            next(scores) if fit else wrong_length(len(tokens), self.max_tokens, "reward model")
            for tokens, fit in zip(texts, fits, strict=True)
        ]

    def tokens(self, completion: str, problem: Problem) -> list[int]:
        """The text to be scored, as the model's tokens.

        Raises:
            InvalidArgumentError: If the prompt consists of messages, the format is `"auto"`, and there is no chat template.
        """
        prompt, said = problem.prompt, without_end_tokens(completion)
        completion = as_plain_text(said, self._special) + completion[len(said) :]
        if self._chat:
            chat = [*chat_messages(prompt), {"role": "assistant", "content": completion}]
            # A chat template writes the special tokens itself.
            return self._encoded(self._tokenizer.apply_chat_template(chat, tokenize=False), add_special_tokens=False)
        if not isinstance(prompt, str) and self._template is None and self._format == "auto":
            raise InvalidArgumentError(
                f"the prompt of problem {problem.id!r} is messages, and the reward model's tokenizer has no chat template; "
                "pass template='{prompt}...{completion}', or format='text'"
            )
        text = prompt_text(prompt)
        if self._template is None:
            return self._encoded(text + completion)
        values = {"prompt": text, "completion": completion}
        return self._encoded(_PLACEHOLDER.sub(lambda placeholder: values[placeholder[1]], self._template))

    def _encoded(self, text: Any, add_special_tokens: bool = True) -> list[int]:
        ids = self._tokenizer(text, add_special_tokens=add_special_tokens, truncation=False, verbose=False)["input_ids"]
        start = self._tokenizer.bos_token_id
        # A template, or a prompt that has already been rendered, may begin with the start token.
        return list(ids[1:] if start is not None and list(ids[:2]) == [start, start] else ids)


class _LocalModel:
    """A sequence classifier with one logit, run in this process."""

    def __init__(self, model: PreTrainedModel, batch_size: int) -> None:
        self._model = model
        self._batch_size = batch_size if _takes_batches(model) else 1
        self._pads = is_causal(model.config)

    def scores(self, texts: Sequence[list[int]]) -> list[Verdict]:
        verdicts: dict[int, Verdict] = {}
        for rows in length_batches(list(map(len, texts)), self._batch_size, equal=not self._pads):
            verdicts.update(zip(rows, map(_scored, self._logits([texts[row] for row in rows])), strict=True))
        return [verdicts[row] for row in range(len(texts))]

    def _logits(self, texts: list[list[int]]) -> list[float]:
        import torch

        with torch.inference_mode():
            return [float(logit) for logit in text_logits(self._model, texts).tolist()]


def text_logits(model: PreTrainedModel, texts: Sequence[list[int]]) -> torch.Tensor:
    """Compute the logits f32[n] of n tokenised texts in one forward pass, with gradients."""
    logits: torch.Tensor = model(**padded(texts, model)).logits
    return logits.reshape(len(texts)).float()


def _scored(logit: float) -> Verdict:
    return Verdict(logit, Outcome.SCORED) if math.isfinite(logit) else failed(f"the reward model's logit is {logit}")


def _check_format(format: str, template: str | None) -> None:
    if template is None:
        return
    if {*_PLACEHOLDER.findall(template)} != {"prompt", "completion"}:
        raise InvalidArgumentError(f"a template must contain {{prompt}} and {{completion}}, got {template!r}")
    if format != "auto":
        raise InvalidArgumentError(f"a template replaces a format: leave format={format!r} out")


def _check_server(server: str | None, *, device: object, **of_server: object) -> None:
    if server is None:
        given = [name for name, value in of_server.items() if value is not None]
        if given:
            raise InvalidArgumentError(f"{' and '.join(given)} go with a server: pass server=, or leave them out")
    elif device is not None:
        raise InvalidArgumentError(f"the model runs on the server: leave device={str(device)!r} out")


def _name_of(model: object) -> str:
    """The name of a model on a server."""
    if not isinstance(model, str | PathLike):
        raise InvalidArgumentError(f"with a server, model must be the name that it serves, got {_name(model)}")
    return fspath(model)


def _is_chat(format: str, tokenizer: PreTrainedTokenizerBase) -> bool:
    if format == "chat" and not tokenizer.chat_template:
        raise InvalidArgumentError("format='chat' needs a tokenizer with a chat template, and this one has none")
    return format == "chat" or (format == "auto" and bool(tokenizer.chat_template))


def _loaded_model(model: str | PathLike[str] | PreTrainedModel, device: str | torch.device | None) -> PreTrainedModel:
    import torch

    if isinstance(model, str | PathLike):
        loaded = _from_pretrained(model)
    elif isinstance(model, torch.nn.Module):
        loaded, device = model, device or cast("torch.device", model.device)
    else:
        raise InvalidArgumentError(
            f"a reward model must be the path of a folder, a Hugging Face hub name or a transformers model, got {model!r}"
        )
    if "ForTokenClassification" in type(loaded).__name__:
        raise InvalidArgumentError(
            f"{_name(model)} scores each token; expected a sequence classifier, which scores a text"
        )
    _check_labels(loaded.config, _name(model))
    move_to_device(loaded, device)
    return loaded


def _check_labels(config: PreTrainedConfig, name: str) -> None:
    if config.num_labels != 1:
        raise InvalidArgumentError(
            f"{name} has {config.num_labels} logits; expected a sequence classifier with one (num_labels=1)"
        )


def _from_pretrained(name: str | PathLike[str]) -> PreTrainedModel:
    from transformers import AutoModelForSequenceClassification

    loaded, missing = load_pretrained(AutoModelForSequenceClassification, name, "sequence classifier")
    written_as = " ".join(loaded.config.architectures or ())
    if "ForTokenClassification" in written_as:
        raise InvalidArgumentError(
            f"{str(name)!r} is a {written_as}, which scores each token; expected a sequence classifier, which scores a text"
        )
    if missing:
        raise InvalidArgumentError(
            f"{str(name)!r} holds no trained reward model: the weights {missing} are missing and would be random; expected a "
            "checkpoint of a sequence classifier with num_labels=1"
        )
    return loaded


def _loaded_tokenizer(
    model: str | PathLike[str] | PreTrainedModel, tokenizer: str | PathLike[str] | PreTrainedTokenizerBase | None
) -> PreTrainedTokenizerBase:
    if tokenizer is None:
        if not isinstance(model, str | PathLike):
            raise InvalidArgumentError(f"{_name(model)} came without a tokenizer; pass tokenizer=")
        tokenizer = model
    return load_tokenizer(tokenizer) if isinstance(tokenizer, str | PathLike) else tokenizer


def _name(model: object) -> str:
    return repr(str(model)) if isinstance(model, str | PathLike) else f"the {type(model).__name__}"


def _takes_batches(model: PreTrainedModel) -> bool:
    return model.config.get_text_config().pad_token_id is not None and not model.config.is_encoder_decoder
