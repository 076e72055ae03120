"""`MLPPolicy`: a small network that maps an environment's vector to the logits of actions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray
from torch import Tensor

import rlvr_envs
from agents.batch import Batch
from agents.policies.torch_policy import TorchPolicy
from agents.policies.transformers.loading import ARCHITECTURE, saved_weights
from agents.rollouts.vector_adapter import with_token_info
from agents.runs.files.integrity import check_checksums
from verifiers import CheckpointError, InvalidArgumentError, unknown_name

Activation = Literal["tanh", "relu"]
_ACTIVATIONS: dict[str, type[torch.nn.Module]] = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}


class MLPPolicy(TorchPolicy):
    """A policy for environments with vectors as observations and discrete actions, such as CartPole-v1.

    The body is a multilayer perceptron; weights are orthogonal, and small in the last layer, so that the policy begins close to
    uniform (Andrychowicz et al. 2021, arXiv:2006.05990, section 3.2).

    Args:
        observation_size: Number d of numbers in a flattened observation.
        actions: Number of actions.
        hidden: Width of each hidden layer.
        activation: Function after each hidden layer: `"tanh"`, or `"relu"`, whose unbounded outputs suit action values.
        dueling: Whether the last layer is V + A - mean A, for `agents.DQN` (Wang et al. 2016, arXiv:1511.06581).
        temperature: Temperature that divides the logits in sampling and training; 0 chooses the likeliest action.
        seed: Seed of the weights, and for sampling episodes that were not announced by `begin`.

    Raises:
        InvalidArgumentError: If a size is less than 1, or the temperature is negative.
        UnknownNameError: If there is no such activation.
    """

    fast = True

    def __init__(
        self,
        observation_size: int,
        actions: int,
        *,
        hidden: Sequence[int] = (64, 64),
        activation: Activation = "tanh",
        dueling: bool = False,
        temperature: float = 1.0,
        seed: int = 0,
    ) -> None:
        if min(observation_size, actions, *hidden, 1) < 1 or not hidden:
            raise InvalidArgumentError(
                f"sizes must be at least 1, and there must be a hidden layer; got observation_size={observation_size}, "
                f"actions={actions}, hidden={tuple(hidden)}"
            )
        if activation not in _ACTIVATIONS:
            raise unknown_name("activation", activation, _ACTIVATIONS)
        self.observation_size = observation_size
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            body = mlp(observation_size, hidden, activation)
            head = Dueling(hidden[-1], actions) if dueling else _linear(hidden[-1], actions, gain=0.01)
        super().__init__(body, head, temperature=temperature, seed=seed)
        architecture: Any = {
            **{"observation_size": observation_size, "actions": actions, "hidden": list(hidden)},
            **{"activation": activation, "dueling": dueling},
        }
        self.model.architecture = architecture

    @classmethod
    def load(cls, folder: str | Path, *, temperature: float = 1.0, seed: int = 0) -> Self:
        """Load a perceptron that an agent has saved.

        Args:
            folder: A checkpoint that `Agent.save` has written.
            temperature: As for the class.
            seed: As for the class.

        Raises:
            CheckpointError: If the folder holds no perceptron, or a damaged one.
        """
        saved = Path(folder) / "model"
        path = saved / ARCHITECTURE
        if not path.is_file():
            raise CheckpointError(
                f"no multilayer perceptron at {folder}: expected a checkpoint with model/{ARCHITECTURE}"
            )
        check_checksums(Path(folder))
        policy = cls(**json.loads(path.read_text(encoding="utf-8")), temperature=temperature, seed=seed)
        policy.model.load_state_dict(saved_weights(saved, policy.model))
        return policy

    @classmethod
    def for_env(
        cls,
        env: VectorEnv[Any, Any, Any],
        *,
        hidden: Sequence[int] = (64, 64),
        activation: Activation = "tanh",
        dueling: bool = False,
        temperature: float = 1.0,
        seed: int = 0,
    ) -> Self:
        """A policy with the observation size and the number of actions of a vector environment.

        Raises:
            InvalidArgumentError: If the environment shows tokens, or has actions that are not discrete.
        """
        shown = with_token_info(env).single_observation_space.spaces.get("observation")  # type: ignore[attr-defined]
        if shown is None:
            raise InvalidArgumentError(
                "an MLPPolicy reads vectors, and this environment shows tokens: use a CausalLMPolicy, or a TorchPolicy"
            )
        actions = int(env.single_action_space.n)  # type: ignore[attr-defined] # `with_token_info` has checked this
        return cls(
            shown.shape[0],
            actions,
            hidden=hidden,
            activation=activation,
            dueling=dueling,
            temperature=temperature,
            seed=seed,
        )

    def _example(self) -> Tensor:
        return torch.zeros(1, 1, self.observation_size)

    def _last_states(self, observation: rlvr_envs.Observation, rows: NDArray[np.int64]) -> Tensor:
        vectors: Any = np.atleast_2d(observation["observation"])[rows]
        states: Tensor = self.model["body"](torch.from_numpy(vectors).to(self.device))
        return states

    def preferences(self, observation: rlvr_envs.Observation) -> NDArray[np.float32]:
        """The probabilities f32[v] of the first row's actions; at temperature 0, the logits, the highest of which is chosen."""
        with torch.no_grad():
            logits = self.model["head"](self._last_states(observation, np.array([0])))[0]
        numbers = logits if self.temperature == 0 else (logits / self.temperature).softmax(dim=-1)
        values: NDArray[np.float32] = numbers.float().cpu().numpy()
        return values

    def inputs(self, micro_batch: Batch) -> Tensor:
        """The body's inputs from some episodes: f32[b l d], the observations."""
        if micro_batch.observations is None:
            raise InvalidArgumentError(
                "an MLPPolicy learns from trajectories with observations, and these have none: they are of another environment"
            )
        return micro_batch.observations


class Dueling(torch.nn.Module):
    """A last layer for action values, composed of the state's value and advantages with mean 0: Q = V + A - mean_b A(b)."""

    def __init__(self, size: int, actions: int) -> None:
        super().__init__()
        self.value, self.advantage = _linear(size, 1, gain=0.01), _linear(size, actions, gain=0.01)

    def forward(self, states: Tensor) -> Tensor:
        """Map states f[... d] to action values f[... v]."""
        advantage = self.advantage(states)
        values: Tensor = self.value(states) + advantage - advantage.mean(dim=-1, keepdim=True)
        return values


def mlp(size: int, hidden: Sequence[int], activation: Activation) -> torch.nn.Sequential:
    """Hidden layers that map f32[... size] to f32[... hidden[-1]], with weights from torch's global generator."""
    layers: list[torch.nn.Module] = []
    for before, after in zip((size, *hidden), hidden, strict=False):
        layers += [_linear(before, after, gain=2**0.5), _ACTIVATIONS[activation]()]
    return torch.nn.Sequential(*layers)


def _linear(before: int, after: int, gain: float) -> torch.nn.Linear:
    layer = torch.nn.Linear(before, after)
    torch.nn.init.orthogonal_(layer.weight, gain)
    torch.nn.init.zeros_(layer.bias)
    return layer
