"""Episodes that went on in new contexts: each token is sampled, read and learned with what was in view before it."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.vector import VectorWrapper
from numpy.typing import NDArray
from torch import Tensor

from agents import (
    CausalLMPolicy,
    CriticConfig,
    Episode,
    PolicyConfig,
    TorchPolicy,
    Trajectory,
    VinePPO,
    VinePPOConfig,
    make_batch,
    rollout,
    tiny_model,
)
from agents.algorithms.dqn import action_values
from agents.distributed.rollouts import row_of, trajectory_of
from agents.learn import contexts
from agents.learn.batch_passes import token_logprobs
from agents.learn.critic import make_critic
from agents.learn.natural_gradient import flat_gradient, flat_parameters, mean_kl, set_flat_parameters
from agents.learn.replay import ReplayBuffer
from agents.rollouts.given import given_turns
from agents.rollouts.states import states_before
from agents.search.prefixes import Scripted, played
from rlvr_envs import ByteTokenizer, CharTokenizer, FixedActions, Reply, TokenVectorEnv, Turn
from tests.agents.agent_cases import make_agent, state_values
from tests.agents.rounding import FLOAT64, assert_equal, assert_equal_stored
from tests.envs.helpers import says, streams
from verifiers import InvalidArgumentError, Message, Problem, dialogue_of

LETTERS = CharTokenizer("abQ:")
A, B, COLON = (int(LETTERS.encode(letter)[0]) for letter in "ab:")
ONLY_LETTERS = FixedActions(np.isin(np.arange(LETTERS.vocab_size), (A, B)).astype(np.int8))


def said(text: str) -> Message:
    return Message("user", text)


def contexts_of(one: Trajectory) -> list[slice]:
    return [slice(*ends) for ends in itertools.pairwise((0, *one.contexts, len(one.tokens)))]


class Cuts:
    """Answers turns, forgets some of them, or sums them up, as a pure function of the dialogue and a seed."""

    def __init__(self, seed: int, turns: int = 5) -> None:
        self.seed = seed
        self.turns = turns

    def __call__(self, turns: Sequence[Turn], problem: Problem) -> Reply | None:
        chance = random.Random(f"{self.seed} {problem.id} {[turn.tokens.tolist() for turn in turns]}")
        if len(turns) == self.turns:
            return None
        earned = chance.random()
        match chance.randrange(3):
            case 0:
                return says(chance.choice(["", ":", "Q:Q"]), reward=earned)
            case 1:
                return Reply(reward=earned, context=(said("Q" * chance.randrange(2, 9)),))
            case _:
                kept = chance.sample(turns, chance.randrange(len(turns)) + 1)
                return Reply((said(":"),), earned, context=(said("Q"), *kept))


def world(num_envs: int, interaction: Any, **rules: Any) -> TokenVectorEnv:
    given = {"tokenizer": LETTERS, "max_inserted_tokens": 40, "max_new_tokens": 30, "turn_tokens": 3, **rules}
    return TokenVectorEnv(streams(num_envs, interaction=interaction, **given), copy=False)


class Reader(torch.nn.Module):
    """A recurrent network, whose state holds every token since its start."""

    def __init__(self, vocab_size: int, size: int = 6) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(vocab_size, size)
        self.network = torch.nn.GRU(size, size, batch_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.network(self.embedding(tokens))[0]


def reader(seed: int = 0, vocab_size: int = LETTERS.vocab_size) -> TorchPolicy:
    torch.manual_seed(seed)
    policy = TorchPolicy(Reader(vocab_size), torch.nn.Linear(6, vocab_size))
    for parameter in policy.parameters():
        parameter.data.normal_()
    return policy


def transformer(**settings: Any) -> CausalLMPolicy:
    model = tiny_model(LETTERS.vocab_size, layers=2, hidden_size=16, heads=2, intermediate_size=16, max_tokens=128)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=torch.Generator().manual_seed(parameter.numel()))
    return CausalLMPolicy(model, PolicyConfig(**settings))


def distributions(policy: Any, one: Trajectory) -> Tensor:
    """Log-probabilities [l v] of an episode's candidates, each context read by itself, as if it were all there is."""
    parts = []
    for context in contexts_of(one):
        tokens = torch.from_numpy(one.tokens[context].astype(np.int64))[None]
        masks = None
        if one.action_masks is not None:
            bits = np.unpackbits(one.action_masks[context], axis=1, count=policy.vocab_size).astype(bool)
            masks = torch.from_numpy(bits[None, 1:])
        parts += [torch.zeros(1, policy.vocab_size), policy.distributions(tokens, 1, masks)[0]]
    return torch.cat(parts)


def alone(policy: Any, one: Trajectory) -> Tensor:
    """Log-probabilities [l] of an episode's own tokens."""
    rated = distributions(policy, one).gather(1, torch.from_numpy(one.tokens.astype(np.int64))[:, None])[:, 0]
    return torch.where(torch.from_numpy(one.policy_mask), rated, 0.0)


EPISODES = [Episode(index % 5, index, 100 + index) for index in range(6)]


@FLOAT64
@pytest.mark.parametrize(
    ("seed", "rows", "late", "deep"), [(0, 1, False, False), (1, 4, True, False), (2, 4, False, True)]
)
def test_what_was_sampled_is_what_its_own_context_alone_predicts(seed: int, rows: int, late: bool, deep: bool) -> None:
    policy: Any = transformer() if deep else reader()
    env = world(rows, Cuts(seed), verification="deferred" if late else "sync")
    trajectories = rollout(env, policy, EPISODES)
    env.close()
    assert sum(len(one.contexts) for one in trajectories) >= 6
    for one in trajectories:
        assert_equal_stored(alone(policy, one).detach(), one.logprobs, size=10)
        for context in contexts_of(one)[1:]:
            assert not one.policy_mask[context.start]
    batch = make_batch(trajectories)
    assert_equal_stored(token_logprobs(policy, batch, 4), batch.logprobs, size=10)
    again = rollout(world(3, Cuts(seed)), policy, EPISODES)
    for one, other in zip(trajectories, again, strict=True):
        assert one.tokens.tolist() == other.tokens.tolist()
        assert one.policy_mask.tolist() == other.policy_mask.tolist()
        assert one.contexts == other.contexts
        assert one.rewards.tolist() == other.rewards.tolist()


class Halved(VectorWrapper[Any, Any, Any, Any, Any]):
    """Halves all rewards, those that arrive while it waits among them."""

    def step(self, actions: Any) -> Any:
        return self._halved(self.env.step(actions))

    def step_many(self, *arguments: Any) -> Any:
        return self._halved(self.env.step_many(*arguments))  # type: ignore[attr-defined] # of a TokenVectorEnv

    def wait(self, **keywords: Any) -> Any:
        return self._halved(self.env.wait(**keywords))  # type: ignore[attr-defined] # as above

    def _halved(self, stepped: Any) -> Any:
        observation, reward, *rest = stepped
        return observation, reward / 2, *rest


def test_a_wrapper_that_scales_rewards_scales_those_of_late_replies() -> None:
    policy, rewards = reader(), dict[str, list[list[float]]]()
    for verification in ("sync", "deferred"):
        env = Halved(world(3, Cuts(0), verification=verification))
        rewards[verification] = [one.rewards.tolist() for one in rollout(env, policy, EPISODES)]
        env.close()
    plain = [(one.rewards / 2).tolist() for one in rollout(world(3, Cuts(0)), policy, EPISODES)]
    for mine, late, expected in zip(rewards["sync"], rewards["deferred"], plain, strict=True):
        np.testing.assert_allclose(mine, expected)
        np.testing.assert_allclose(late, expected)


def test_an_episode_has_all_of_its_tokens_in_order() -> None:
    def interaction(turns: Sequence[Turn], problem: Problem) -> Reply | None:
        if len(turns) == 3:
            return None
        return Reply(reward=len(turns), context=(said("Q:" + turns[-1].text),))

    env = world(2, interaction, max_new_tokens=20)
    (one,) = rollout(env, Scripted({7: [A, A, B, B, A, A, B, B, B]}), [Episode(1, 0, 7)])
    assert LETTERS_TEXT(one.tokens) == "QQ" + "aab" + "Q:aab" + "baa" + "Q:baa" + "bbb"
    assert (one.prompt_length, one.contexts, one.terminated) == (2, (5, 13), True)
    assert np.flatnonzero(one.policy_mask).tolist() == [2, 3, 4, 10, 11, 12, 18, 19, 20]
    assert one.rewards[[4, 12, 20]].tolist() == [1.0, 2.0, 3.0]  # the verifier counts three b in the last turn
    assert one.score == 6.0
    (short,) = rollout(world(1, lambda *_: None), Scripted({7: [A] * 3}), [Episode(0, 1, 7)])
    batch: Any = make_batch([one, short])
    assert batch.contexts[0, : len(one.tokens)].tolist() == [0] * 5 + [1] * 8 + [2] * 8
    assert not batch.contexts[1].any()


def test_a_demonstration_is_the_episode_that_its_turns_make() -> None:
    def legal(tokens: NDArray[np.int32], prompt_length: int) -> NDArray[np.int8]:
        return np.eye(LETTERS.vocab_size, dtype=np.int8)[[0, (A, B)[(len(tokens) - prompt_length) % 2]]].max(axis=0)

    def interaction(turns: Sequence[Turn], problem: Problem) -> Reply | None:
        return Reply(context=(said("Q" + turns[-1].text),)) if len(turns) < 3 else None

    env = world(1, interaction, turn_tokens=None, legal_actions=legal, max_new_tokens=20)
    (one,) = rollout(env, Scripted({7: [A, B, 0, A, 0, A, B, 0]}), [Episode(1, 1, 7)])
    shown: Any = given_turns(env.streams, 1, ["ab", "a", "ab"])
    assert LETTERS_TEXT(shown.tokens) == "QQab" + "Qab" + "a" + "Qa" + "ab"
    for name in ("tokens", "policy_mask", "contexts", "prompt_length", "group"):
        np.testing.assert_array_equal(getattr(shown, name), getattr(one, name))
    masks = (np.unpackbits(mask.action_masks[one.policy_mask], axis=1, count=5) for mask in (shown, one))
    np.testing.assert_array_equal(*masks)


def LETTERS_TEXT(tokens: NDArray[np.int32]) -> str:
    return b"".join(LETTERS.token_bytes(int(token)) for token in tokens).decode()


@pytest.mark.parametrize("kind", ["table", "transformer"])
def test_no_context_draws_the_random_numbers_of_another(kind: str) -> None:
    """Under a uniform policy equal numbers would be equal tokens; 12 of 256 kinds are not equal by chance."""
    policy: Any
    if kind == "table":
        policy = TorchPolicy(torch.nn.Embedding(257, 2), torch.nn.Linear(2, 257))
        torch.nn.init.zeros_(policy.model["head"].weight)
        torch.nn.init.zeros_(policy.model["head"].bias)
    else:
        policy = CausalLMPolicy(tiny_model(257, layers=1, hidden_size=8, heads=1, intermediate_size=8))
        torch.nn.init.zeros_(policy.model.get_output_embeddings().weight)
    env = world(
        2,
        lambda turns, problem: Reply(context=(said("Q"),)) if len(turns) < 3 else None,
        tokenizer=ByteTokenizer(),
        turn_tokens=12,
        max_new_tokens=36,
        legal_actions=FixedActions((np.arange(257) < 256).astype(np.int8)),
    )
    for one in rollout(env, policy, [Episode(0, 0, 1), Episode(0, 0, 2)]):
        drawn = [one.tokens[context][1:].tolist() for context in contexts_of(one)]
        assert len({tuple(tokens) for tokens in drawn}) == 3


@FLOAT64
@pytest.mark.parametrize("kind", ["head", "separate"])
def test_values_and_entropies_are_those_of_contexts_read_one_by_one(kind: Any) -> None:
    policy = transformer()
    critic = make_critic(policy, CriticConfig(kind))
    torch.nn.init.normal_(critic.layer.weight, generator=torch.Generator().manual_seed(0))
    trajectories = rollout(world(4, Cuts(0)), policy, EPISODES)
    batch = make_batch(trajectories)
    outputs: Any = contexts.read(policy, batch, with_states=True)
    assert outputs.states.requires_grad
    values, last = state_values(policy, critic, batch, 4)
    for row, one in enumerate(trajectories):
        own = torch.from_numpy(np.flatnonzero(one.policy_mask))
        logprobs = distributions(policy, one)[own]
        assert_equal(outputs.entropy[row, own - batch.first], -(logprobs.exp() * logprobs).sum(-1))
        tokens = [torch.from_numpy(one.tokens[context].astype(np.int64))[None] for context in contexts_of(one)]
        states = torch.cat([policy.model.base_model(input_ids=ids).last_hidden_state[0] for ids in tokens])
        assert_equal(outputs.states[row, own - batch.first], states[own - 1])
        assert_equal(values[row, own], critic.layer(states[own - 1])[:, 0])
        assert_equal(last[row], critic.layer(states[-1])[0])


def told(turns: Sequence[Turn], problem: Problem) -> Reply | None:
    """Two contexts: the second shows nothing but whether the two tokens before were the same."""
    if len(turns) == 3:
        return None
    if len(turns) == 1:
        return Reply()
    return Reply(reward=0.25, context=(said("Q:" if turns[0].text == turns[1].text else "Q"),))


def paid(completion: str, problem: Problem) -> float:
    first, second, last = (message.content for message in dialogue_of(completion))
    return 2.0 * ((first == second) == (last == "a")) + (first == "a") + 0.5 * (last == "b")


def two_contexts() -> tuple[Any, list[Trajectory]]:
    """A policy, and all eight episodes of three letters."""
    env = world(1, told, legal_actions=ONLY_LETTERS, turn_tokens=1, max_new_tokens=3, verifier=paid_verifier())
    policy = reader()
    every = [played(env, Episode(0, 0, 1), tokens) for tokens in itertools.product((A, B), repeat=3)]
    assert {one.contexts for one in every} == {(3,)}
    return policy, [
        dataclasses.replace(one, logprobs=alone(policy, one).detach().numpy().astype(np.float32)) for one in every
    ]


def paid_verifier() -> Any:
    import verifiers

    return verifiers.from_function(paid)


@FLOAT64
@pytest.mark.parametrize("name", ["ppo", "rloo"])
def test_the_expected_gradient_is_that_of_the_expected_return(name: str) -> None:
    """By enumeration of all episodes, or pairs of them, in a decision process that forgets what was in its first context."""
    policy, every = two_contexts()
    chances = torch.stack([alone(policy, one).sum().exp() for one in every])
    assert_equal(chances.sum().detach(), 1.0)
    (chances * torch.tensor([one.score for one in every])).sum().backward()
    exact = flat_gradient(policy)
    size = 2 if name == "rloo" else 1
    settings = {"gae_lambda": 1.0, "whiten": False, "aggregation": "sequence-mean-token-sum"} if size == 1 else {}
    made: Any = make_agent(
        name, policy, problems_per_step=1, group_size=size, learner={"skip_zero_advantages": False}, **settings
    )
    if made.models.critic is not None:
        torch.nn.init.normal_(made.models.critic.layer.weight, generator=torch.Generator().manual_seed(0))
    total = torch.zeros_like(exact)
    for drawn in itertools.product(range(len(every)), repeat=size):
        batch, advantages = made.compute_advantages([dataclasses.replace(every[index], group=0) for index in drawn])
        made.learner.backward(dataclasses.replace(batch, value_targets=None), advantages, made.updating.loss())
        total -= chances[list(drawn)].prod().detach() * flat_gradient(policy)
    # Ratios are relative to log-probabilities that are stored in float32.
    assert_equal_stored(total, exact, size=100)


@FLOAT64
def test_the_mean_kl_of_a_trust_region_is_over_what_was_in_view() -> None:
    policy, every = two_contexts()
    old = flat_parameters(policy)
    before = [distributions(policy, one)[one.policy_mask].detach() for one in every]
    set_flat_parameters(policy, old + 0.1 * torch.randn(len(old), generator=torch.Generator().manual_seed(0)))
    after = [distributions(policy, one)[one.policy_mask].detach() for one in every]
    kl = [(p.exp() * (p - q).nan_to_num()).sum(-1) for p, q in zip(before, after, strict=True)]
    assert_equal(mean_kl(policy, make_batch(every), old, 3), torch.cat(kl).mean())


@FLOAT64
@pytest.mark.parametrize("kind", ["reader", "transformer"])
def test_a_transition_over_a_cut_leads_to_the_state_of_the_new_context(kind: str) -> None:
    policy: Any = reader() if kind == "reader" else transformer()
    env = world(1, told, turn_tokens=1, max_new_tokens=3)
    one = played(env, Episode(1, 0, 1), [A, A, B])
    buffer = ReplayBuffer(8, LETTERS.vocab_size)
    buffer.add([one], bootstraps=False)
    batch, _ = buffer.sample(np.array([0, 1, 2, 1]))
    before, after = action_values(policy, batch)
    seen = ["QQ", "QQa", "Q:", "QQa"], ["QQa", "Q:", "Q:b", "Q:"]
    for values, texts in zip((before, after), seen, strict=True):
        for value, text in zip(values, texts, strict=True):
            plain = torch.from_numpy(LETTERS.encode(text).astype(np.int64))[None]
            padded = torch.cat([plain, torch.zeros(1, 1, dtype=torch.int64)], dim=1)
            assert_equal(value.log_softmax(0).detach(), policy.distributions(padded, plain.shape[1])[0, 0].detach())
    short = played(env, Episode(1, 0, 1), [A, B, B])
    with pytest.raises(InvalidArgumentError, match="has a context of one token, whose state"):
        buffer.add([short], bootstraps=False)


def test_another_rank_knows_where_contexts_begin() -> None:
    (one,) = rollout(world(1, Cuts(3)), reader(), EPISODES[:1])
    other = trajectory_of(row_of(one))
    assert (other.contexts, other.policy_mask.tolist()) == (one.contexts, one.policy_mask.tolist())
    assert make_batch([one, other]).here is not None


@FLOAT64
def test_without_a_cut_nothing_is_split() -> None:
    policy, env = reader(), world(4, lambda turns, problem: says(":") if len(turns) < 3 else None)
    trajectories = rollout(env, policy, EPISODES)
    batch = make_batch(trajectories)
    assert (batch.contexts, contexts.split(batch)) == (None, None)
    assert all(one.contexts == () for one in trajectories)
    assert_equal_stored(token_logprobs(policy, batch, 4), batch.logprobs, size=10)


@FLOAT64
def test_states_of_every_context_are_found_again() -> None:
    policy = reader()
    env = world(3, Cuts(1))
    trajectories = [one for one in rollout(env, policy, EPISODES) if one.contexts]
    assert len(trajectories) > 2
    positions = [np.flatnonzero(one.policy_mask).tolist() for one in trajectories]
    found = states_before(env, list(zip(trajectories, positions, strict=True)))
    for one, own, states in zip(trajectories, positions, found, strict=True):
        for position, state in zip(own, states, strict=True):
            assert state.tokens.tolist() == one.tokens[one.context_before(position) : position].tolist()
        last = states[-1]
        (again,) = rollout(env, Scripted({5: one.tokens[own[-1] :]}), [Episode(one.problem, 0, 5, state=last)])
        assert again.tokens.tolist() == one.tokens[one.context_before(own[-1]) :].tolist()
        assert again.score == one.rewards[own[-1] :].sum()


def test_vineppo_values_states_of_every_context() -> None:
    """Each turn is paid for, whatever it says, so that a state is worth what the turns from there on earn."""

    def pay(turns: Sequence[Turn], problem: Problem) -> Reply | None:
        if len(turns) == 4:
            return Reply(reward=8.0, ends=True)
        return Reply(reward=2.0 ** (len(turns) - 1), context=(said("Q"),) if len(turns) % 2 else None)

    env = world(4, pay, verifier=None, turn_tokens=2, max_new_tokens=30, legal_actions=ONLY_LETTERS)
    config = VinePPOConfig(problems_per_step=2, group_size=2, minibatches=1, max_step_tokens=1, episodes_per_state=2)
    trajectories, _ = VinePPO(reader(), config).collect(env, 0)
    one: Any
    for one in trajectories:
        own = one.policy_mask
        assert one.contexts == (one.prompt_length + 2, one.prompt_length + 7)
        assert one.step_values[own].tolist() == [15.0, 15.0, 14.0, 14.0, 12.0, 12.0, 8.0, 8.0]
