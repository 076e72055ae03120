"""DQN: deep Q-networks (Mnih et al. 2015, "Human-level control through deep reinforcement learning", algorithm 1).

Q-learning with a network. The outputs of a policy's last layer are read as action values Q(s, a). The policy acts ε-greedily by
these values, and its transitions go into a replay buffer. Each update draws transitions (s, a, r, s') from the buffer and moves
Q(s, a) towards

    y = r + γ max_b Q'(s', b),   or y = r if the episode ended

by a step on the Huber loss of Q(s, a) - y. This loss is quadratic near 0 and has a slope of at most 1, which is the paper's
error clipping. Q' is the target network, a copy of Q that is renewed only every `target_every` updates, so that targets stay
fixed while Q is fitted to them. Thanks to the buffer, transitions of one batch are nearly independent.

* `double`: y = r + γ Q'(s', argmax_b Q(s', b)). One network chooses the action and the other evaluates it, which reduces the
  overestimation of values (van Hasselt, Guez and Silver 2016, arXiv:1509.06461).
* Dueling (Wang et al. 2016, arXiv:1511.06581): Q = V(s) + A(s, a) - mean_b A(s, b). The network computes this sum; see
  `MLPPolicy(dueling=True)`.

A `transformers` model reads the prefix of tokens as the state, and an `MLPPolicy` reads the environment's vector. If the
environment limits tokens, maxima are over the legal tokens.

Departures from the paper: whole episodes are played between updates, but the number of updates is one for every
`tokens_per_update` tokens, as if acting and learning alternated. Adam replaces RMSprop. There are no stacked frames, and losing
a life does not end an episode. A truncated episode ends with its last reward. With `truncation="bootstrap"`, for time limits
that aren't part of the task, the value of the last state is added.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from gymnasium.vector import VectorEnv

from agents import learn, policies
from agents.batch import Batch
from agents.deferred import torch
from agents.learn.agent import Agent
from agents.learn.algorithm import Plays
from agents.learn.metrics import merge
from agents.policies.epsilon_greedy import EpsilonGreedyPolicy
from agents.policies.trainable import TrainablePolicy
from agents.runs.evaluation import Evaluation
from agents.runs.evaluation_record import EvaluationRecord
from agents.seeding import episode_seeds
from agents.settings.agent import AgentConfig
from agents.settings.config_checks import require_defaults, require_on_policy, require_one_step
from agents.settings.learner import LearnerConfig
from agents.truncation import Truncation
from agents.types import Sampler, Trajectory
from verifiers import Above, AtLeast, Between, InvalidArgumentError

if TYPE_CHECKING:
    from torch import Tensor


_NO_POLICY_GRADIENT = "dqn learns action values from a buffer, and has no policy gradient"


@dataclass(frozen=True)
class DQNConfig(AgentConfig):
    """Settings of DQN. Settings of `AgentConfig` for policy gradients must keep their defaults."""

    problems_per_step: int = 16
    group_size: int = 1
    gamma: Annotated[float, Between(0, 1)] = 1.0
    """Discount factor from one token to the next."""
    double: bool = False
    """Whether the online network chooses the next action that the target network evaluates (double DQN)."""
    buffer_size: Annotated[int, AtLeast(1)] = 50_000
    """Number of transitions in the replay buffer. When the buffer is full, the oldest transitions are dropped."""
    learn_from: Annotated[int, AtLeast(1)] = 500
    """Number of transitions in the buffer before the first update."""
    batch_size: Annotated[int, AtLeast(1)] = 64
    """Number of transitions in one update."""
    tokens_per_update: Annotated[float, Above(0)] = 4.0
    """Number of sampled tokens for each update; the paper uses 4."""
    target_every: Annotated[int, AtLeast(1)] = 100
    """Number of updates between two copies of the network to the target network."""
    epsilon: Annotated[float, Between(0, 1)] = 1.0
    """Probability of exploring at the start, by a token drawn uniformly."""
    epsilon_end: Annotated[float, Between(0, 1)] = 0.05
    """Probability of exploring after `epsilon_tokens` tokens; it falls linearly until then."""
    epsilon_tokens: Annotated[int, AtLeast(1)] = 10_000
    """Number of sampled tokens over which the probability of exploring falls."""
    control: ClassVar[Mapping[str, Any]] = {
        "problems_per_step": 1,
        "gamma": 0.99,
        "truncation": "bootstrap",
        "double": True,
        "buffer_size": 100_000,
        "learn_from": 1000,
        "tokens_per_update": 2.0,
        "target_every": 128,
        "epsilon_end": 0.04,
        "epsilon_tokens": 8000,
        "learner": LearnerConfig(learning_rate=2.3e-3, max_grad_norm=10.0),
    }
    """The settings of RL Baselines3 Zoo for CartPole-v1, but with one episode between updates instead of 256 steps."""
    learns_values: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.learn_from > self.buffer_size:
            raise InvalidArgumentError(
                f"learn_from must be at most buffer_size={self.buffer_size}, got {self.learn_from}"
            )
        if self.truncation not in (Truncation.SCORE, Truncation.BOOTSTRAP):
            raise InvalidArgumentError(
                f"dqn has the truncation rules 'score' and 'bootstrap', got {self.truncation.value!r}"
            )
        if self.critic is not None:
            raise InvalidArgumentError("dqn has no critic, since its policy computes the values: leave critic out")
        require_one_step(self, _NO_POLICY_GRADIENT)
        require_on_policy(self, "dqn samples with its current weights")
        others = (
            "aggregation",
            "kl_coefficient",
            "kl_coefficient_end",
            "entropy_coefficient",
            "entropy_coefficient_end",
        )
        require_defaults(self, others, _NO_POLICY_GRADIENT)


class DQN(Agent):
    """Q-learning with a network, a replay buffer and a target network."""

    name = "dqn"
    config: DQNConfig

    def __init__(self, policy: TrainablePolicy, config: DQNConfig, *, sampler: Sampler | None = None) -> None:
        super().__init__(policy, config, sampler=sampler)
        if self.sampler is not policy or self.ranks.size > 1:
            raise InvalidArgumentError(
                "dqn samples with its own policy, in one process: leave out other engines and ranks"
            )
        self.target = policy.with_model(copy.deepcopy(policy.model).requires_grad_(False))
        """The target network, as a policy."""
        self.buffer = learn.ReplayBuffer(config.buffer_size, policy.vocab_size)
        self.updates = 0
        """Number of updates so far."""

    # Acting

    def epsilon(self) -> float:
        """The current probability of exploring."""
        share = min(1.0, self.tokens / self.config.epsilon_tokens)
        return (1 - share) * self.config.epsilon + share * self.config.epsilon_end

    def sample_batch(
        self, sampling: Plays, env: VectorEnv[Any, Any, Any], first_round: int
    ) -> tuple[list[Trajectory], int]:
        """Play the episodes of one step ε-greedily."""
        acting = EpsilonGreedyPolicy(self.policy.at_temperature(0.0), self.policy.vocab_size, self.epsilon())
        return sampling.play(env, sampling.episodes(env, first_round), acting), 1

    def evaluate(
        self,
        env: VectorEnv[Any, Any, Any],
        *,
        problems: int | None = None,
        samples: int = 1,
        greedy: bool = True,
        record: EvaluationRecord | None = None,
    ) -> Evaluation:
        """Evaluate the greedy policy; see `evaluate`. Since its logits are action values, the policy is never sampled from."""
        if not greedy:
            raise InvalidArgumentError("dqn is evaluated greedily: its outputs are values, not log-probabilities")
        return super().evaluate(env, problems=problems, samples=samples, greedy=True, record=record)

    # Learning

    def update(self, trajectories: Sequence[Trajectory]) -> dict[str, float]:
        """Add episodes to the buffer, make the number of updates that their tokens allow, and return the metrics."""
        config = self.config
        metrics = {"epsilon": self.epsilon()}
        self.policy.release_cache()
        self.buffer.add(trajectories, bootstraps=config.truncation is Truncation.BOOTSTRAP)
        due = 0
        if len(self.buffer) >= config.learn_from:
            due = round(sum(int(one.policy_mask.sum()) for one in trajectories) / config.tokens_per_update)
        steps = [self._one_update() for _ in range(due)]
        self.progress.steps += 1
        return {**metrics, **merge(steps), "buffer": float(len(self.buffer)), "updates": float(self.updates)}

    def _one_update(self) -> dict[str, float]:
        config = self.config
        # Draws depend only on the seed and the number of updates, so that a resumed run makes the same draws.
        generator = np.random.default_rng(int(episode_seeds(config.seed, _REPLAY + self.updates, 1)[0]))
        batch, legal = self.buffer.sample(generator.integers(len(self.buffer), size=config.batch_size))
        batch, legal = batch.to(self.policy.device), legal.to(self.policy.device)
        self.learner.optimizer.zero_grad(set_to_none=True)
        values, targets = self.values_and_targets(batch, legal)
        loss = torch.nn.functional.huber_loss(values, targets)
        loss.backward()
        metrics = self.learner.update()
        self.updates += 1
        if self.updates % config.target_every == 0:
            self.target.model.load_state_dict(self.policy.model.state_dict())
            self.target.weights_changed()
        return {"loss": float(loss.detach()), "value": float(values.detach().mean()), **metrics}

    def values_and_targets(self, batch: Batch, legal: Tensor) -> tuple[Tensor, Tensor]:
        """Q(s, a) f32[b] with a gradient, and y f32[b] without a gradient, for transitions from a `ReplayBuffer`.

        Args:
            batch: b transitions; see `ReplayBuffer.sample`.
            legal: bool[b v], the legal next actions.
        """
        before, after = action_values(self.policy, batch)
        taken = batch.tokens[batch.loss_mask]
        values = before.gather(1, taken[:, None]).squeeze(1)
        with torch.no_grad():
            judged = action_values(self.target, batch)[1]
            chosen = (after.detach() if self.config.double else judged).masked_fill(~legal, -math.inf).argmax(dim=1)
            follows = judged.gather(1, chosen[:, None]).squeeze(1)
            targets = batch.scores.float() + self.config.gamma * torch.where(batch.truncated, follows, 0.0)
        return values, targets

    # State

    def own_state(self) -> dict[str, Any]:
        """The target network, the buffer and the number of updates."""
        return {"target": self.target.model.state_dict(), "buffer": self.buffer.state_dict(), "updates": self.updates}

    def load_own_state(self, state: dict[str, Any]) -> None:
        """Restore the state returned by `own_state`."""
        self.target.model.load_state_dict(state["target"])
        self.buffer.load_state_dict(state["buffer"])
        self.updates = state["updates"]

    def advantages(self, batch: Batch) -> Tensor:
        """Not defined.

        Raises:
            InvalidArgumentError: Always.
        """
        raise InvalidArgumentError(_NO_POLICY_GRADIENT)

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """Not defined.

        Raises:
            InvalidArgumentError: Always.
        """
        raise InvalidArgumentError(_NO_POLICY_GRADIENT)


_REPLAY = 2**60
"""Number of the first random stream for draws from the buffer."""


def action_values(policy: TrainablePolicy, batch: Batch) -> tuple[Tensor, Tensor]:
    """The values f32[b v] of all actions in the states before and after a token.

    The token is the only one of its row in the loss mask.
    """
    head = policy.model["head"] if isinstance(policy, policies.TorchPolicy) else policy.model.get_output_embeddings()
    states = learn.contexts.read_states(policy, batch)
    rows, first = torch.arange(len(batch), device=states.device), batch.first
    before, after = batch.loss_mask.int().argmax(dim=1) - first, batch.lengths - first
    return head(states[rows, before]).float(), head(states[rows, after]).float()
