"""TRL's trainers before the court: their own advantages of given completions, and their own losses of given log-probabilities.

A trainer gets completions from a rollout function and scores them by a reward function that knows the scores; None stands for a
verifier that broke. Its loss gets a model that answers with the record's log-probabilities. What turns logits into these, the
temperature among it, is then not on trial, so that the case about it is left out.
"""

from __future__ import annotations

import functools
import math
import tempfile
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer

from agents.experiments.court import Estimator, Record

_PLAIN: dict[str, Any] = {
    "use_cpu": True,
    "bf16": False,
    "activation_checkpointing": False,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
    "shuffle_dataset": False,
}
_NO_LOGITS = {"temperature": "log-probabilities are given"}
_NO_TOOLS = dict.fromkeys(("tool tokens", "several turns"), "RLOOTrainer has no tools")
_PAD, _EOS = 2, 3


class Given:
    """Scores of episodes that a trainer takes for its rollouts."""

    scores: list[float]

    def completions(self) -> list[list[int]]:
        """A completion for each score; what is in them decides nothing."""
        return [[0, _EOS] for _ in self.scores]

    def reward(self, **_: Any) -> list[float | None]:
        """The scores, None where the verifier broke."""
        return [None if math.isnan(score) else score for score in self.scores]


class _RLOO(RLOOTrainer):  # type: ignore[misc]
    given: Given

    def _generate_single_turn(self, *_: Any) -> list[list[int]]:
        return self.given.completions()


@functools.cache
def trainer_of(kind: str, group_size: int, groups: int, **settings: Any) -> tuple[Any, Given]:
    """A trainer of a tiny model, and the scores that it is given, for batches of a size."""
    given = Given()
    words = Tokenizer(WordLevel({str(token): token for token in range(4)}, unk_token="0"))
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=4,
            hidden_size=8,
            intermediate_size=8,
            num_hidden_layers=1,
            num_attention_heads=1,
            pad_token_id=_PAD,
        )
    )
    sizes = {
        "num_generations": group_size,
        "per_device_train_batch_size": group_size * groups,
        "max_completion_length": 4,
    }
    parts = {
        "model": model,
        "train_dataset": Dataset.from_dict({"prompt": [str(number % 2) for number in range(groups)]}),
        "processing_class": PreTrainedTokenizerFast(tokenizer_object=words, eos_token=str(_EOS), pad_token=str(_PAD)),
    }

    def reward(**kwargs: Any) -> list[float | None]:
        return given.reward(**kwargs)

    def rollout(prompts: list[str], trainer: Any) -> dict[str, Any]:
        ids = given.completions()
        return {"prompt_ids": [[0] for _ in ids], "completion_ids": ids, "logprobs": [[0.0, 0.0] for _ in ids]}

    folder = tempfile.mkdtemp()
    arguments = {**_PLAIN, **sizes, **settings}
    if kind == "rloo":
        trainer = _RLOO(args=RLOOConfig(output_dir=folder, **arguments), reward_funcs=[reward], **parts)
        trainer.given = given
    else:
        trainer = GRPOTrainer(
            args=GRPOConfig(output_dir=folder, **arguments), reward_funcs=[reward], rollout_func=rollout, **parts
        )
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    return trainer, given


def advantages_of(kind: str, **settings: Any) -> Callable[[Record], Tensor]:
    """The advantages f64[b] that the trainer's own code makes of the scores."""

    @functools.cache
    def of_scores(scores: tuple[float, ...], group_size: int) -> Tensor:
        trainer, given = trainer_of(kind, group_size, len(scores) // group_size, **settings)
        given.scores = list(scores)
        rows = [{"prompt": str(number // group_size % 2)} for number in range(len(scores))]
        made: Tensor = trainer._generate_and_score_completions(rows)["advantages"].double()
        return made

    def advantages(record: Record) -> Tensor:
        group_size = int((record.groups == 0).sum())
        # Equal keys for broken verifiers: NaN differs from itself.
        scores = tuple(math.nan if math.isnan(score) else round(score, 9) for score in record.scores.tolist())
        return of_scores(scores, group_size)

    return advantages


def loss_of(kind: str, **settings: Any) -> Callable[[Record], Tensor]:
    """The trainer's own loss, in one gradient accumulation step."""

    def loss(record: Record) -> Tensor:
        trainer, _ = trainer_of(kind, 2, 1, **settings)
        trainer.beta = record.kl_coefficient
        trainer.max_completion_length = record.max_tokens

        def model(**_: Any) -> SimpleNamespace:
            return SimpleNamespace(log_probs=record.logprobs, entropy=record.entropies.detach(), aux_loss=None)

        assert record.advantages is not None
        shown = torch.arange(record.tokens.shape[1]) < record.lengths[:, None]
        # TRL leaves episodes whose verifier broke in its masks, with advantages of 0.
        own = record.mask | (shown & ~record.valid[:, None])
        inputs = {
            "prompt_ids": record.tokens[:, :1],
            "prompt_mask": torch.ones_like(record.tokens[:, :1]),
            "completion_ids": record.tokens[:, 1:],
            "completion_mask": shown[:, 1:].long(),
            "tool_mask": own[:, 1:].long(),
            "advantages": record.advantages[:, 1],
            "old_per_token_logps": record.old_logprobs[:, 1:],
            "ref_per_token_logps": record.reference_logprobs[:, 1:],
            "old_logps": torch.where(record.mask, record.old_logprobs, 0.0).sum(1),
            "num_items_in_batch": own[:, 1:].sum(),
        }
        total: Tensor = trainer._compute_loss(model, inputs)
        return total

    return loss


def estimator(title: str, kind: str = "grpo", **settings: Any) -> Estimator:
    """A trainer with settings, on the loss of a whole step."""
    step = dict.fromkeys(("accumulation", "ranks"), "TRL's loop reduces micro-batches and ranks")
    skipped = {**_NO_LOGITS, **step, **(_NO_TOOLS if kind == "rloo" else {})}
    if kind == "rloo":
        skipped["KL term"] = "its reward is the trainer's own, of a reference model"
    return Estimator(title, advantages=advantages_of(kind, **settings), loss=loss_of(kind, **settings), skipped=skipped)


ESTIMATORS = [
    estimator("RLOOTrainer", "rloo", beta=0.0),
    estimator("GRPOTrainer"),
    estimator("loss_type='grpo'", loss_type="grpo"),
    estimator("loss_type='dr_grpo', scale_rewards='none'", loss_type="dr_grpo", scale_rewards="none"),
    estimator("loss_type='dapo', scale_rewards='none'", scale_rewards="none"),
    estimator("loss_type='bnpo', scale_rewards='none'", loss_type="bnpo", scale_rewards="none"),
    estimator(
        "loss_type='luspo', scale_rewards='none', importance_sampling_level='sequence'",
        loss_type="luspo",
        scale_rewards="none",
        importance_sampling_level="sequence",
    ),
    estimator("loss_type='cispo', scale_rewards='none'", loss_type="cispo", scale_rewards="none", epsilon_high=5.0),
    estimator("use_bias_correction_kl=False, scale_rewards='none'", scale_rewards="none", use_bias_correction_kl=False),
    estimator("scale_rewards='batch'", scale_rewards="batch"),
]
