"""`ProcessRewardModelVerifier`: scores the steps of a completion one by one."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Literal, cast

from verifiers._models import (
    failed,
    length_batches,
    load_tokenizer,
    require_packages,
    token_limit,
    wrong_length,
)
from verifiers._settings import check_arguments
from verifiers.bounds import AtLeast
from verifiers.errors import InvalidArgumentError, unknown_name
from verifiers.process_reward_model.heads import Head, StepModel
from verifiers.process_reward_model.layouts import (
    Step,
    StepEncoder,
    StepFormat,
    StepLayout,
    UnwritableStepsError,
    steps_of,
)
from verifiers.process_reward_model.presets import PRESETS
from verifiers.types import Outcome, Problem, Verdict

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

StepReduction = Literal["min", "mean", "last", "product", "sum"]
_REDUCTIONS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "mean": statistics.fmean,
    "last": lambda scores: scores[-1],
    "product": math.prod,
    "sum": math.fsum,
}
_FORMAT_FIELDS = tuple(field.name for field in dataclasses.fields(StepFormat))


@dataclasses.dataclass(frozen=True, slots=True)
class _Text:
    """A completion in the form that the model reads."""

    ids: list[int]
    scored: list[int]
    steps: list[Step]


class ProcessRewardModelVerifier:
    """Scores a completion with the probabilities that its steps are right, by a process reward model, reduced to one score.

    A completion is split into steps at `split`, a mark is written after each step, and the model, with its own tokenizer,
    scores each step at its mark. A verdict's score is the reduction of the steps' scores.

    A step is paid the change that it makes to the reduction of the steps so far (`Verdict.token_scores`), at the policy's token
    that completes the separator before the next step. A last step without a separator is paid at the end of the episode. So no
    payment depends on later text, and the payments sum to the score. With `"sum"`, each step is paid its own score, so writing
    more steps earns more.

    `detail["steps"]` has the end of each step, in characters of the completion, and its score.

    A completion without steps is `NO_ANSWER`, with a score of 0. Special tokens written out in a completion are shown to the
    model as ordinary text. A text with more tokens than the model accepts, or a score that is not finite, is a `VERIFIER_ERROR`
    with the cause.

    Args:
        model: A name or folder, with the weights of the `head`.
        preset: A published model's settings; see `verifiers.process_reward_model.presets`. The other arguments override them;
            without a preset, layout, split, mark and head must be given.
        layout: `"chat"`: all steps are one message of the assistant, with a mark after each step. `"text"`: the same without a
            chat template. `"pieces"`: as `"text"`, but the prompt, each step and each mark are tokenised separately. `"turns"`:
            each step is a message of the user, the first step together with the problem, and the assistant answers each message
            with the mark.
        split: Text between two steps of a completion.
        mark: Text at which a step is scored. It must be one token, except in the layout `"pieces"`, where its last token is
            used.
        head: `"token_classifier"`, `"mlp"`, `"value_head"` or `"token_pair"`; see
            `verifiers.process_reward_model.heads.StepModel`.
        labels: The two tokens of a token pair, of which the first means that a step is right; `+` and `-` by default.
        reduction: How the steps' scores are reduced to the verdict's score: the smallest, the mean, the last, the product or
            the sum.
        system: System message of a chat whose prompt has no system message.
        prompt_end: Text between the prompt and the first step, except in a chat.
        step_end: Text between a step and its mark.
        mark_end: Text between a mark and the next step.
        tokenizer: A name, a folder or a tokenizer; by default, the model's tokenizer.
        batch_size: Maximum number of texts in a forward pass.
        max_tokens: Maximum number of tokens of a text; by default, the limit stated by the model's configuration and the
            tokenizer.
        device: Where to run, as for `verifiers.devices.choose_device`; by default the GPU if there is one. On the CPU the
            model computes in 32-bit floats.

    Raises:
        InvalidArgumentError: If a setting is missing or does not fit the others, the model or the tokenizer.
        MissingDependencyError: If torch or transformers are not installed.
    """

    def __init__(
        self,
        model: str | PathLike[str],
        preset: str | None = None,
        *,
        layout: StepLayout | None = None,
        split: str | None = None,
        mark: str | None = None,
        head: Head | None = None,
        labels: Sequence[str] = ("+", "-"),
        reduction: StepReduction = "min",
        system: str | None = None,
        prompt_end: str | None = None,
        step_end: str | None = None,
        mark_end: str | None = None,
        tokenizer: str | PathLike[str] | PreTrainedTokenizerBase | None = None,
        batch_size: int = 8,
        max_tokens: int | None = None,
        device: str | torch.device | None = None,
    ) -> None:
        check_arguments(Annotated[int | None, AtLeast(1)], batch_size=batch_size, max_tokens=max_tokens)
        check_arguments(StepReduction, reduction=reduction)
        check_arguments(Head | None, head=head)
        check_arguments(str | PathLike[str], model=model)
        given = dict(zip(_FORMAT_FIELDS, (layout, split, mark, system, prompt_end, step_end, mark_end), strict=True))
        self._format, head = _settings(preset, given, head)
        require_packages("torch", "transformers", purpose="the process reward model verifier")
        tokenizer = model if tokenizer is None else tokenizer
        loaded = load_tokenizer(tokenizer) if isinstance(tokenizer, str | PathLike) else tokenizer
        self._encoder = StepEncoder(self._format, loaded)
        pair = _label_tokens(labels, loaded) if head == "token_pair" else None
        self._model = StepModel(model, head, pair, device)
        self._max_tokens = token_limit(self._model.model.config, loaded) if max_tokens is None else max_tokens
        self._batch_size = batch_size
        self._reduce = _REDUCTIONS[reduction]

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Score the steps of one completion."""
        return self.verify_batch([completion], [problem])[0]

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Score the steps of completion i on problem i."""
        read = [self._read(*pair) for pair in zip(completions, problems, strict=True)]
        texts = [text for text in read if isinstance(text, _Text)]
        verdicts: dict[int, Verdict] = {}
        for rows in length_batches([len(text.ids) for text in texts], self._batch_size):
            batch = [texts[row] for row in rows]
            scores = self._model.probabilities([text.ids for text in batch], [text.scored for text in batch])
            for row, text, of_steps in zip(rows, batch, scores, strict=True):
                verdicts[row] = self._verdict(text.steps, of_steps)
        scored = iter([verdicts[row] for row in range(len(texts))])
        return [next(scored) if isinstance(text, _Text) else text for text in read]

    def _read(self, completion: str, problem: Problem) -> _Text | Verdict:
        steps = steps_of(completion, self._format.split)
        if not steps:
            return Verdict(0.0, Outcome.NO_ANSWER)
        try:
            ids, scored = self._encoder.encode(problem.prompt, steps)
        except UnwritableStepsError as error:
            return failed(str(error))
        if len(ids) > self._max_tokens:
            return wrong_length(len(ids), self._max_tokens, "process reward model")
        return _Text(ids, scored, steps)

    def _verdict(self, steps: list[Step], scores: list[float]) -> Verdict:
        if not all(map(math.isfinite, scores)):
            return failed(f"the process reward model's scores are {scores}")
        totals = [self._reduce(scores[:count]) for count in range(1, len(scores) + 1)]
        changes = [total - before for total, before in zip(totals, [0.0, *totals], strict=False)]
        paid = [(step.end, change) for step, change in zip(steps, changes, strict=True) if not step.is_cut_off]
        detail = {"steps": tuple((step.end, score) for step, score in zip(steps, scores, strict=True))}
        return Verdict(totals[-1], Outcome.SCORED, detail=detail, token_scores=tuple(paid) or None)


def _settings(preset: str | None, given: Mapping[str, object], head: Head | None) -> tuple[StepFormat, Head]:
    """The preset's settings, replaced by the given settings."""
    if preset is not None and preset not in PRESETS:
        raise unknown_name("preset", preset, PRESETS)
    given = {name: value for name, value in given.items() if value is not None}
    if preset is not None:
        format, usual = PRESETS[preset]
        return dataclasses.replace(format, **given), head or usual  # type: ignore[arg-type] # StepFormat checks
    missing = [name for name in ("layout", "split", "mark") if name not in given] + ["head"] * (head is None)
    if missing:
        raise InvalidArgumentError(
            f"{' and '.join(missing)} must be given where there is no preset; presets: {', '.join(sorted(PRESETS))}"
        )
    return StepFormat(**given), cast(Head, head)  # type: ignore[arg-type] # StepFormat checks


def _label_tokens(labels: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> tuple[int, int]:
    """The ids of two tokens."""
    ids = [tokenizer(label, add_special_tokens=False)["input_ids"] for label in labels]
    if (
        len(ids) != 2
        or any(len(tokens) != 1 or tokens[0] == tokenizer.unk_token_id for tokens in ids)
        or ids[0] == ids[1]
    ):
        raise InvalidArgumentError(f"labels must be two tokens, such as '+' and '-', got {labels!r}, which are {ids}")
    return ids[0][0], ids[1][0]
