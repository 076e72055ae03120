"""What is there for speed or memory changes nothing beyond rounding, is switched off by one flag, and says when it is used."""

from __future__ import annotations

import dataclasses
import logging
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    CohereConfig,
    Gemma2Config,
    GPT2Config,
    GraniteConfig,
    LlamaConfig,
    MistralConfig,
    Qwen2Config,
)

from agents import (
    A2C,
    GRPO,
    A2CConfig,
    CausalLMPolicy,
    CriticConfig,
    Episode,
    GRPOConfig,
    LearnerConfig,
    PolicyConfig,
    make_batch,
    rollout,
)
from agents.learn.learner import Learner, Loss
from agents.learn.natural_gradient import flat_gradient
from agents.losses import Aggregation
from agents.policies.transformers import acting, language_model, model_capabilities, scoring
from agents.policies.transformers.memory import cache_bytes_per_token
from agents.policies.transformers.model_capabilities import costs_of, logit_transform
from agents.policies.transformers.sampling import sample
from rlvr_envs import TokenVectorEnv
from tests.agents.rounding import FLOAT64, assert_equal, assert_equal_stored
from tests.agents.test_shared_prefix import groups
from tests.agents.trajectories import VOCAB, tiny_policy
from tests.envs.helpers import vector_env
from verifiers import Problem

BYTES = 257
SIZES: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
SIZES |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128}
SIZES |= dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))
CONFIGS: dict[str, Any] = {
    "qwen2": partial(Qwen2Config, **SIZES),
    "llama": partial(LlamaConfig, **SIZES),
    "gpt2": partial(GPT2Config, n_embd=32, n_layer=2, n_head=4, n_positions=128, bos_token_id=0, eos_token_id=0),
    "windows": partial(MistralConfig, **SIZES, sliding_window=6),
    "capped": partial(Gemma2Config, **SIZES, head_dim=8, final_logit_softcapping=5.0, sliding_window=6),
    "multiplied": partial(CohereConfig, **SIZES, logit_scale=0.25),
    "divided": partial(GraniteConfig, **SIZES, logits_scaling=3.0),
}
PROMPTS = [Problem(f"p{index}", "prompt"[index:] + "xyz" * 9, "e") for index in range(4)]


@pytest.fixture(autouse=True)
def nothing_said_yet() -> None:
    model_capabilities._say.cache_clear()
    acting._say_beyond.cache_clear()


def model(name: str, vocab: int = BYTES) -> Any:
    torch.manual_seed(0)
    made = AutoModelForCausalLM.from_config(CONFIGS[name](vocab_size=vocab))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(3.0)
    return made.eval()


def world(rows: int = 8, **rules: Any) -> TokenVectorEnv:
    return vector_env(rows, problems=PROMPTS, max_prompt_tokens=40, max_new_tokens=9, **rules)


EPISODES = [Episode(problem=index // 4, group=index // 4, seed=index) for index in range(16)]


def forward_widths(policy: CausalLMPolicy) -> list[tuple[int, int]]:
    """What the model is given from now on: rows and tokens of each pass."""
    seen: list[tuple[int, int]] = []

    def note(module: Any, args: Any, kwargs: dict[str, Any]) -> None:
        seen.append(tuple((args[0] if args else kwargs["input_ids"]).shape))

    policy.model.base_model.register_forward_pre_hook(note, with_kwargs=True)
    return seen


def agent_on(name: str, algorithm: str, fast: bool) -> Any:
    learner = LearnerConfig(learning_rate=1e-6, max_grad_norm=1e9, micro_batch_size=16)
    policy = CausalLMPolicy(model(name), PolicyConfig(fast=fast, temperature=0.8, top_p=0.95))
    if algorithm == "grpo":
        settings = {"kl_coefficient": 0.1, "entropy_coefficient": 0.01}
        return GRPO(policy, GRPOConfig(problems_per_step=4, group_size=4, learner=learner, **settings))
    agent = A2C(policy, A2CConfig(problems_per_step=4, group_size=4, learner=learner, critic=CriticConfig("head")))
    with torch.no_grad():
        agent.models.critic.layer.weight.normal_(generator=torch.Generator().manual_seed(0))
    return agent


@FLOAT64
@pytest.mark.parametrize("algorithm", ["grpo", "a2c"])
@pytest.mark.parametrize("name", ["qwen2", "llama", "gpt2", "windows", "capped"])
def test_one_flag_turns_all_off_and_changes_nothing(name: str, algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens are identical; losses and gradients equal up to rounding."""
    for module in (acting, scoring):
        monkeypatch.setattr(module, "LOGITS_AT_ONCE", 10 * BYTES)
    results = []
    for fast in (False, True):
        agent = agent_on(name, algorithm, fast)
        widths = forward_widths(agent.policy)
        trajectories = rollout(world(), agent.policy, EPISODES)
        cached = any(width == 1 for _, width in widths)
        assert cached is fast
        metrics = agent.update(trajectories)
        assert metrics["shared_prefix"] == float(fast and name in ("qwen2", "llama", "gpt2"))
        results.append((trajectories, metrics, flat_gradient(agent.policy)))
    (slow, expected, gradient), (quick, metrics, other) = results
    for one, same in zip(slow, quick, strict=True):
        assert one.tokens.tolist() == same.tokens.tolist()
        assert_equal_stored(same.logprobs, one.logprobs)
    assert_equal_stored(*([row[key] for key in ("loss", "entropy", "grad_norm")] for row in (metrics, expected)))
    assert_equal_stored(other, gradient)


def test_the_flag_goes_to_greedy_policies_and_references() -> None:
    settings: dict[str, Any] = {"fast": False, "checkpointing": "on", "shared_prefix": False, "max_cached_tokens": 7}
    policy = CausalLMPolicy(model("qwen2"), PolicyConfig(**settings, seed=3, min_p=0.1))
    reference = GRPO(policy, GRPOConfig(kl_coefficient=0.1)).models.reference
    assert reference is not None
    assert reference.policy.config == policy.config
    assert policy.at_temperature(0.0).config == dataclasses.replace(policy.config, temperature=0.0)
    assert policy.at_temperature(0.0).vocab_size == policy.vocab_size


def test_the_share_of_micro_batches_that_were_shared_is_a_metric() -> None:
    """Two micro-batches of a group, and one of a single completion."""
    rows = [*groups(count=2), *groups(members=1, count=1)]
    batch = make_batch(rows)
    batch.groups[-1] = 2
    learner = Learner(tiny_policy(), LearnerConfig(micro_batch_size=4))
    weights = torch.ones_like(batch.tokens, dtype=torch.float64)
    loss = Loss(lambda _, outputs, advantages: {"policy": -advantages * outputs.logprobs}, Aggregation.TOKEN_MEAN)
    assert learner.step(batch, weights, loss)["shared_prefix"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("qwen2", "Qwen2ForCausalLM %s: its attention is 'eager', but 'sdpa' is needed"),
        ("windows", "MistralForCausalLM %s: some of its layers have no full attention"),
    ],
)
def test_what_rules_sharing_out_is_said_once(name: str, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    made = model(name, VOCAB)
    if name == "qwen2":
        made.set_attn_implementation("eager")
    with caplog.at_level(logging.WARNING):
        agent = GRPO(CausalLMPolicy(made), GRPOConfig(kl_coefficient=0.1))
        assert agent.update(groups())["shared_prefix"] == 0
    said = "in training, " + reason % "computes prompts once for each completion, not once for each group"
    assert [record.getMessage() for record in caplog.records] == [said]


def test_costs_are_those_of_the_layers_as_they_are() -> None:
    """Two layers: queries and outputs 32 x 32, keys and values 16 x 32, three feed-forward matrices 48 x 32."""
    costs = costs_of(model("qwen2"))
    assert costs.token == 2 * (2 * 32 * 32 + 2 * 16 * 32 + 3 * 48 * 32)
    assert costs.pair == 2 * 2 * 32
    gpt2 = costs_of(model("gpt2"))  # whose matrices are not torch's Linear, beside tables of tokens and positions
    assert gpt2.token == 2 * 12 * 32 * 32
    assert costs_of(model("capped")).pair == 2 * 2 * 4 * 8


@FLOAT64
@pytest.mark.parametrize(("name", "known"), [("qwen2", True), ("gpt2", True), ("multiplied", True), ("qwen2", False)])
def test_states_of_the_packed_pass_are_those_of_the_plain_one(
    name: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The head's input is caught where a trial says that the body's states are not all there is to logits."""
    batch = make_batch(groups())
    plain = CausalLMPolicy(model(name, VOCAB), PolicyConfig(shared_prefix=False))
    expected = plain.read(batch, with_states=True)
    if not known:
        monkeypatch.setattr(language_model, "logit_transform", lambda _: None)
    shared = CausalLMPolicy(model(name, VOCAB))
    result = shared.read(batch, with_states=True)
    assert (result.shared, expected.shared) == (True, False)
    assert result.states is not None
    assert expected.states is not None
    own, rows, ends = batch.loss_mask[:, batch.first :], torch.arange(len(batch)), batch.lengths - batch.first
    assert_equal(result.states[:, :-1][own], expected.states[:, :-1][own])
    assert_equal(result.states[rows, ends], expected.states[rows, ends])
    assert_equal(result.logprobs[own], expected.logprobs[own])
    assert_equal(shared.read_states(batch), result.states)


@FLOAT64
@pytest.mark.parametrize("name", ["capped", "multiplied", "divided"])
def test_scaled_and_capped_logits_are_read_by_chunks_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = make_batch(groups())
    expected = CausalLMPolicy(model(name, VOCAB), PolicyConfig(fast=False)).read(batch)
    monkeypatch.setattr(scoring, "LOGITS_AT_ONCE", 5 * VOCAB)
    made = model(name, VOCAB)
    policy = CausalLMPolicy(made)
    assert logit_transform(made) not in (None, model_capabilities.LogitTransform())
    policy.read(batch)  # tries what there is to try
    sizes = []
    made.get_output_embeddings().register_forward_hook(lambda _, __, logits: sizes.append(logits.numel()))
    result = policy.read(batch)
    assert max(sizes) == 5 * VOCAB
    mask = batch.loss_mask[:, batch.first :]
    for one, other in ((expected.logprobs, result.logprobs), (expected.entropy, result.entropy)):
        assert_equal(other[mask], one[mask])


@FLOAT64
@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_choosing_by_a_few_rows_gives_the_same_tokens(temperature: float, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = PolicyConfig(temperature=temperature, top_p=0.9)
    whole = rollout(world(), CausalLMPolicy(model("qwen2"), settings), EPISODES)
    monkeypatch.setattr(acting, "LOGITS_AT_ONCE", 3 * BYTES)
    spy = mock.Mock(side_effect=sample)
    monkeypatch.setattr(acting, "sample", spy)
    limited = rollout(world(), CausalLMPolicy(model("qwen2"), settings), EPISODES)
    for one, other in zip(limited, whole, strict=True):
        np.testing.assert_array_equal(one.tokens, other.tokens)
        np.testing.assert_array_equal(one.logprobs, other.logprobs)
        np.testing.assert_equal(one.action_masks, other.action_masks)
    assert max((len(call.args[0]) for call in spy.call_args_list), default=3) == 3


def most_cached(policy: CausalLMPolicy) -> list[int]:
    """The tokens that the cache holds after each act from now on, padding included."""
    seen: list[int] = []
    act = policy.act

    def spy(*args: Any, **kwargs: Any) -> Any:
        action = act(*args, **kwargs)
        lengths = policy._actor._cache.lengths
        seen.append(len(lengths) * max(lengths, default=0))
        return action

    policy.act = spy  # type: ignore[method-assign]
    return seen


@FLOAT64
@pytest.mark.parametrize("name", ["qwen2", "windows"])
@pytest.mark.parametrize("verification", ["sync", "deferred"])
def test_a_rollout_plays_no_more_rows_than_the_cache_has_room_for(name: str, verification: str) -> None:
    expected = rollout(world(), CausalLMPolicy(model(name)), EPISODES)
    capped = CausalLMPolicy(model(name), PolicyConfig(max_cached_tokens=3 * 49))
    seen = most_cached(capped)
    result = rollout(world(verification=verification), capped, EPISODES)
    assert 2 * 20 < max(seen) <= 3 * 49
    for one, other in zip(expected, result, strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()
        assert one.rewards.tolist() == other.rewards.tolist()
        assert_equal_stored(other.logprobs, one.logprobs)


@FLOAT64
@pytest.mark.parametrize("name", ["qwen2", "windows"])
def test_a_plain_loop_over_more_rows_reads_others_anew_and_says_so(name: str, caplog: pytest.LogCaptureFixture) -> None:
    results = []
    for most in (None, 3 * 49):
        policy = CausalLMPolicy(model(name), PolicyConfig(max_cached_tokens=most))
        seen = most_cached(policy)
        env = world(6)
        with caplog.at_level(logging.WARNING):
            observation, _ = env.reset(seed=0, options={"problems": np.array([0, 1, 2, 3, 0, 1])})
            for _ in range(8):
                observation, *_ = env.step(policy.act(observation).tokens[:, 0])
        results.append(observation["tokens"].tolist())
        assert max(seen) <= 3 * 49 or most is None
    assert results[0] == results[1]
    said = [record.getMessage() for record in caplog.records if record.name == "agents.policies.transformers.acting"]
    assert [message.partition(";")[0] for message in said] == ["the KV cache has room for 3 rows of up to 49 tokens"]


def test_rows_that_left_make_room_for_others() -> None:
    """Two rows fill the cache; two others that come in their place are cached, not read anew at every token."""
    policy = CausalLMPolicy(model("qwen2"), PolicyConfig(max_cached_tokens=2 * 10))
    widths = forward_widths(policy)
    tokens = np.arange(40, dtype=np.int32).reshape(4, 10)
    for length in (4, 5):
        for rows in ([True, True, False, False], [False, False, True, True]):
            policy.act({"tokens": tokens, "length": np.full(4, length)}, rows=np.array(rows))
    policy.act({"tokens": tokens, "length": np.full(4, 6)}, rows=np.array([False, False, True, True]))
    assert widths == [(2, 4), (2, 4), (2, 5), (2, 5), (2, 1)]


def test_a_gpus_free_memory_is_the_limit_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and values of 2 layers, 2 heads of 8, in float32: 256 bytes for each token."""
    policy = CausalLMPolicy(model("qwen2"))
    assert policy.rows_at_once(10) is None  # on a CPU
    assert cache_bytes_per_token(policy.model.config, 4) == 256
    room = mock.Mock(return_value=35)
    monkeypatch.setattr(acting, "cacheable_tokens", room)
    policy.release_cache()
    assert (policy.rows_at_once(10), policy.rows_at_once(100)) == (3, 1)
    room.assert_called_once_with(mock.ANY, 4)


def test_without_a_cache_there_is_no_limit_but_that_of_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acting, "_PROMPT_TOKENS_AT_ONCE", 20)
    policy = CausalLMPolicy(model("qwen2"), PolicyConfig(fast=False, max_cached_tokens=1))
    assert policy.rows_at_once(10) is None
    widths = forward_widths(policy)
    tokens = np.arange(40, dtype=np.int32).reshape(4, 10)
    action = policy.act({"tokens": tokens, "length": np.full(4, 10)})
    assert action.counts.tolist() == [1, 1, 1, 1]
    assert widths == [(2, 10), (2, 10)]
