"""Which device models are on, and that nothing of theirs stays behind: agents on a simulated GPU do what they do on the CPU."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import gymnasium
import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from agents import (
    GRPO,
    CausalLMPolicy,
    GRPOConfig,
    LearnerConfig,
    MLPPolicy,
    PolicyConfig,
    PreferencePair,
    RewardModelConfig,
    VLLMConfig,
    VLLMPolicy,
    add_lora,
    evaluate,
    load_policy,
    make_batch,
    new_reward_model,
    rollout,
    save_model,
    tiny_model,
    train_reward_model,
)
from agents.algorithms.a2c import A2C, A2CConfig
from agents.distributed import processes
from agents.experiments.supervised import SupervisedConfig, train_supervised
from agents.learn.batch_passes import token_logprobs
from agents.learn.random_state import random_state, set_random_state
from agents.policies import devices
from agents.policies.transformers.memory import cacheable_tokens
from agents.rollouts.problem_order import episodes_of_step
from agents.runs.files.hardware import hardware
from agents.search import Beam
from rlvr_envs import CharTokenizer
from tests.agents.agent_cases import (
    all_weights,
    make_agent,
    playing_policy,
    some_batch,
    sort_env,
    timeless,
)
from tests.agents.corridor import corridor
from tests.agents.rounding import FLOAT64
from tests.agents.trajectories import tiny_policy
from tests.commands import Command
from tests.simulated_device import simulated_device
from tests.vllm.doubles import TorchEngine
from verifiers import InvalidArgumentError, Problem, UnknownNameError
from verifiers.devices import VARIABLE, available_devices, choose_device, named_device, using_device

DEVICES = ("cuda", "mps")
"""That with all types of numbers, and that without float64."""


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are the same on a machine with a GPU, and where the variable is set."""
    monkeypatch.delenv(VARIABLE, raising=False)
    for name in ("cuda", "xpu", "mps"):
        monkeypatch.setattr(torch.get_device_module(name), "is_available", lambda: False)


def on_both(work: Callable[[str], Any], name: str = "cuda") -> tuple[Any, Any]:
    """What some work gives on the CPU, and what it gives on the device."""
    expected = work("cpu")
    with simulated_device(name):
        return expected, tree_map(on_host, work(name))


def on_host(value: Any) -> Any:
    return value.detach().cpu() if isinstance(value, Tensor) else value


def assert_same(expected: Any, actual: Any, atol: float = 0.0) -> None:
    """Check tensors, arrays and numbers for equality, to the last bit unless a tolerance is given; NaN equals NaN."""
    if isinstance(expected, Mapping):
        assert expected.keys() == actual.keys()
        expected, actual = list(expected.values()), list(actual.values())
    if isinstance(expected, list | tuple):
        assert len(expected) == len(actual)
        for one, other in zip(expected, actual, strict=True):
            assert_same(one, other, atol)
        return
    np.testing.assert_allclose(on_host(actual), on_host(expected), rtol=0, atol=atol)


def moved_policy(device: str, policy: CausalLMPolicy, **settings: Any) -> CausalLMPolicy:
    return CausalLMPolicy(policy.model.to(device), PolicyConfig(**settings))


CUT_OFF = {"temperature": 0.8, "top_p": 0.9, "top_k": 12, "min_p": 0.01}


@pytest.mark.parametrize(
    ("legal", "name", "settings"),
    [
        (False, "cuda", {}),
        (False, "cuda", CUT_OFF),
        (False, "cuda", {"temperature": 0.0}),
        (False, "cuda", {"max_cached_tokens": 40}),
        (False, "cuda", {"fast": False}),
        *((True, name, CUT_OFF) for name in DEVICES),
    ],
)
def test_sampling_chooses_the_same_tokens(legal: bool, name: str, settings: dict[str, Any]) -> None:
    def work(device: str) -> list[Any]:
        env = corridor(4) if legal else sort_env("grpo")
        played = rollout(env, moved_policy(device, playing_policy(env), **settings), episodes_of_step(env, 0, 2, 4, 0))
        return [(one.tokens, one.logprobs) for one in played]

    assert_same(*on_both(work, name))


@functools.cache
def played_trajectories() -> list[Any]:
    return some_batch(tiny_policy())


def placed(agent: Any, device: str) -> Any:
    """Check that all weights are on the device, and return the agent."""
    models = [agent.policy.model, *([] if agent.models.critic is None else [agent.models.critic])]
    assert {weight.device.type for model in models for weight in model.parameters()} == {device}
    return agent


def learned(case: str, device: str, *, lora: bool = False, **settings: Any) -> list[Any]:
    """The metrics of an agent's two updates, the log-probabilities of its tokens, and its weights after them."""
    model = tiny_policy().model.to(device)
    policy = CausalLMPolicy(add_lora(model, rank=2, seed=3) if lora else model, PolicyConfig(**settings))
    agent = placed(make_agent(case, policy, learner={"micro_batch_size": 12}), device)
    for group in agent.learner.optimizer.param_groups:
        group["fused"] = False  # a kernel that only the CPU has, which rounds otherwise
    metrics = [timeless(agent.update(played_trajectories())) for _ in range(2)]
    return [metrics, token_logprobs(policy, make_batch(played_trajectories()), 4), all_weights(agent)]


USUAL = ("reinforce/value", "grpo/kl", "dapo/overlong", "ppo/separate", "a2c/n-step", "dpo")
"""Together these cases have a critic, a reference, pairs, and every kind of advantages."""


@pytest.mark.parametrize(
    ("case", "name", "settings"),
    [
        *((case, "cuda", {}) for case in USUAL),
        *((case, "mps", {}) for case in ("grpo/kl", "ppo/separate", "dpo")),
        *(("grpo/kl", "cuda", one) for one in ({"fast": False}, {"checkpointing": "on"}, {"temperature": 0.7})),
        ("grpo/kl", "cuda", {"lora": True}),
    ],
)
def test_every_agent_learns_the_same(case: str, name: str, settings: dict[str, Any]) -> None:
    if "lora" in settings:
        pytest.importorskip("peft")
    assert_same(*on_both(lambda device: learned(case, device, **settings), name))


@pytest.mark.parametrize("case", ["grpo/kl", "vineppo"])
def test_a_step_from_playing_to_the_weights_is_the_same(case: str) -> None:
    def work(device: str) -> list[Any]:
        env = sort_env("grpo")
        agent = make_agent(case, moved_policy(device, playing_policy(env)), problems_per_step=2)
        agent.learn(env, steps=1)
        return list(agent.policy.parameters())

    assert_same(*on_both(work), atol=1e-6)


@FLOAT64
@pytest.mark.parametrize("adapter", [False, True])
def test_weights_reach_an_engine_and_steps_of_its_samples_are_the_same(adapter: bool) -> None:
    if adapter:
        pytest.importorskip("peft")

    def work(device: str) -> tuple[list[float], list[Any]]:
        env, differences = sort_env("grpo"), list[float]()
        model = playing_policy(env).model
        engine = TorchEngine(model)  # on the CPU
        policy = CausalLMPolicy((add_lora(model, rank=2, alpha=4, seed=0) if adapter else model).to(device))
        config = VLLMConfig(weight_transfer="shared-memory")
        settings = GRPOConfig(problems_per_step=2, group_size=4, learner=LearnerConfig(learning_rate=1e-2))
        agent = GRPO(policy, settings, sampler=VLLMPolicy.for_env(policy, env, config, engine=engine))
        probe = "sampling/probe_difference"
        agent.learn(env, steps=2, callbacks=[lambda _, metrics: differences.append(metrics[probe])])
        assert engine.reported.count("load") == 2
        return differences, list(policy.parameters())

    (expected, weights), (differences, others) = on_both(work)
    assert max(*expected, *differences) < 1e-5
    assert_same(weights, others, atol=1e-6)


def supervised(device: str) -> list[float]:
    env, losses = sort_env("grpo"), list[float]()
    config = SupervisedConfig(steps=2, batch_size=4, learner=LearnerConfig(learning_rate=1e-3))
    policy = moved_policy(device, playing_policy(env))
    train_supervised(policy, env.streams, config, on_step=lambda step, loss: losses.append(loss))
    return losses


def multilayer_perceptron(device: str) -> Any:
    autoreset = {"autoreset_mode": "Disabled"}
    env = gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="sync", vector_kwargs=autoreset)
    policy = MLPPolicy.for_env(env, hidden=(8,))
    policy.model.to(device)
    agent = placed(A2C(policy, A2CConfig.for_control(problems_per_step=2).for_model(policy.model)), device)
    agent.learn(env, steps=1)
    return all_weights(agent)


def reward_model(device: str) -> list[Any]:
    made, losses = new_reward_model("tiny", device=device), list[float]()
    assert made.model.device.type == device
    before = [verdict.score for verdict in made.verifier().verify_batch(["1", "4"], [Problem("p", "1=", None)] * 2)]
    pairs = [PreferencePair(f"{n}=", chosen, str(n + 1)) for n, chosen in ((1, "1"), (2, "2"), (3, "33"))]
    config = RewardModelConfig(epochs=1, batch_size=3, learner=LearnerConfig(learning_rate=1e-3))
    train_reward_model(made, pairs, config, on_step=lambda step, loss: losses.append(loss))
    return [before, losses]


def evaluated(device: str, search: Any = None) -> Any:
    env = sort_env("grpo")
    return evaluate(env, moved_policy(device, playing_policy(env)), problems=3, search=search).score


@pytest.mark.parametrize(
    ("work", "name"),
    [
        *((work, name) for work in (supervised, multilayer_perceptron, reward_model) for name in DEVICES),
        (evaluated, "cuda"),
        (functools.partial(evaluated, search=Beam(width=2)), "cuda"),
    ],
)
def test_other_learning_and_evaluations_are_the_same(work: Callable[[str], Any], name: str) -> None:
    assert_same(*on_both(work, name), atol=1e-6)


@pytest.mark.parametrize(
    ("case", "lora", "first", "second"),
    [("ppo/separate", False, "cuda", "cpu"), ("grpo/kl", True, "cpu", "cuda")],
)
def test_a_checkpoint_goes_on_on_another_device(case: str, lora: bool, first: str, second: str, tmp_path: Path) -> None:
    if lora:
        pytest.importorskip("peft")

    def agent_on(device: str) -> Any:
        model = tiny_policy().model.to(device)
        return make_agent(case, CausalLMPolicy(add_lora(model, rank=2) if lora else model))

    weights = []
    for device in (first, second):
        with simulated_device() if device == "cuda" else contextlib.nullcontext():
            agent = agent_on(device)
            if device == first:
                agent.update(played_trajectories())
                agent.save(tmp_path / "saved")
            else:
                agent.load(tmp_path / "saved")
            agent.update(played_trajectories())
            weights.append(on_host(all_weights(agent)))
    assert_same(*weights, atol=1e-6)


def test_the_states_of_generators_are_kept() -> None:
    with simulated_device():
        torch.cuda.set_rng_state(torch.arange(16, dtype=torch.uint8))
        state = random_state()
        torch.cuda.set_rng_state(torch.zeros(16, dtype=torch.uint8))
        set_random_state(state)
        assert torch.equal(torch.cuda.get_rng_state(), torch.arange(16, dtype=torch.uint8))
    earlier = {name: value for name, value in state.items() if name not in ("xpu", "mps")}
    set_random_state(earlier)  # of an earlier version


@pytest.mark.parametrize(("name", "precision"), [("cuda", "bfloat16"), ("xpu", "bfloat16"), ("mps", "float32")])
def test_memory_name_and_precision_of_each_device(name: str, precision: str) -> None:
    model, module = tiny_policy().model, torch.get_device_module(name)
    with simulated_device(name), mock.patch("torch.backends.mps.get_name", return_value="simulated mps"):
        assert hardware()["gpus"] == [f"simulated {name}"]
        rows = cacheable_tokens(model.to(name), 4)
        assert rows is not None
        assert rows > 0
        with mock.patch.object(module, "is_bf16_supported", return_value=True, create=True):
            assert CausalLMPolicy(model).precision == precision
    assert hardware()["gpus"] == []


@pytest.mark.parametrize(
    ("capabilities", "weights", "precision"),
    [
        ({"avx512_bf16": True}, 10**8, "bfloat16"),
        ({"amx_bf16": True}, 10**8, "bfloat16"),
        ({"avx512_bf16": True}, 10**7, "float32"),
        ({"avx512_bf16": False, "avx512_f": True}, 10**8, "float32"),
    ],
)
def test_precision_on_a_cpu_follows_instructions_and_size(
    capabilities: dict[str, bool], weights: int, precision: str
) -> None:
    model = tiny_policy().model
    with (
        mock.patch.object(torch.cpu, "get_capabilities", return_value=capabilities),
        mock.patch.object(model, "num_parameters", return_value=weights),
    ):
        assert CausalLMPolicy(model).precision == precision
        assert CausalLMPolicy(model, PolicyConfig(precision="float32")).precision == "float32"


# Choosing


def test_auto_is_the_first_that_is_available() -> None:
    assert (choose_device(), choose_device("auto"), named_device()) == (torch.device("cpu"), torch.device("cpu"), None)
    with simulated_device("mps"):
        assert choose_device() == torch.device("mps")
        with simulated_device("cuda"):
            assert available_devices() == ("cuda", "mps", "cpu")
            for name, place in {"auto": "cuda", "mps": "mps", "cuda:0": "cuda:0", "cpu": "cpu"}.items():
                assert choose_device(name) == torch.device(place)


def test_the_variable_names_the_device_of_those_that_name_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with simulated_device():
        with using_device("cpu"):
            assert (choose_device(), choose_device("cuda")) == (torch.device("cpu"), torch.device("cuda"))
            assert devices.perceptron_device() == torch.device("cpu")
        assert devices.perceptron_device() == torch.device("cpu")
        monkeypatch.setenv(VARIABLE, "cuda:0")
        with using_device("auto"):
            assert choose_device() == choose_device("auto") == devices.perceptron_device() == torch.device("cuda", 0)


@pytest.mark.parametrize(
    ("device", "error", "message"),
    [
        ("gpu", UnknownNameError, "unknown device 'gpu'"),
        ("cuda:x", UnknownNameError, "unknown device 'cuda:x'"),
        (3, UnknownNameError, "unknown device 3"),
        ("cuda", InvalidArgumentError, r"device='cuda': .* CUDA; available here: cpu$"),
        ("xpu:1", InvalidArgumentError, r"device='xpu:1': .* XPU; available here: cpu$"),
        ("cpu:1", InvalidArgumentError, "device='cpu:1': torch finds only cpu:0 here"),
        (torch.device("cuda"), InvalidArgumentError, "available here: cpu$"),
    ],
)
def test_a_device_that_is_not_here_is_refused(device: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        choose_device(device)


def test_the_reason_depends_on_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.version, "hip", None)
    with pytest.raises(InvalidArgumentError, match="this build of torch has no CUDA"):
        choose_device("cuda")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    with pytest.raises(InvalidArgumentError, match="torch finds no device of CUDA"):
        choose_device("cuda")


def test_a_device_is_checked_before_a_model_is_looked_for_and_models_of_python_are_loaded_to_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="available here"):
        load_policy("no/such/model", device="cuda")
    model = tiny_model(8, layers=1, hidden_size=8, heads=1, intermediate_size=8)
    save_model(tmp_path / "model", model, CharTokenizer("abcdefg"))
    with simulated_device():
        assert load_policy(tmp_path / "model")[0].device.type == "cuda"
        assert load_policy(tmp_path / "model", device="cpu")[0].device.type == "cpu"


@pytest.mark.parametrize(("name", "place", "own"), [("cuda", "cuda:0", "cuda"), ("mps", "mps", "cpu")])
def test_each_of_several_processes_has_a_device_of_its_own(name: str, place: str, own: str) -> None:
    with mock.patch.object(devices, "active_ranks", return_value=mock.Mock(size=2)), simulated_device(name):
        assert devices.policy_device() == torch.device(own)
        with pytest.raises(InvalidArgumentError, match=f"'{place}' is one device, and there are 2 processes"):
            devices.policy_device(place)


@pytest.mark.parametrize(("name", "library"), [("cuda", "nccl"), ("xpu", "xccl")])
def test_backends_of_several_processes(name: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert processes._backends(1, None) == processes._backends(1, "cuda") == "gloo"
    module = torch.get_device_module(name)
    with simulated_device(name), mock.patch.object(module, "set_device") as used:
        assert processes._backends(1, "auto") == f"cpu:gloo,{name}:gloo", "two ranks share one"
        with mock.patch.object(module, "device_count", return_value=2):
            for device in ("auto", name):
                assert processes._backends(1, device) == f"cpu:gloo,{name}:{library}"
        assert used.call_args_list[-1] == mock.call(1)
        used.reset_mock()
        assert processes._backends(1, "cpu") == processes._backends(1, "gpu") == "gloo"
        used.assert_not_called()


def test_a_run_on_the_device_is_recorded_and_goes_on_on_the_cpu(tmp_path: Path, rlvr: Command) -> None:
    env = sort_env("grpo")
    save_model(tmp_path / "model", playing_policy(env).model, env.streams.rules.tokenizer)
    folder = tmp_path / "run"
    command = ["train", "grpo", "--env=Sort", f"--model={tmp_path / 'model'}", "--env-args", "max_new_tokens=2"]
    command += ["--problems-per-step=1", "--group-size=2", f"--run-folder={folder}", "--loggers", "--keep=1"]
    with simulated_device():
        _, output, _ = rlvr(*command, "--steps=1", "--device=cuda")
    assert "computing on cuda:0 (simulated cuda); set --device to change it" in output
    assert json.loads((folder / "config.json").read_text())["device"] == "cuda"
    code, output, _ = rlvr(*command, "--steps=2", "--device=cpu", "--resume")
    assert (code, "continuing after step 1" in output, "computing on" in output) == (0, True, False)
