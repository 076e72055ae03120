"""Reward models: sequence classifiers with one logit, fitted to preferences by the likelihood of Bradley and Terry.

`verifiers.make("reward_model", model=FOLDER)` reads the saved folder. Training uses the verifier's code for tokens and scores,
so the verifier gives the same scores as in training.

Scores have neither a unit nor a zero, since the head begins as a random projection. The order of held-out pairs shows how good
the scores are (see `agents.preferences.report`).
"""

from __future__ import annotations

import dataclasses
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import rlvr_envs
from agents import policies
from agents.deferred import torch
from agents.interrupts import interrupts_deferred
from agents.losses import bradley_terry
from agents.policies.transformers.model_files import check_model, model_folder
from agents.preferences.pairs import PreferencePair
from agents.preferences.report import PreferenceReport, preference_report
from agents.rollouts.problem_order import problems_of_step
from agents.runs.files.json_files import read_json
from agents.runs.files.outputs import follow_umask
from agents.settings.agent import MAX_COMPLETIONS
from agents.settings.learner import LearnerConfig
from verifiers import AtLeast, Between, DataError, InvalidArgumentError, Outcome, check_types
from verifiers.devices import float64_device
from verifiers.hub import without_loading_bars
from verifiers.reward_model import RewardModelVerifier, text_logits

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class RewardModelConfig:
    """Settings of the training of a reward model.

    Raises:
        InvalidArgumentError: If a value is out of range.
    """

    epochs: Annotated[int | None, AtLeast(1)] = None
    """Number of passes over the pairs. None means 10 for a model with random weights, and 1 for a trained model, since in more
    passes a large model memorises pairs."""
    batch_size: Annotated[int, Between(1, MAX_COMPLETIONS)] = 64
    """Number of pairs in each optimiser step."""
    center_coefficient: Annotated[float, AtLeast(0)] = 0.01
    """Weight of a loss that is the squared sum of a pair's scores (Eisenstein et al. 2023, arXiv:2312.09244). This loss draws
    scores towards a mean of 0, and does not change the order of a pair."""
    seed: Annotated[int, AtLeast(0)] = 0
    """Seed of the head's random weights and of the order of the pairs. Members of an ensemble have different seeds."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    """Settings of the optimiser; `micro_batch_size` counts pairs."""

    def __post_init__(self) -> None:
        check_types(self)

    def for_model(self, model: Any, *, trained: bool) -> RewardModelConfig:
        """Return these settings, with `epochs` and the learning rate chosen for a torch model if they are not set."""
        epochs = self.epochs if self.epochs is not None else 1 if trained else 10
        return dataclasses.replace(self, epochs=epochs, learner=self.learner.for_model(model, supervised=True))


@dataclass(frozen=True)
class RewardModel:
    """A sequence classifier with one logit, and its tokenizer."""

    model: Any
    tokenizer: Any
    """A tokenizer of `transformers`."""

    def verifier(self, batch_size: int = 256) -> RewardModelVerifier:
        """The verifier that gives this model's scores."""
        return RewardModelVerifier(self.model, self.tokenizer, batch_size=batch_size)

    def save(self, folder: Path) -> None:
        """Write the folder that `verifiers.make("reward_model", model=folder)` reads."""
        with without_loading_bars(), policies.writing_to(folder):
            self.model.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)
        follow_umask(folder)


def new_reward_model(name: str | Path, *, seed: int = 0, device: str = "auto") -> RewardModel:
    """Build a reward model to train.

    Args:
        name: Folder or hub name of a causal language model or of a reward model; or "tiny" for a small model with random
            weights, which reads bytes. If `rlvr sft` or `rlvr train` saved the model with characters or bytes as tokens, the
            reward model reads bytes.
        seed: Seed of random weights.
        device: Device of the model, as for `verifiers.devices.choose_device`. The default is the GPU if there is one.

    Raises:
        InvalidArgumentError: If no model or tokenizer can be loaded, or the device is not available.
        UnknownNameError: If there is no such device.
    """
    place = policies.policy_device(device)
    folder = name if name == "tiny" else model_folder(name)
    if folder != "tiny":
        check_model(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = _from_bytes(folder, seed)
        if made is None:
            with policies.whole_model_folder(folder) as whole:
                made = _from_pretrained(whole)
    made.model.to(place).float().eval()
    return made


def _from_bytes(folder: str | Path, seed: int) -> RewardModel | None:
    """A model whose tokenizer is built in, which `transformers` can't load; None for a model with any other tokenizer."""
    if folder == "tiny":
        return _with_head(policies.tiny_model(257, seed=seed), None)
    if not Path(folder).is_dir() or _has_one_logit(Path(folder)):
        return None
    own = policies.load_tokenizer(folder)
    return (
        None
        if isinstance(own, rlvr_envs.HuggingFaceTokenizer)
        else _with_head(policies.load_model(folder, dtype="float32"), own)
    )


def _has_one_logit(folder: Path) -> bool:
    """Whether a folder holds a sequence classifier."""
    path = folder / "config.json"
    config = read_json(path) if path.is_file() else {}
    return any("ForSequenceClassification" in str(name) for name in config.get("architectures") or ())


def _with_head(policy: Any, own: rlvr_envs.Tokenizer | None) -> RewardModel:
    """Build a classifier on the body of a causal model of bytes or characters."""
    from transformers import AutoModelForSequenceClassification

    tokenizer = policies.hugging_face_bytes()
    with tempfile.TemporaryDirectory() as folder, without_loading_bars():
        policy.save_pretrained(folder)
        # Read it again with `AutoTokenizer`, which may normalise text for this type of model.
        tokenizer.save_pretrained(folder)
        settled = _auto_tokenizer(folder)
        model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=1)
    embeddings = model.get_input_embeddings().weight.detach().clone()
    model.resize_token_embeddings(len(settled), mean_resizing=False)
    if own is not None:
        policies.copy_embeddings(model, embeddings, own)
    model.config.pad_token_id = settled.pad_token_id
    return RewardModel(model, settled)


def _auto_tokenizer(folder: str | Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


def _from_pretrained(name: str | Path) -> RewardModel:
    from transformers import AutoModelForSequenceClassification

    try:
        with without_loading_bars():
            tokenizer = _auto_tokenizer(name)
            model: Any = AutoModelForSequenceClassification.from_pretrained(name, num_labels=1, dtype="float32")
    except Exception as error:
        # A damaged file may cause any error, in JSON, safetensors or pickle, or by a missing key.
        first = (str(error).strip().splitlines() or [""])[0]
        raise InvalidArgumentError(
            f"no reward model could be made of {str(name)!r}: expected a folder with config.json, weights and tokenizer, or a "
            f"name on the Hugging Face hub ({type(error).__name__}: {first[:200]})"
        ) from error
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    if model.config.get_text_config().pad_token_id is None:
        model.config.get_text_config().pad_token_id = tokenizer.pad_token_id
    return RewardModel(model, tokenizer)


# Training


@dataclass(frozen=True)
class _TokenPair:
    chosen: list[int]
    rejected: list[int]

    @property
    def longest(self) -> int:
        return max(len(self.chosen), len(self.rejected))


def train_reward_model(
    reward_model: RewardModel,
    pairs: Sequence[PreferencePair],
    config: RewardModelConfig,
    *,
    on_step: Callable[[int, float], None] | None = None,
) -> int:
    """Fit a reward model to pairs. The loss is the mean of `agents.losses.bradley_terry` over each batch.

    Args:
        reward_model: The model, whose weights change.
        pairs: Pairs whose texts fit into the model.
        config: Settings, as `RewardModelConfig.for_model` returns them.
        on_step: Called after each step, with the number and the loss of the step.

    Returns:
        The number of optimiser steps.

    Raises:
        InvalidArgumentError: If neither epochs nor a learning rate are set.
        DataError: If there are no pairs, or a text does not fit.
    """
    rates, rate = config.learner, config.learner.learning_rate
    if config.epochs is None or rate is None:
        raise InvalidArgumentError("no epochs or no learning rate is set: `RewardModelConfig.for_model` chooses them")
    texts = _token_pairs(reward_model, pairs)
    batch_size = min(config.batch_size, len(texts))
    steps = num_steps(len(texts), config)
    model = reward_model.model
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(
        parameters, lr=rate, betas=(rates.beta1, rates.beta2), weight_decay=rates.weight_decay
    )
    for step in range(steps):
        batch = [texts[index] for index in problems_of_step(len(texts), step, batch_size, config.seed)]
        with interrupts_deferred():  # no partial step
            optimizer.zero_grad(set_to_none=True)
            loss = backward(model, batch, config)
            norm = torch.nn.utils.clip_grad_norm_(parameters, rates.max_grad_norm)
            for group in optimizer.param_groups:
                group["lr"] = rates.learning_rate_at(step, steps)
            if bool(torch.isfinite(norm)):
                optimizer.step()
        if on_step is not None:
            on_step(step + 1, loss)
    return steps


def num_steps(pairs: int, config: RewardModelConfig) -> int:
    """The number of optimiser steps for a number of pairs."""
    return math.ceil((config.epochs or 0) * pairs / min(config.batch_size, pairs))


def _token_pairs(reward_model: RewardModel, pairs: Sequence[PreferencePair]) -> list[_TokenPair]:
    if not pairs:
        raise DataError("there are no pairs to learn from")
    verifier = reward_model.verifier()
    texts = [
        _TokenPair(verifier.tokens(pair.chosen, pair.problem), verifier.tokens(pair.rejected, pair.problem))
        for pair in pairs
    ]
    for pair, tokens in zip(pairs, texts, strict=True):
        if not (tokens.chosen and tokens.rejected) or tokens.longest > verifier.max_tokens:
            raise DataError(
                f"a text of the pair {pair.chosen[:40]!r}, {pair.rejected[:40]!r} has {tokens.longest} tokens with its prompt, "
                f"and the model takes 1 to {verifier.max_tokens:.0f}: leave the pair out"
            )
    return texts


def backward(model: Any, batch: Sequence[_TokenPair], config: RewardModelConfig) -> float:
    """Add the gradient of a batch's mean loss to the model's gradients, in micro-batches; return the loss."""
    total = 0.0
    for part in _micro_batches(batch, config.learner.micro_batch_size):
        scores = text_logits(model, [*(pair.chosen for pair in part), *(pair.rejected for pair in part)])
        chosen, rejected = scores.to(float64_device(scores.device)).double().split(len(part))
        loss: Tensor = bradley_terry(chosen, rejected, config.center_coefficient).sum() / len(batch)
        loss.backward()
        total += float(loss.detach())
    return total


def _micro_batches(batch: Sequence[_TokenPair], size: int) -> Iterator[list[_TokenPair]]:
    """Micro-batches of pairs of similar length, which need little padding."""
    ordered = sorted(batch, key=lambda pair: pair.longest)
    yield from (ordered[start : start + size] for start in range(0, len(ordered), size))


def evaluate_reward_model(verifier: RewardModelVerifier, pairs: Sequence[PreferencePair]) -> PreferenceReport:
    """Score held-out pairs with a reward model.

    Raises:
        DataError: If a text can't be scored.
    """
    problems = [pair.problem for pair in pairs]
    verdicts = verifier.verify_batch(
        [*(pair.chosen for pair in pairs), *(pair.rejected for pair in pairs)], [*problems, *problems]
    )
    errored = next((one for one in verdicts if one.outcome is Outcome.VERIFIER_ERROR), None)
    if errored is not None:
        raise DataError(f"the reward model can't score a held-out completion: {errored.detail['error']}")
    scores = [one.score for one in verdicts]
    return preference_report(scores[: len(pairs)], scores[len(pairs) :], [str(pair.prompt) for pair in pairs])
