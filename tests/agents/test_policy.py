"""Sampling and recomputing agree, whatever the cache, the batch and the padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from agents import CausalLMPolicy, Episode, PolicyConfig, Trajectory, rollout
from agents.batch import make_batch
from agents.learn.learner import Learner, Loss
from agents.losses import Aggregation
from agents.settings.learner import LearnerConfig
from tests.agents.architectures import ARCHITECTURES, model_of
from tests.agents.rounding import FLOAT64, assert_equal_stored, tolerance
from tests.envs.helpers import PROBLEMS, vector_env
from verifiers import InvalidArgumentError, Problem

VOCAB = 257


def policy(temperature: float = 1.0, **kwargs: Any) -> CausalLMPolicy:
    torch.manual_seed(0)
    return CausalLMPolicy(model_of("qwen2", VOCAB), PolicyConfig(temperature=temperature, **kwargs))


def play(acting: CausalLMPolicy, num_envs: int, episodes: list[Episode], **rules: Any) -> list[Trajectory]:
    return rollout(vector_env(num_envs, **rules), acting, episodes)


EPISODES = [Episode(problem=index % 5, group=index // 2, seed=100 + index) for index in range(12)]


def fresh_logprobs(model: Any, tokens: np.ndarray, temperature: float) -> np.ndarray:
    """Log-probabilities of tokens 1 to l - 1 from a plain, unpadded forward pass."""
    ids = torch.from_numpy(tokens.astype(np.int64))[None]
    with torch.no_grad():
        logits = model(input_ids=ids).logits[0, :-1].float() / temperature
    return logits.log_softmax(-1).gather(-1, ids[0, 1:, None])[:, 0].numpy()


@FLOAT64
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_stored_logprobs_equal_a_fresh_unpadded_forward(architecture: str, temperature: float) -> None:
    torch.manual_seed(0)
    acting = CausalLMPolicy(model_of(architecture, VOCAB), PolicyConfig(temperature=temperature))
    alike = [Episode(problem=4, group=9, seed=seed) for seed in range(4)]  # whose prompt is read once
    for trajectory in play(acting, 4, [*EPISODES, *alike]):
        expected = fresh_logprobs(acting.model, trajectory.tokens, temperature)
        mask = trajectory.policy_mask[1:]
        assert mask.sum() >= 1
        assert_equal_stored(trajectory.logprobs[1:][mask], expected[mask])


@FLOAT64
def test_sampling_does_not_depend_on_the_batch_the_order_or_refills() -> None:
    alone = [play(policy(), 1, [episode])[0] for episode in EPISODES]
    together = play(policy(), 12, EPISODES)
    refilled = play(policy(), 5, EPISODES)
    backwards = play(policy(), 3, EPISODES[::-1])[::-1]
    for group in (together, refilled, backwards):
        for one, other in zip(alone, group, strict=True):
            assert one.tokens.tolist() == other.tokens.tolist()
            assert_equal_stored(other.logprobs, one.logprobs)


@FLOAT64
def test_a_plain_act_loop_is_right_without_begin() -> None:
    acting, checking = policy(seed=1), policy(seed=1)
    env = vector_env(3)
    observation, _ = env.reset(seed=0)
    for _ in range(6):
        action = acting.act(observation)
        expected = [fresh_next(checking.model, observation, row) for row in range(3)]
        chosen = [expected[row][action.tokens[row, 0]] for row in range(3)]
        assert_equal_stored(action.logprobs[:, 0], chosen)
        again = acting.act(observation)
        assert again.tokens.tolist() == action.tokens.tolist()
        observation, *_ = env.step(action.tokens[:, 0])


def fresh_next(model: Any, observation: Any, row: int) -> np.ndarray:
    ids = torch.from_numpy(observation["tokens"][row, : observation["length"].reshape(-1)[row]].astype(np.int64))[None]
    with torch.no_grad():
        return model(input_ids=ids).logits[0, -1].float().log_softmax(-1).numpy()


@FLOAT64
def test_restored_and_forked_rows_are_read_anew() -> None:
    acting = policy()
    env = vector_env(3, max_new_tokens=8)
    observation, _ = env.reset(options={"problems": np.array([0, 1, 2])})
    state = env.get_state(1)
    for _ in range(3):
        observation, *_ = env.step(acting.act(observation).tokens[:, 0])
    env.set_state(1, state)
    env.fork(0, [2])
    observation = {"tokens": env.streams.tokens.copy(), "length": env.streams.length.copy()}
    action = acting.act(observation)
    for row in range(3):
        expected = fresh_next(acting.model, observation, row)[action.tokens[row, 0]]
        assert_equal_stored(action.logprobs[row, 0], expected)


def test_greedy_takes_the_likeliest_token_and_stores_no_logprob() -> None:
    acting = policy(temperature=0.0)
    observation, _ = vector_env(2).reset(seed=0)
    action = acting.act(observation)
    best = [int(fresh_next(acting.model, observation, row).argmax()) for row in range(2)]
    assert action.tokens[:, 0].tolist() == best
    assert np.isnan(action.logprobs).all()


def three_letters(tokens: np.ndarray, prompt_length: int) -> np.ndarray:
    mask = np.zeros(VOCAB, dtype=np.int8)
    mask[[97, 98, 256] if len(tokens) % 2 else [98, 99]] = 1
    return mask


@FLOAT64
def test_masked_sampling_and_the_learner_use_the_same_distribution() -> None:
    acting = policy()
    trajectories = play(acting, 4, EPISODES, legal_actions=three_letters)
    for trajectory in trajectories:
        for at in np.flatnonzero(trajectory.policy_mask):
            assert three_letters(trajectory.tokens[:at], 0)[trajectory.tokens[at]] == 1
    batch = make_batch(trajectories)
    legal = batch.legal_tokens(batch.first, VOCAB)
    outputs = acting.forward(batch.tokens, batch.first, legal)
    logprobs, entropy = outputs.logprobs, outputs.entropy
    mask = batch.loss_mask[:, batch.first :]
    assert_equal_stored(logprobs[mask], batch.logprobs[:, batch.first :][mask])
    assert (entropy[mask] <= np.log(3) + tolerance(np.log(3))).all()


def test_the_same_prompt_is_read_once_for_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    acting = policy()
    assert acting._lm.groups_rows  # tried before the counting
    rows_read = []
    forward = acting.model.forward

    def counting(*args: Any, **kwargs: Any) -> Any:
        rows_read.append(kwargs["input_ids"].shape)
        return forward(*args, **kwargs)

    monkeypatch.setattr(acting.model, "forward", counting)
    play(acting, 8, [Episode(4, 0, seed) for seed in range(8)])
    assert rows_read[0] == (1, len(str(PROBLEMS[4].prompt)))


def test_tokens_beyond_the_environments_vocabulary_are_never_chosen() -> None:
    with pytest.raises(InvalidArgumentError, match="the model has 20 tokens but the environment 257"):
        CausalLMPolicy(model_of("qwen2", 20), PolicyConfig(vocab_size=257))
    acting = CausalLMPolicy(model_of("qwen2", 400), PolicyConfig(vocab_size=VOCAB))
    trajectories = play(acting, 4, EPISODES, problems=[Problem(f"p{index}", "Q", "a") for index in range(5)])
    assert max(int(trajectory.tokens.max()) for trajectory in trajectories) < VOCAB


@FLOAT64
def test_rows_that_are_left_out_and_observations_of_fewer_change_nothing() -> None:
    acting = policy()
    many, few = vector_env(4).reset(seed=0)[0], vector_env(2).reset(seed=1)[0]
    first = acting.act(many)
    acting.act(many, rows=np.array([True, False, True, False]))
    assert acting.act(many).tokens.tolist() == first.tokens.tolist()
    acting.act(few)
    again = acting.act(many)
    for row in range(4):
        assert_equal_stored(again.logprobs[row, 0], fresh_next(acting.model, many, row)[again.tokens[row, 0]])


def test_an_announcement_holds_for_one_episode() -> None:
    acting = policy()
    play(acting, 1, [Episode(4, 0, 7)])
    env = vector_env(1)
    texts = set()
    for _ in range(4):
        observation, _ = env.reset(options={"problems": np.array([4])})
        for _ in range(6):
            observation, *_ = env.step(acting.act(observation).tokens[:, 0])
        texts.add(observation["tokens"].tobytes())
    assert len(texts) == 4


def test_more_than_the_models_context_is_refused() -> None:
    """GPT-2 has learned positions, of which there are no more."""
    acting = CausalLMPolicy(model_of("gpt2", VOCAB, max_position_embeddings=12))
    observation, _ = vector_env(2).reset(seed=0)
    with pytest.raises(InvalidArgumentError, match="up to 14 tokens, including the prompt, but the model's context"):
        acting.act(observation)
    tokens = torch.zeros(2, 13, dtype=torch.long)
    for read in (acting.forward, acting.states, acting.distributions):
        with pytest.raises(InvalidArgumentError, match=r"up to 13 tokens, including the prompt.* context holds 12"):
            read(tokens, 1)


@pytest.mark.parametrize("temperature", [1.0, 0.0])
def test_masks_that_do_not_fit_are_refused_before_anything_is_read(temperature: float) -> None:
    acting, other = policy(temperature), policy(temperature)
    observation, _ = vector_env(2).reset(seed=0)
    for sampler in (acting, other):
        sampler.begin(*EPISODE_SEEDS)
    expected = other.act(observation)
    mask = np.ones((2, VOCAB), dtype=np.int8)
    mask[1] = 0
    with pytest.raises(InvalidArgumentError, match="allows row 1 no token at all: legal_actions must allow at least"):
        acting.act(observation, action_mask=mask)
    with pytest.raises(InvalidArgumentError, match=r"\(2, 257\), got \(2, 200\): use the same tokenizer for policy"):
        acting.act(observation, action_mask=mask[:, :200])
    assert acting.act(observation, action_mask=mask, rows=np.array([True, False])).counts.tolist() == [1, 0]
    result = acting.act(observation)
    assert result.tokens.tolist() == expected.tokens.tolist()


@pytest.mark.parametrize("temperature", [1.0, 0.0])
def test_logits_that_are_not_finite_raise(temperature: float) -> None:
    acting = policy(temperature)
    observation, _ = vector_env(2).reset(seed=0)
    with torch.no_grad():
        acting.model.get_output_embeddings().weight.fill_(torch.nan)
    with pytest.raises(FloatingPointError, match="logits are not finite"):
        acting.act(observation)


def learned(acting: CausalLMPolicy) -> None:
    """The learner's optimiser is fused on a CPU, which `torch` does not count."""
    batch = make_batch(play(acting, 2, EPISODES[:2]))
    learner = Learner(acting, LearnerConfig(learning_rate=0.1))
    advantages = torch.ones(batch.tokens.shape, dtype=torch.float64)
    aggregation = Aggregation.TOKEN_MEAN
    learner.step(
        batch,
        advantages,
        Loss(lambda _, result, weights: {"policy": -weights * result.logprobs}, aggregation=aggregation),
    )


def changed_in_place(acting: CausalLMPolicy) -> None:
    with torch.no_grad():
        for parameter in acting.model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))


def loaded(acting: CausalLMPolicy) -> None:
    torch.manual_seed(1)
    acting.model.load_state_dict({name: torch.randn_like(value) for name, value in acting.model.state_dict().items()})


def changed_and_announced(acting: CausalLMPolicy) -> None:
    """What is done to `data` is not counted, so another policy on the model is told."""
    for parameter in acting.model.parameters():
        parameter.data.mul_(-1.0)
    acting.weights_changed()


EPISODE_SEEDS = (np.arange(2), np.array([7, 8], dtype=np.uint64))


@FLOAT64
@pytest.mark.parametrize("change", [learned, changed_in_place, loaded, changed_and_announced])
def test_policies_on_one_model_notice_that_its_weights_changed(change: Any) -> None:
    """Of what they have read before, neither keys and values nor choices are used again."""
    acting = policy()
    greedy, hot = acting.at_temperature(0.0), acting.at_temperature(0.7)
    observation, _ = vector_env(2).reset(seed=0)
    longer = {"tokens": observation["tokens"].copy(), "length": observation["length"] + 1}
    for sampler in (greedy, hot):
        sampler.begin(*EPISODE_SEEDS)
        sampler.act(observation)
    version = hot.version
    change(acting)
    for seen in (observation, longer):
        for sampler in (greedy, hot):
            result = sampler.act(seen)
            slow = CausalLMPolicy(acting.model, PolicyConfig(temperature=sampler.temperature, fast=False))
            slow.begin(*EPISODE_SEEDS)
            expected = slow.act(seen)
            assert result.tokens.tolist() == expected.tokens.tolist()
            assert_equal_stored(result.logprobs, expected.logprobs)
    assert hot.version == version


@FLOAT64
def test_caps_split_work_and_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompts and micro-batches that are too large for one pass are read in several."""
    from agents.learn import batch_passes
    from agents.policies.transformers import acting as acting_module

    episodes = [Episode(index % 5, index, seed=index) for index in range(12)]
    whole = play(policy(), 12, episodes)
    expected = [rows.tolist() for rows in batch_passes.micro_batches(make_batch(whole), 64)]
    monkeypatch.setattr(acting_module, "_PROMPT_TOKENS_AT_ONCE", 5)
    monkeypatch.setattr(batch_passes, "TOKENS_AT_ONCE", 20)
    split = play(policy(), 12, episodes)
    for one, other in zip(split, whole, strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()
        assert_equal_stored(one.logprobs, other.logprobs)
    batch = make_batch(whole)
    micro_batches = list(batch_passes.micro_batches(batch, 64))
    assert [row for rows in micro_batches for row in rows.tolist()] == expected[0]
    assert len(micro_batches) > 3
    assert all(len(rows) == 1 or len(rows) * int(batch.lengths[rows].max()) <= 20 for rows in micro_batches)
