"""A published chat model in both libraries: the prompts of its template, and a step on completions that it sampled."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs TRL, in the environment of make test-trl")

import numpy as np
import torch

from agents import GRPO, CausalLMPolicy, Episode, GRPOConfig, LearnerConfig, Trajectory, rollout
from rlvr_envs import HuggingFaceTokenizer
from tests.published_model import chat_policy, check_ends, sums
from tests.trl import oracle
from tests.trl.sides import Step, gap, our_step, silenced

pytestmark = silenced

TEMPERATURE = 0.5
"""At which about half of the answers end within the budget."""
ROUNDING = 1e-4
"""Of float32 in thirty layers, relative to the largest gradient; measured: 2e-5."""


@pytest.fixture(scope="module")
def chat() -> tuple[CausalLMPolicy, HuggingFaceTokenizer]:
    return chat_policy(TEMPERATURE)


def question(problem: str, system: str | None = None) -> list[dict[str, str]]:
    """A row of TRL's for a sum such as `37+58=`."""
    asked = {"role": "user", "content": f"What is {problem.removesuffix('=')}?"}
    return [asked] if system is None else [{"role": "system", "content": system}, asked]


@pytest.fixture(scope="module")
def group(chat: tuple[CausalLMPolicy, HuggingFaceTokenizer]) -> list[Trajectory]:
    """Two answers to a question that ended, and two that were cut."""
    policy, tokenizer = chat
    sampled = rollout(sums(tokenizer, 8), policy, [Episode(problem=0, group=0, seed=seed) for seed in range(8)])
    check_ends(sampled, tokenizer.turn_end)
    ended, cut = ([played for played in sampled if played.terminated == end] for end in (True, False))
    return [*ended[:2], *cut[:2]]


@pytest.mark.parametrize("system", [None, "Be brief."])
def test_prompts_are_those_of_the_conversation(
    system: str | None, chat: tuple[CausalLMPolicy, HuggingFaceTokenizer], group: list[Trajectory], tmp_path: Path
) -> None:
    policy, tokenizer = chat
    env = sums(tokenizer, 6, system=system)
    observation, _ = env.reset(options={"problems": np.arange(6)})
    lengths = observation["length"].ravel()
    ours = [row[:length].tolist() for row, length in zip(observation["tokens"], lengths, strict=True)]
    rows = [question(str(env.streams.dataset[index].prompt), system) for index in range(6)]
    theirs, _, _ = oracle.chat_trainer(policy.model, tokenizer.inner, group, tmp_path)._tokenize_prompts(rows)
    assert ours == theirs


@pytest.mark.parametrize("masked", [False, True])
def test_a_step_on_sampled_completions(
    masked: bool, chat: tuple[CausalLMPolicy, HuggingFaceTokenizer], group: list[Trajectory], tmp_path: Path
) -> None:
    """With `masked`, both leave out what was cut, so that they agree on which completions those are."""
    policy, tokenizer = chat
    ours = our_step(our_agent(policy, masked), group)
    settings = {"temperature": TEMPERATURE, "mask_truncated_completions": masked}
    trainer = oracle.chat_trainer(policy.model, tokenizer.inner, group, tmp_path, **settings)
    theirs = their_step(trainer, group, tokenizer)
    torch.testing.assert_close(ours.advantages.float(), theirs.advantages, atol=1e-5, rtol=1e-5)
    assert theirs.metrics["completions/clipped_ratio"] == 0.5
    assert ours.loss == pytest.approx(theirs.loss, abs=1e-5)
    assert gap(ours, theirs) < ROUNDING


def our_agent(policy: CausalLMPolicy, masked: bool) -> GRPO:
    learner = LearnerConfig(max_grad_norm=1e9, micro_batch_size=4)
    config = GRPOConfig(group_size=4, learner=learner, **({"truncation": "mask"} if masked else {}))
    return GRPO(policy.with_model(copy.deepcopy(policy.model)), config)


def their_step(trainer: Any, group: Sequence[Trajectory], tokenizer: HuggingFaceTokenizer) -> Step:
    """TRL's step on the completions, behind the prompt that it makes of the question itself."""
    prompt = sums(tokenizer, 1).streams.dataset[0].prompt
    inputs = oracle.inputs_of(trainer, group, prompts=[question(str(prompt))] * len(group))
    loss, gradients = oracle.backward(trainer, inputs)
    return Step(loss, gradients, inputs["advantages"], oracle.last_metrics(trainer))
