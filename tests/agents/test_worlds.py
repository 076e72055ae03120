"""Agents and estimators against exact values, in worlds where dynamic programming knows them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from agents import (
    A2C,
    AGENTS,
    A2CConfig,
    Action,
    Agent,
    Batch,
    CriticConfig,
    Episode,
    LearnerConfig,
    agent_classes,
    make_batch,
    rollout,
)
from agents.advantages import gae, n_step, returns_to_go
from rlvr_envs import Observation, exact
from rlvr_envs.worlds import Walk, move_tokens, world_of
from tests.agents import corridor
from tests.agents.agent_cases import state_values
from tests.agents.corridor import TWO_PARTS, at_the_goal, share_learned, tiny_policy, walk_values
from verifiers import Problem

MAZE = "rlvr/Maze-v0"
GRID = "rlvr/GridWorld-v0"


# Every agent learns from random weights


def test_every_agent_has_its_lesson_in_the_corridor() -> None:
    assert corridor.SETTINGS.keys() == AGENTS.keys()


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_learns_the_corridor(name: str) -> None:
    """By its exact expected return; `tests.agents.corridor` has what was measured with 20 seeds."""
    assert share_learned(name, seed=0) > corridor.ENOUGH


@pytest.mark.long
@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_learns_the_corridor_with_every_seed(name: str) -> None:
    assert min(share_learned(name, seed) for seed in range(1, 6)) > corridor.ENOUGH


# And larger worlds


def at_once(completion: str, problem: Problem) -> bool:
    return len(completion) <= 2


@dataclass(frozen=True)
class Lesson:
    """How an agent is taught a world, which is as it is by default but for `training`."""

    learning_rate: float | None = 5e-3
    """None where the length of steps is `max_kl`."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the agent's config, beside those of the corridor."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Of the environment that it learns in, where the rewards of the world itself are not for this agent."""


@dataclass(frozen=True)
class Task:
    """A world, how often each of its problems is tried, about 1000 episodes in all, and how the agents are taught it."""

    env_id: str
    options: Mapping[str, Any]
    samples: int
    lessons: Mapping[str, Lesson]


EPISODES = 128
"""In each step, in groups of 8 where the agent compares completions."""
PARTS = {"minibatches": 4}
"""Several steps on each batch, where the loss allows for them."""
FAST = CriticConfig("separate", critic_learning_rate=5e-3)
"""All that an actor-critic learns from is how the values of two states differ, so they have to be right soon."""
NATURAL = {"max_kl": 0.05, "damping": 0.01, "cg_iterations": 6, "value_steps": 2, "critic": FAST}
"""Large steps, since each costs several passes."""
GOAL_AND_SPEED = {
    "verifier": (
        "weighted_sum",
        {"parts": {"goal": at_the_goal, "speed": at_once}, "weights": {"goal": 1.0, "speed": 0.2}},
    )
}

MAZE_LESSONS = {
    "reinforce": Lesson(7e-3),
    "rloo": Lesson(7e-3),
    "remax": Lesson(7e-3, {"problems_per_step": EPISODES, "group_size": 1}),
    # A price of moves says at once which states are worse; with whole returns that is not needed.
    "actor-critic": Lesson(2e-3, {"critic": FAST, "trace_decay": 0.0}, {"step_reward": -0.5}),
    "a2c": Lesson(7e-3, {"entropy_coefficient": 0.0}),  # the bonus would keep it from choosing for sure
    "npg": Lesson(None, NATURAL),
    "trpo": Lesson(None, NATURAL),
    "ppo": Lesson(settings={**PARTS, "epochs": 1}),
    "vineppo": Lesson(settings=PARTS),
    "grpo": Lesson(settings=PARTS),
    "dr-grpo": Lesson(settings={**PARTS, "max_tokens": 12}),
    "dapo": Lesson(settings=PARTS),
    "reinforce++": Lesson(settings=PARTS),
    "opo": Lesson(7e-3),
    "gspo": Lesson(settings=PARTS),
    "cispo": Lesson(settings=PARTS),
    "gdpo": Lesson(settings=PARTS, training=TWO_PARTS),
    "maxrl": Lesson(settings=PARTS, training=TWO_PARTS),
    "pass-at-k": Lesson(settings={**PARTS, "k": 2}),  # with k=4 one success in four is enough
    "rft": Lesson(7e-3),
    "dpo": Lesson(),
}
GRID_LESSONS = {
    **MAZE_LESSONS,
    "actor-critic": Lesson(5e-3, {"critic": CriticConfig(critic_learning_rate=3e-2), "gamma": 0.9, "trace_decay": 0.0}),
    "dr-grpo": Lesson(7e-3, {"minibatches": 2, "max_tokens": 4}),
    "cispo": Lesson(1e-3, PARTS),
    "gdpo": Lesson(settings=PARTS, training=GOAL_AND_SPEED),
    "maxrl": Lesson(settings=PARTS, training={"step_reward": 0.0}),  # it needs scores of at least 0
    "pass-at-k": Lesson(settings={"minibatches": 2, "k": 2}),
    "rft": Lesson(7e-3, {"selection": "best"}),  # every score is below 0
}
TASKS = {
    "maze": Task(MAZE, {}, 1008, MAZE_LESSONS),
    "grid": Task(GRID, {"n": 2}, 112, GRID_LESSONS),
}
STEPS = 80
SEEDS = 3
ENOUGH = 0.25
"""Of the way from random moves to the best ones, in the mean over the seeds. One problem of the grid that is never solved costs
0.2; of nine agents there with seed 0 the natural policy gradient had least, 0.55, and the others were above 0.77."""


def pupil(name: str, task: Task, seed: int = 0) -> tuple[Agent, Any]:
    """An agent with random weights, and the environment that it learns in."""
    lesson = task.lessons[name]
    env = gymnasium.make_vec(task.env_id, num_envs=EPISODES, copy=False, **{**task.options, **lesson.training})
    cls, config = agent_classes(name)
    grouped = next(field.default for field in dataclasses.fields(config) if field.name == "group_size") > 1
    group = 8 if grouped else 1
    rate = {} if lesson.learning_rate is None else {"learning_rate": lesson.learning_rate}
    groups = {"problems_per_step": EPISODES // group, "group_size": group}
    settings = {**corridor.SETTINGS[name], **groups, **lesson.settings}
    learner = LearnerConfig(**rate, max_grad_norm=1.0, micro_batch_size=512)
    return cls(tiny_policy(env, seed), config(seed=seed, learner=learner, **settings)), env


def learned(name: str, task: Task, seed: int) -> tuple[float, float]:
    """How far sampled episodes are from random moves (0) to the best ones (1) after `STEPS` steps, and its standard error.

    Returns are means over the problems of the world with its own rewards; those of random and best moves are exact.
    """
    agent, env = pupil(name, task, seed)
    trial = gymnasium.make_vec(task.env_id, num_envs=144, copy=False, **task.options)
    agent.learn(env, steps=STEPS)
    evaluation = agent.evaluate(trial, samples=task.samples)
    returns = np.array([row.score for row in evaluation.rows])
    random, best = (float(of(trial.unwrapped).mean()) for of in (exact.uniform_returns, exact.optimal_returns))
    return (evaluation.score - random) / (best - random), returns.std() / math.sqrt(len(returns)) / (best - random)


@pytest.mark.parametrize("world", TASKS)
def test_every_agent_has_a_lesson(world: str) -> None:
    assert TASKS[world].lessons.keys() == AGENTS.keys()


@pytest.mark.long
@pytest.mark.parametrize("world", TASKS)
@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_comes_closer_to_the_best_return(world: str, name: str) -> None:
    """From random weights, which walk about; what counts is the return that the worlds pay by default.

    A run may settle on a detour in one of the problems, so that seeds differ: the mean over some of them is judged, and
    three standard errors of the sampled returns are given away.
    """
    shares, errors = np.array([learned(name, TASKS[world], seed) for seed in range(SEEDS)]).T
    assert shares.mean() - 3 * math.sqrt((errors**2).sum()) / SEEDS > ENOUGH


# Estimators against dynamic programming


class TablePolicy:
    """Chooses moves by a table π(a|s) f64[s a] of the cells of one world."""

    version = 0

    def __init__(self, env: Any, table: np.ndarray, seed: int = 0) -> None:
        streams = env.unwrapped.streams
        self.problem = streams.dataset[0]
        self.world = world_of(self.problem)
        self.walk = Walk(streams.rules.tokenizer)
        self.tokens = move_tokens(streams.rules.tokenizer)
        self.prompt_length = len(streams.prompt_tokens(0))
        self.table = table
        self.generator = np.random.default_rng(seed)

    def begin(self, rows: np.ndarray, seeds: np.ndarray) -> None:
        """One generator serves all episodes."""

    def state(self, prefix: np.ndarray) -> int | None:
        """The state after some tokens; None where the walk is over."""
        cell = self.walk.cell(prefix, self.prompt_length, self.problem)
        return None if self.world.ends_at(cell) else self.world.states.index(cell)

    def act(self, observation: Observation, *, action_mask: Any = None, rows: Any = None) -> Action:
        count = len(observation["length"])
        action = Action(
            np.zeros((count, 1), dtype=np.int64),
            np.zeros(count, dtype=np.int64),
            np.zeros((count, 1), dtype=np.float32),
        )
        for row in np.flatnonzero(np.ones(count, dtype=bool) if rows is None else rows):
            state = self.state(observation["tokens"][row, : observation["length"][row, 0]])
            move = self.generator.choice(4, p=self.table[state])
            action.tokens[row], action.counts[row] = self.tokens[move], 1
            action.logprobs[row] = np.log(self.table[state, move])
        return action


@dataclass(frozen=True)
class Sample:
    """Episodes of a fixed policy and, for each of their tokens, the state before it, the moves left, and the move."""

    mdp: exact.FiniteMDP
    horizon: int
    policy: np.ndarray
    batch: Batch
    state: np.ndarray
    left: np.ndarray
    move: np.ndarray
    end_state: np.ndarray
    """i64[b], the state after the last token; -1 where the walk is over."""

    @property
    def mask(self) -> np.ndarray:
        return self.batch.loss_mask.numpy()

    def of_states(self, values: np.ndarray) -> torch.Tensor:
        """f64[b l] from values f64[k s] of the moves left and the state."""
        return torch.from_numpy(np.where(self.mask, values[self.left, self.state], 0.0))

    def of_moves(self, values: np.ndarray) -> np.ndarray:
        """f64[b l] from values f64[k s a]."""
        return np.where(self.mask, values[self.left, self.state, self.move], 0.0)

    def standard_scores(self, estimates: Any, truth: np.ndarray, *, by_move: bool = False) -> np.ndarray:
        """For each state (and move) at each time, how many standard errors the mean estimate is away from the truth.

        An episode is there once at most, so that the samples of one mean are independent.
        """
        keys = np.stack([self.left, self.state, self.move if by_move else np.zeros_like(self.move)], axis=-1)[self.mask]
        differences = (np.asarray(estimates) - truth)[self.mask]
        results = []
        for key in np.unique(keys, axis=0):
            sample = differences[(keys == key).all(axis=1)]
            if len(sample) >= 300:
                # What never happened in n samples may still have a share of 1 / n in the mean.
                error = max(sample.std(ddof=1) / math.sqrt(len(sample)), np.ptp(differences) / len(sample), 1e-12)
                results.append(sample.mean() / error)
        assert len(results) >= 10
        return np.array(results)


WORLDS: dict[str, tuple[str, dict[str, Any]]] = {
    "maze": (MAZE, {"step_reward": -0.3, "max_new_tokens": 6}),
    "grid": (GRID, {"n": 2, "step_reward": -0.1, "max_new_tokens": 6}),
}


@pytest.fixture(scope="module", params=list(WORLDS))
def sample(request: pytest.FixtureRequest) -> Sample:
    env_id, options = WORLDS[request.param]
    env = gymnasium.make_vec(env_id, num_envs=256, copy=False, **options)
    streams = env.unwrapped.streams
    mdp = exact.world_mdp(world_of(streams.dataset[0]))
    table = np.random.default_rng(3).dirichlet(np.full(4, 8.0), size=len(mdp.start))
    policy = TablePolicy(env, table)
    trajectories = rollout(env, policy, [Episode(0, 0, seed) for seed in range(4000)])
    batch, horizon = make_batch(trajectories), streams.rules.max_new_tokens
    state, left, move = (np.zeros(tuple(batch.tokens.shape), dtype=np.int64) for _ in range(3))
    end_state = np.full(len(trajectories), -1)
    moves = {int(token): number for number, token in enumerate(policy.tokens)}
    for row, trajectory in enumerate(trajectories):
        for at in np.flatnonzero(trajectory.policy_mask):
            state[row, at] = policy.state(trajectory.tokens[:at])
            left[row, at] = horizon - (at - trajectory.prompt_length)
            move[row, at] = moves[int(trajectory.tokens[at])]
        end_state[row] = -1 if trajectory.terminated else policy.state(trajectory.tokens)
    return Sample(mdp, horizon, table, batch, state, left, move, end_state)


def assert_standard(scores: np.ndarray) -> None:
    """Whether numbers are like draws of a standard normal distribution: none far out, and of about its spread."""
    assert np.abs(scores).max() < 4.5
    assert np.mean(scores**2) < 3  # the means of states that follow one another depend on each other


@pytest.mark.parametrize("gamma", [0.9, 1.0])
def test_the_mean_return_from_a_state_is_its_value(sample: Sample, gamma: float) -> None:
    values = exact.policy_values(sample.mdp, sample.policy, gamma=gamma, horizon=sample.horizon)
    returns = returns_to_go(sample.batch.rewards, sample.batch.loss_mask, gamma)
    assert_standard(sample.standard_scores(returns, sample.of_states(values.state).numpy()))
    assert_standard(sample.standard_scores(returns, sample.of_moves(values.action), by_move=True))
    # The same samples tell other values apart: those of half the discount, and those with one move less.
    wrong = exact.policy_values(sample.mdp, sample.policy, gamma=gamma / 2, horizon=sample.horizon)
    assert np.abs(sample.standard_scores(returns, sample.of_states(wrong.state).numpy())).max() > 6
    late = sample.of_states(np.roll(values.state, 1, axis=0)).numpy()
    assert np.abs(sample.standard_scores(returns, late)).max() > 6


@pytest.mark.parametrize("gamma", [0.9, 1.0])
def test_with_exact_values_the_td_error_is_the_advantage(sample: Sample, gamma: float) -> None:
    """The worlds are deterministic: r + g v(s') is q(s, a) itself. Over the policy's moves the mean error is 0."""
    values = exact.policy_values(sample.mdp, sample.policy, gamma=gamma, horizon=sample.horizon)
    arguments = (sample.batch.rewards, sample.of_states(values.state), sample.batch.loss_mask)
    expected = sample.of_moves(values.advantage)
    assert np.abs(expected).max() > 0.1
    for errors in (n_step(*arguments, 1, gamma=gamma), gae(*arguments, gamma=gamma, gae_lambda=0.0)):
        np.testing.assert_allclose(errors.numpy(), expected, atol=1e-12)
        assert_standard(sample.standard_scores(errors, np.zeros_like(expected)))


@pytest.mark.parametrize("gamma", [0.9, 1.0])
def test_with_exact_values_advantages_have_the_mean_of_the_exact_ones(sample: Sample, gamma: float) -> None:
    """For every trace decay and number of steps; the longer they look ahead, the more they vary."""
    values = exact.policy_values(sample.mdp, sample.policy, gamma=gamma, horizon=sample.horizon)
    arguments = (sample.batch.rewards, sample.of_states(values.state), sample.batch.loss_mask)
    expected = sample.of_moves(values.advantage)
    by_decay = [gae(*arguments, gamma=gamma, gae_lambda=decay).numpy() for decay in (0.0, 0.5, 0.95, 1.0)]
    by_steps = [n_step(*arguments, steps, gamma=gamma).numpy() for steps in (1, 2, 3, sample.horizon)]
    for estimates in (by_decay, by_steps):
        for estimate in estimates[1:]:
            assert_standard(sample.standard_scores(estimate, expected, by_move=True))
        spread = [float(np.square(estimate - expected)[sample.mask].mean()) for estimate in estimates]
        assert spread == sorted(spread)
        assert spread[0] < 1e-20 < spread[1]


def test_an_episode_cut_off_goes_on_with_the_value_of_its_last_state(sample: Sample) -> None:
    """With that, a budget that is no part of the task leaves the advantages those of a world without one."""
    values = exact.policy_values(sample.mdp, sample.policy, gamma=0.9)
    every_time = np.broadcast_to(values.state, (sample.horizon + 1, *values.state.shape))
    advantage = np.broadcast_to(values.advantage, (sample.horizon + 1, *values.advantage.shape))
    cut = sample.end_state >= 0
    assert 0.02 < cut.mean() < 0.98
    np.testing.assert_array_equal(cut, sample.batch.truncated.numpy())
    bootstrap = torch.from_numpy(np.where(cut, values.state[sample.end_state], 0.0))
    arguments = (sample.batch.rewards, sample.of_states(every_time), sample.batch.loss_mask)
    for decay in (0.0, 0.9, 1.0):
        estimates = gae(*arguments, gamma=0.9, gae_lambda=decay, bootstrap=bootstrap)
        assert_standard(sample.standard_scores(estimates, sample.of_moves(advantage), by_move=True))
    without = gae(*arguments, gamma=0.9, gae_lambda=1.0)
    assert np.abs(sample.standard_scores(without, sample.of_moves(advantage), by_move=True)).max() > 6


@pytest.mark.parametrize("gamma", [0.9, 1.0])
def test_batch_td_learns_the_values_of_the_process_that_was_seen(sample: Sample, gamma: float) -> None:
    """The certainty-equivalence estimate (Sutton & Barto 2018, section 6.3); both it and Monte-Carlo come near the truth."""
    visits = np.zeros((sample.horizon + 1, *sample.mdp.reward.shape))
    np.add.at(visits, (sample.left[sample.mask], sample.state[sample.mask], sample.move[sample.mask]), 1)
    times = visits.sum(axis=2)
    values, monte_carlo = np.zeros_like(times), np.zeros_like(times)

    def mean_by_state(estimates: torch.Tensor) -> np.ndarray:
        total = np.zeros_like(times)
        np.add.at(total, (sample.left[sample.mask], sample.state[sample.mask]), estimates.numpy()[sample.mask])
        return total / np.maximum(times, 1)

    for _ in range(sample.horizon):  # each sweep settles the states with one more move left
        rewards, mask = sample.batch.rewards, sample.batch.loss_mask
        values += mean_by_state(gae(rewards, sample.of_states(values), mask, gamma=gamma, gae_lambda=0.0))
    monte_carlo = mean_by_state(returns_to_go(sample.batch.rewards, sample.batch.loss_mask, gamma))

    seen = times > 0
    empirical = np.where(seen[..., None], visits / np.maximum(times, 1)[..., None], 0.25)[1:]
    certain = exact.policy_values(sample.mdp, empirical, gamma=gamma, horizon=sample.horizon).state
    np.testing.assert_allclose(values[seen], certain[seen], atol=1e-9)
    truth = exact.policy_values(sample.mdp, sample.policy, gamma=gamma, horizon=sample.horizon).state
    spread = float(np.sqrt(np.average((truth - np.average(truth, weights=times)) ** 2, weights=times)))
    for estimate in (values, monte_carlo):
        assert math.sqrt(np.average((estimate - truth) ** 2, weights=times)) < 0.15 * spread


# Critics

CRITIC_STEPS = 150


@pytest.mark.parametrize(("critic", "learning_rate", "bound"), [("head", 0.3, 0.35), ("separate", 3e-3, 0.15)])
def test_a_critic_learns_the_exact_values_of_a_fixed_policy(critic: Any, learning_rate: float, bound: float) -> None:
    """Root mean square over the states as they are visited, in standard deviations of the exact values.

    The policy is a language model with weights that stay as they are; every prefix has a value of its own, the mean over
    every episode that the policy can play from there. A head is linear in states that were not made for it: some weights
    would give the exact values, but the states differ little, so that gradient steps get there slowly.
    """
    env = corridor.corridor(128)
    policy = tiny_policy(env)
    if critic == "head":
        with torch.no_grad():
            for parameter in policy.model.parameters():
                parameter.mul_(1.5)  # states that differ more, as after training
    truth = walk_values(env, policy)
    config = A2CConfig(
        problems_per_step=128,
        entropy_coefficient=0.0,
        gae_lambda=1.0,
        # The policy stays; the critic's rate falls with the same schedule.
        learner=LearnerConfig(1e-12, schedule="linear", schedule_steps=CRITIC_STEPS, micro_batch_size=512),
        critic=CriticConfig(critic, critic_learning_rate=learning_rate, value_coefficient=1.0),
    )
    agent = A2C(policy, config)
    before, _ = value_error(agent, env, truth)
    agent.learn(env, steps=CRITIC_STEPS)
    after, spread = value_error(agent, env, truth)
    assert before > 0.9 * spread
    if critic == "head":
        assert best_linear_error(agent, env, truth) < 1e-4 * spread  # states are in float32
    assert after < bound * spread
    # 150 steps of 1e-12.
    assert walk_values(env, policy) == pytest.approx(truth, abs=1e-3)


def visited(agent: A2C, env: Any, truth: Mapping[str, float]) -> tuple[Batch, np.ndarray]:
    """Sampled episodes, and the exact values of the states before their tokens, in the order of the loss mask."""
    trajectories = agent.evaluate(env, samples=1000).trajectories
    tokenizer = env.unwrapped.streams.rules.tokenizer
    values = []
    for trajectory in trajectories:
        for at in np.flatnonzero(trajectory.policy_mask).tolist():
            made = b"".join(
                tokenizer.token_bytes(int(token)) for token in trajectory.tokens[trajectory.prompt_length : at]
            )
            values.append(truth[made.decode()])
    return make_batch(trajectories), np.array(values)


def value_error(agent: A2C, env: Any, truth: Mapping[str, float]) -> tuple[float, float]:
    """The critic's root mean square error over the states of sampled episodes, and the exact values' standard deviation."""
    batch, expected = visited(agent, env, truth)
    assert agent.models.critic is not None
    values, _ = state_values(agent.policy, agent.models.critic, batch, 512)
    result = values[batch.loss_mask].numpy()
    return float(np.sqrt(np.mean((result - expected) ** 2))), float(expected.std())


def best_linear_error(agent: A2C, env: Any, truth: Mapping[str, float]) -> float:
    """The root mean square error of the least-squares fit to the exact values that is linear in the policy's states."""
    batch, expected = visited(agent, env, truth)
    with torch.no_grad():
        states = agent.policy.states(batch.tokens, batch.first)[:, :-1][batch.loss_mask[:, batch.first :]]
    features = np.concatenate([states.double().numpy(), np.ones((len(states), 1))], axis=1)
    weights, *_ = np.linalg.lstsq(features, expected, rcond=None)
    return float(np.sqrt(np.mean((features @ weights - expected) ** 2)))
