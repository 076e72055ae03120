"""TRL's trainers, fed with completions made by hand: what they make of the same batch on the same model.

Nothing of TRL is replaced but the generation: its own code pads, scores, computes advantages, log-probabilities and losses.
`GRPOTrainer` takes the completions through its `rollout_func`; `RLOOTrainer` has none, so its generation is overridden.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer

from agents import Trajectory
from tests.agents.trajectories import VOCAB
from tests.trl.batches import EOS, PAD

PLAIN: dict[str, Any] = {
    "use_cpu": True,
    "bf16": False,
    "activation_checkpointing": False,
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
    "shuffle_dataset": False,
    "max_grad_norm": 0.0,
}
"""What keeps TRL in float32, its gradients unclipped and its problems in order."""


class RLOOOnGiven(RLOOTrainer):  # type: ignore[misc]
    """RLOO whose completions are given."""

    trajectories: Sequence[Trajectory]

    def _tokenize_prompts(self, prompts: list[str]) -> tuple[list[list[int]], None, dict[str, Any]]:
        return _prompts(self.trajectories), None, {}

    def _generate_single_turn(self, *_: Any) -> list[list[int]]:
        return _completions(self.trajectories)


class GRPOOnGiven(GRPOTrainer):  # type: ignore[misc]
    """GRPO whose completions are given, behind prompts that its own code makes."""

    trajectories: Sequence[Trajectory]

    def _generate_single_turn(self, *_: Any) -> tuple[list[list[int]], None]:
        return _completions(self.trajectories), None


def grpo_trainer(folder: Path, trajectories: Sequence[Trajectory], **settings: Any) -> GRPOTrainer:
    """TRL's GRPO on the model of a folder, whose every rollout is these trajectories, group by group."""

    def rollout(prompts: list[str], trainer: GRPOTrainer) -> dict[str, Any]:
        return {
            "prompt_ids": _prompts(trajectories),
            "completion_ids": _completions(trajectories),
            "logprobs": [trajectory.logprobs[trajectory.prompt_length :].tolist() for trajectory in trajectories],
            "env_mask": [
                trajectory.policy_mask[trajectory.prompt_length :].astype(int).tolist() for trajectory in trajectories
            ],
        }

    config = GRPOConfig(output_dir=str(folder / "trl"), **_sizes(trajectories, settings))
    return GRPOTrainer(args=config, rollout_func=rollout, **_parts(folder, trajectories))


def rloo_trainer(folder: Path, trajectories: Sequence[Trajectory], **settings: Any) -> RLOOTrainer:
    """TRL's RLOO, likewise."""
    config = RLOOConfig(output_dir=str(folder / "trl"), **_sizes(trajectories, settings))
    trainer = RLOOOnGiven(args=config, **_parts(folder, trajectories))
    trainer.trajectories = trajectories
    return trainer


def chat_trainer(
    model: Any, tokenizer: Any, trajectories: Sequence[Trajectory], folder: Path, **settings: Any
) -> GRPOOnGiven:
    """TRL's GRPO on a copy of a chat model with its own tokenizer, whose completions are these trajectories'."""
    config = GRPOConfig(output_dir=str(folder / "trl"), **_sizes(trajectories, settings))
    dataset = Dataset.from_dict({"prompt": [[{"role": "user", "content": "?"}]]})
    rewards = _reward_functions(trajectories)
    trainer = GRPOOnGiven(copy.deepcopy(model), rewards, config, train_dataset=dataset, processing_class=tokenizer)
    trainer.trajectories = trajectories
    return trainer


def _prompts(trajectories: Sequence[Trajectory]) -> list[list[int]]:
    return [trajectory.tokens[: trajectory.prompt_length].tolist() for trajectory in trajectories]


def _completions(trajectories: Sequence[Trajectory]) -> list[list[int]]:
    return [trajectory.tokens[trajectory.prompt_length :].tolist() for trajectory in trajectories]


def _sizes(trajectories: Sequence[Trajectory], settings: dict[str, Any]) -> dict[str, Any]:
    """Groups as they are, and as many rows in each micro-batch as the accumulation steps leave."""
    groups = len({trajectory.group for trajectory in trajectories})
    sizes = {
        "num_generations": len(trajectories) // groups,
        "per_device_train_batch_size": len(trajectories) // settings.get("gradient_accumulation_steps", 1),
        "max_completion_length": max(len(trajectory.tokens) - trajectory.prompt_length for trajectory in trajectories),
    }
    return PLAIN | sizes | settings


def _parts(folder: Path, trajectories: Sequence[Trajectory]) -> dict[str, Any]:
    words = Tokenizer(WordLevel({str(token): token for token in range(VOCAB)}, unk_token=str(PAD)))
    groups = sorted({trajectory.group for trajectory in trajectories})
    return {
        "model": AutoModelForCausalLM.from_pretrained(folder),
        "reward_funcs": _reward_functions(trajectories),
        "train_dataset": Dataset.from_dict({"prompt": [str(group) for group in groups]}),
        "processing_class": PreTrainedTokenizerFast(tokenizer_object=words, eos_token=str(EOS), pad_token=str(PAD)),
    }


def _reward_functions(trajectories: Sequence[Trajectory]) -> list[Callable[..., list[float | None]]]:
    """One for each part of the scores, or one for scores without parts; None stands for a verifier that broke."""
    scored = [trajectory.reward_parts or {"score": (trajectory.score, 1.0)} for trajectory in trajectories]

    def function(name: str) -> Callable[..., list[float | None]]:
        def reward(**_: Any) -> list[float | None]:
            return [None if math.isnan(parts[name][0]) else parts[name][0] for parts in scored]

        reward.__name__ = name
        return reward

    return [function(name) for name in scored[0]]


def inputs_of(
    trainer: GRPOTrainer | RLOOTrainer, trajectories: Sequence[Trajectory], prompts: Sequence[Any] | None = None
) -> dict[str, Tensor]:
    """The trainer's batch of the trajectories in their order, with its advantages; by default prompts are names of groups."""
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = trainer.args.gradient_accumulation_steps
    inputs: dict[str, Tensor] = trainer._generate_and_score_completions(
        [{"prompt": prompt} for prompt in prompts or [str(trajectory.group) for trajectory in trajectories]]
    )
    return inputs


def sampled_elsewhere(inputs: dict[str, Tensor], trajectories: Sequence[Trajectory]) -> dict[str, Tensor]:
    """The batch with the trajectories' own log-probabilities as those that ratios are taken to."""
    own = torch.zeros(inputs["completion_ids"].shape)
    for row, trajectory in enumerate(trajectories):
        logprobs = torch.from_numpy(trajectory.logprobs[trajectory.prompt_length :])
        own[row, : len(logprobs)] = logprobs
    key, value = ("old_logps", own.sum(1)) if "old_logps" in inputs else ("old_per_token_logps", own)
    return inputs | {key: value}


def backward(trainer: GRPOTrainer | RLOOTrainer, inputs: dict[str, Tensor]) -> tuple[float, list[Tensor]]:
    """The trainer's loss of a batch, and its gradients."""
    trainer.model.zero_grad()
    loss = trainer.compute_loss(trainer.model, inputs)
    loss.backward()
    return float(loss.detach()), [parameter.grad.clone() for parameter in trainer.model.parameters()]


def last_metrics(trainer: GRPOTrainer | RLOOTrainer) -> dict[str, float]:
    """What the trainer has noted of its last batch."""
    return {name: values[-1] for name, values in trainer._metrics["train"].items()}
