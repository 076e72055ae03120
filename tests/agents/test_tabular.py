"""Agents that learn a table: learning, evaluating, checkpoints, their command, and control against exact values."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from agents import (
    UCB1,
    EvaluationRecord,
    TabularAgent,
    Thompson,
    Transition,
    UCB1Config,
    agent_classes,
    tabular_classes,
)
from agents.tables.action_values import ActionValueAgent
from agents.tables.double_q_learning import DoubleQLearning, DoubleQLearningConfig
from agents.tables.expected_sarsa import ExpectedSARSA, ExpectedSARSAConfig
from agents.tables.monte_carlo import MonteCarlo, MonteCarloConfig
from agents.tables.q_learning import QLearning, QLearningConfig
from agents.tables.sarsa import SARSA, SARSAConfig
from agents.tables.thompson import ThompsonConfig
from rlvr_envs import exact
from rlvr_envs.tasks.gridworld import GridWorldStateEnv
from rlvr_envs.tasks.maze import MazeStateEnv
from tests.commands import Command
from verifiers import CheckpointError, InvalidArgumentError, UnknownNameError

BANDITS = ("epsilon-greedy", "gradient-bandit", "ucb1", "thompson", "linucb")
METHODS = ("monte-carlo", "sarsa", "expected-sarsa", "q-learning", "double-q-learning")
CORRIDOR = """
+---+---+---+---+
| S   T     | G |
+   +---+   +   +
|               |
+---+---+---+---+
"""


def bandit(**options: Any) -> gymnasium.Env[Any, Any]:
    return gymnasium.make("rlvr/BanditState-v0", **options)


def make(name: str, env: gymnasium.Env[Any, Any], **settings: Any) -> TabularAgent:
    cls, config = tabular_classes(name)
    return cls(env, config(**settings))


def metrics_of(agent: TabularAgent, env: gymnasium.Env[Any, Any], steps: int, **options: Any) -> list[dict[str, float]]:
    rows: list[dict[str, float]] = []
    agent.learn(env, steps=steps, callbacks=[lambda _, metrics: rows.append(dict(metrics))], **options)
    return [{name: value for name, value in row.items() if name != "step_s"} for row in rows]


@pytest.mark.parametrize("name", BANDITS)
def test_it_learns_the_best_arm(name: str) -> None:
    """A gap of 0.8 and 600 pulls: the greedy arm is the best one, for each of three seeds."""
    for seed in range(3):
        env = bandit(means=(0.1, 0.9, 0.1))
        agent = make(name, env, seed=seed)
        agent.learn(env, steps=60)
        assert agent.act(0, greedy=True) == 1
        assert agent.tokens == 600


@pytest.mark.parametrize("name", [*BANDITS, *METHODS])
def test_a_resumed_run_continues_as_if_never_stopped(name: str, tmp_path: Path) -> None:
    env: Any = bandit() if name in BANDITS else MazeStateEnv(layout=CORRIDOR, step_reward=-0.25, max_steps=12)
    whole, first, second = (make(name, env, seed=4) for _ in range(3))
    rows = metrics_of(whole, env, 8)
    begun = metrics_of(first, env, 3)
    first.save(tmp_path / "at-3")
    second.load(tmp_path / "at-3")
    assert begun + metrics_of(second, env, 8) == rows
    for one, other in zip(whole.tables().values(), second.tables().values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_metrics_by_hand() -> None:
    """Arms with means 0 and 1, each tried once by UCB1, then ever more often the better."""
    env = bandit(means=(0.0, 1.0))
    (row,) = metrics_of(UCB1(env, UCB1Config(episodes_per_step=2)), env, 1)
    means = {"reward": 0.5, "length": 1.0, "truncated": 0.0, "regret": 0.5}
    assert row == {**means, "total_regret": 1.0, "num_tokens": 2.0}


def test_the_budget_of_actions_ends_it() -> None:
    env = bandit()
    agent = UCB1(env, UCB1Config(episodes_per_step=7))
    agent.learn(env, steps=100, tokens=15)
    assert (agent.steps, agent.tokens) == (3, 21)


def test_evaluation_plays_the_first_problems_without_learning() -> None:
    env = bandit(means=(0.0, 1.0))
    agent = UCB1(env)
    agent.learn(env, steps=5)
    before = {name: table.copy() for name, table in agent.tables().items()}
    with pytest.warns(UserWarning, match="all 2 samples of a problem are the same"):
        evaluation = agent.evaluate(env, problems=4, samples=2, greedy=True)
    assert (evaluation.score, evaluation.problems, evaluation.samples) == (1.0, 4, 2)
    assert [row.problem_id for row in evaluation.rows] == [f"bandit/train/0/{at}" for at in (0, 0, 1, 1, 2, 2, 3, 3)]
    for name, table in agent.tables().items():
        np.testing.assert_array_equal(table, before[name])
    assert agent.evaluate(env, problems=30) == agent.evaluate(env, problems=30)
    with pytest.raises(InvalidArgumentError, match="can't evaluate 0 problems"):
        agent.evaluate(env, problems=0)
    with pytest.raises(InvalidArgumentError, match="the environment has 100000 problems"):
        agent.evaluate(env, problems=100_001)


def test_a_checkpoint_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = bandit()
    agent = UCB1(env)
    agent.learn(env, steps=1)
    agent.save(tmp_path / "saved")
    agent.learn(env, steps=2)

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(np, "savez", full)
        with pytest.raises(OSError, match="no space left"):
            agent.save(tmp_path / "saved")
    other = UCB1(env)
    other.load(tmp_path / "saved")
    assert other.steps == 1
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


def test_other_checkpoints_are_refused(tmp_path: Path) -> None:
    env = bandit()
    agent = UCB1(env)
    with pytest.raises(CheckpointError, match="no checkpoint at"):
        agent.load(tmp_path / "nothing")
    agent.save(tmp_path / "ucb1")
    with pytest.raises(CheckpointError, match="of agent 'ucb1', not of 'thompson'"):
        Thompson(env).load(tmp_path / "ucb1")
    with pytest.raises(InvalidArgumentError, match="with other spaces"):
        UCB1(bandit(arms=3)).load(tmp_path / "ucb1")
    (tmp_path / "ucb1" / "state.json").write_text("{}")
    with pytest.raises(CheckpointError, match="damaged"):
        agent.load(tmp_path / "ucb1")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(InvalidArgumentError, match="something other than a checkpoint"):
        agent.save(tmp_path / "other")


def test_misuse_is_named() -> None:
    env = bandit()
    with pytest.raises(InvalidArgumentError, match="UCB1 expects a UCB1Config, got ThompsonConfig"):
        UCB1(env, ThompsonConfig())
    with pytest.raises(InvalidArgumentError, match="tables of 3 states and 5 actions, and the environment has 3 and 2"):
        UCB1(env).learn(bandit(arms=2), steps=1)
    with pytest.raises(InvalidArgumentError, match="episodes_per_step must be at least 1"):
        UCB1Config(episodes_per_step=0)
    with pytest.raises(InvalidArgumentError, match=r"plays one gymnasium.Env, got SyncVectorEnv"):
        UCB1(gymnasium.make_vec("rlvr/BanditState-v0", num_envs=2))  # type: ignore[arg-type] # a likely mistake
    with pytest.raises(InvalidArgumentError, match="learns a table and trains no model"):
        agent_classes("ucb1")
    with pytest.raises(UnknownNameError, match="ucb1"):
        tabular_classes("ucb")
    for numbers in ({"steps": -1}, {"steps": 2.5}, {"steps": 1, "tokens": -3}):
        with pytest.raises(InvalidArgumentError, match="a whole number of at least 0, got"):
            UCB1(env).learn(env, **numbers)


def test_the_command_needs_no_model(tmp_path: Path, rlvr: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    # matplotlib takes longer than all the rest
    monkeypatch.setattr("agents.commands.training.plot", lambda *_, **__: [])
    line = ["train", "ucb1", "--env", "Bandit", "--env-args", "arms=3", "--run-folder", tmp_path / "run", "--loggers"]
    code, said, _ = rlvr(*line, "--steps", "3", "--resume")  # no run is there yet
    assert code == 0
    assert "3 steps done" in said
    assert "continuing" not in said
    code, said, _ = rlvr(*line, "--steps", "5", "--resume")
    assert (code, "continuing after step 3" in said) == (0, True)
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["environment"]["states"] == 3
    table, contexts = ["train", "epsilon-greedy", *line[2:]], [*line[:3], "ContextualBandit", *line[4:]]
    for words, said in (
        ([*line, "--seed", "3"], "was started with other settings: config.seed was 0 and is now 3"),
        (table, "was started with agent 'ucb1', and not 'epsilon-greedy': resume it with that one"),
        (contexts, "was started with env 'Bandit', and not 'ContextualBandit'"),
    ):
        code, _, errors = rlvr(*words, "--steps", "6", "--resume")
        assert (code, said in errors) == (2, True)
    (tmp_path / "run" / "config.json").unlink()
    code, _, errors = rlvr(*line, "--steps", "6", "--resume")
    assert (code, "expected a folder with config.json" in errors) == (2, True)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["ucb1", "--env", "GSM8K"], "no numbered states for a table or a perceptron: choose one of GridWorld, Maze,"),
        (["ucb1", "--env", "Bandit", "--env-args", "pulls=3"], "an episode of Bandit goes on after it: set pulls=1,"),
        (["ucb1", "--env", "Bandit", "--env-args", "arm=3"], "arm"),
        (["thompson", "--env", "Bandit", "--noise", "2"], "Rewards of 0 and 1 have none"),
        (["ucb1", "--env", "Bandit", "--env-args", "noise=5"], "noise=5 has no effect on rewards 0 and 1"),
        (["ucb1", "--env", "Bandit", "--env-args", "means=(0.2,0.8)", "arms=5"], "means has 2 arms and arms is 5"),
        (["ucb1", "--env", "Bandit", "--env-args", "means=(0.2,0.8)", "instance=3"], "instance=3 has no effect"),
        (["q-learning", "--env", "Bandit", "--env-args", "pulls=9", "max_steps=3"], "max_steps must be at least 9"),
    ],
)
def test_the_command_names_what_is_wrong(line: list[str], said: str, tmp_path: Path, rlvr: Command) -> None:
    code, _, errors = rlvr("train", *line, "--run-folder", tmp_path / "run", "--loggers")
    assert (code, said in errors) == (2, True)


def test_an_evaluation_is_recorded_and_resumed(tmp_path: Path) -> None:
    env = bandit(means=(0.0, 1.0))
    agent = UCB1(env)
    agent.learn(env, steps=3)
    whole = agent.evaluate(env, problems=4, seed=7)
    with EvaluationRecord(tmp_path / "out") as record:
        agent.evaluate(env, problems=2, seed=7, record=record)
    with EvaluationRecord(tmp_path / "out", resume=True) as record:
        seen: list[int] = []
        resumed = agent.evaluate(env, problems=4, seed=7, record=record, on_sample=lambda row: seen.append(row.problem))
    assert (resumed, seen) == (whole, [0, 1, 2, 3])
    agent.learn(env, steps=4)
    again = EvaluationRecord(tmp_path / "out", resume=True)
    with again as record, pytest.raises(InvalidArgumentError, match="tables"):
        agent.evaluate(env, problems=4, seed=7, record=record)


# Control against exact values


class Chance(gymnasium.Env[np.int64, np.int64]):
    """Spaces of a random process of 4 states and 3 actions; tests go through its table and play no episode."""

    def __init__(self) -> None:
        self.observation_space: Any = spaces.Discrete(4)
        self.action_space: Any = spaces.Discrete(3)


def chance_mdp() -> exact.FiniteMDP:
    """An action goes on in one of the states or, with probability 0.2 at least, ends the episode; rewards are of both signs."""
    generator = np.random.default_rng(3)
    transition = generator.dirichlet(np.ones(5), size=(4, 3))[..., :4] * 0.8
    return exact.FiniteMDP(transition, generator.normal(size=(4, 3)), np.full(4, 0.25))


def sweep_to_the_end(agent: ActionValueAgent, mdp: exact.FiniteMDP, target: Callable[[Transition], float]) -> None:
    """Update every action in every state by its expected target, until nothing changes any more."""
    for _ in range(400):
        before = agent.values.copy()
        for state, action in np.ndindex(*mdp.reward.shape):
            reward = float(mdp.reward[state, action])
            onward = mdp.transition[state, action]
            expected = (1 - onward.sum()) * target(Transition(state, action, reward, 0, True, False))
            expected += sum(
                probability * target(Transition(state, action, reward, following, False, False))
                for following, probability in enumerate(onward.tolist())
            )
            agent.move_towards(state, action, float(expected))
        if np.abs(agent.values - before).max() < 1e-12:
            return
    raise AssertionError("the updates do not settle")


# Exact values


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_the_expected_update_of_expected_sarsa_settles_at_the_values_of_its_own_policy(epsilon: float) -> None:
    """At ε = 0 these are the best values, and the updates are those of Q-learning."""
    mdp = chance_mdp()
    agent = ExpectedSARSA(Chance(), ExpectedSARSAConfig(gamma=0.9, step_size=1.0, epsilon=epsilon))
    sweep_to_the_end(agent, mdp, agent.target)
    policy = np.array([agent.probabilities(state, epsilon) for state in range(4)])
    truth = exact.policy_values(mdp, policy, gamma=0.9).action
    np.testing.assert_allclose(agent.values, truth, atol=1e-9)
    best = exact.optimal_values(mdp, gamma=0.9).action
    assert (np.abs(truth - best).max() < 1e-9) == (epsilon == 0)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("env_class", [MazeStateEnv, GridWorldStateEnv])
def test_every_method_finds_the_best_policy(name: str, env_class: Any) -> None:
    """Its greedy return on every problem is the best one, by dynamic programming."""
    env = env_class(layout=CORRIDOR, step_reward=-0.1) if env_class is MazeStateEnv else env_class(n=2)
    cls, config = tabular_classes(name)
    agent = cls(env, config(gamma=0.9, step_size=0.5, epsilon=1.0, epsilon_end=0.05, epsilon_steps=30, seed=1))
    agent.learn(env, steps=60)
    best = exact.optimal_values(exact.state_mdp(env), horizon=env.max_steps).state[-1]
    for row in agent.evaluate(env, greedy=True).rows:
        assert row.score == pytest.approx(best[env.dataset.start(row.problem)])


# What methods have in common


def played(agent: ActionValueAgent, env: MazeStateEnv, steps: int) -> list[list[Transition]]:
    """Let an agent learn, and return the transitions of each episode."""
    episodes: list[list[Transition]] = []
    begin, observe = agent.begin_episode, agent.observe

    def begins(state: int) -> None:
        episodes.append([])
        begin(state)

    def observes(transition: Transition) -> None:
        episodes[-1].append(transition)
        observe(transition)

    agent.begin_episode, agent.observe = begins, observes  # type: ignore[method-assign]
    agent.learn(env, steps=steps)
    return episodes


def relearn(agent: ActionValueAgent, episodes: list[list[Transition]]) -> np.ndarray:
    """Show an agent given episodes, and return its values."""
    for episode in episodes:
        agent.begin_episode(episode[0].state)
        for transition in episode:
            agent.observe(transition)
        agent.end_episode(episode)
    return agent.values


@pytest.fixture
def env() -> MazeStateEnv:
    """A maze with a price of moves, where many episodes reach the time limit."""
    return MazeStateEnv(layout=CORRIDOR, step_reward=-0.25, max_steps=12)


def test_expected_sarsa_about_the_greedy_policy_is_q_learning(env: MazeStateEnv) -> None:
    q_learning = QLearning(env, QLearningConfig(epsilon=0.4, step_size=0.3))
    episodes = played(q_learning, env, steps=8)
    greedy = ExpectedSARSA(env, ExpectedSARSAConfig(epsilon=0.4, step_size=0.3, target_epsilon=0.0))
    np.testing.assert_allclose(relearn(greedy, episodes), q_learning.values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("steps_ahead", [12, 50, None])
def test_sarsa_that_looks_past_the_end_is_monte_carlo(env: MazeStateEnv, steps_ahead: int | None) -> None:
    monte_carlo = MonteCarlo(env, MonteCarloConfig(epsilon=0.4, step_size=0.3))
    episodes = played(monte_carlo, env, steps=8)
    sarsa = SARSA(env, SARSAConfig(epsilon=0.4, step_size=0.3, steps_ahead=steps_ahead))
    np.testing.assert_array_equal(relearn(sarsa, episodes), monte_carlo.values)


def test_n_steps_by_hand(env: MazeStateEnv) -> None:
    """γ = 0.5, α = 1, values of 8 everywhere: two steps ahead, then what is left of an episode that ends, or is cut off."""
    settings: dict[str, Any] = {"gamma": 0.5, "step_size": 1.0, "initial_value": 8.0, "epsilon": 0.0}
    episode = [Transition(state, 0, 1.0, state + 1, False, False) for state in range(3)]
    ends = [*episode[:2], episode[2]._replace(terminated=True)]
    values = relearn(SARSA(env, SARSAConfig(steps_ahead=2, **settings)), [ends])
    assert values[:3, 0].tolist() == [1 + 0.5 + 0.25 * 8, 1 + 0.5, 1]
    cut = [*episode[:2], episode[2]._replace(truncated=True)]
    values = relearn(SARSA(env, SARSAConfig(steps_ahead=2, **settings)), [cut])
    assert values[:3, 0].tolist() == [1 + 0.5 + 0.25 * 8, 1 + 0.5 + 0.25 * 8, 1 + 0.5 * 8]
    assert values[3, 0] == 8


@pytest.mark.parametrize(("first_visit", "expected"), [(True, 7.0), (False, 4.0)])
def test_first_visits_by_hand(env: MazeStateEnv, first_visit: bool, expected: float) -> None:
    """One action, made at the start and again before a last reward: its mean return is (7 + 1) / 2, or that of the first."""
    agent = MonteCarlo(env, MonteCarloConfig(gamma=1.0, step_size=1.0, step_decay=1.0, first_visit=first_visit))
    episode = [Transition(0, 0, 6.0, 0, False, False), Transition(0, 0, 1.0, 1, True, False)]
    assert relearn(agent, [episode])[0, 0] == expected


def test_two_tables_by_hand() -> None:
    """What one table says of the action that the other finds best."""
    agent = DoubleQLearning(Chance(), DoubleQLearningConfig(gamma=0.5))
    agent.values[1], agent.other_values[1] = [1, 3, 2], [7, 4, 9]
    enters = Transition(0, 0, 1.0, 1, False, False)
    assert agent.target(enters, agent.values, agent.other_values) == 1 + 0.5 * 4
    assert agent.target(enters, agent.other_values, agent.values) == 1 + 0.5 * 2


def test_both_tables_learn_equally_often_and_each_alone() -> None:
    agent = DoubleQLearning(Chance(), DoubleQLearningConfig(step_size=1.0))
    learned = 0
    for _ in range(400):
        before = agent.values.copy()
        agent.observe(Transition(0, 0, float(agent.counts.sum() + 1), 0, True, False))
        learned += int((before != agent.values).any())
    assert 150 < learned < 250  # 200, with a standard deviation of 10


# Settings, checkpoints


def test_exploration_falls_linearly(env: MazeStateEnv) -> None:
    agent = QLearning(env, QLearningConfig(epsilon=0.9, epsilon_end=0.1, epsilon_steps=4))
    seen = []
    for _ in range(6):
        seen.append(agent.epsilon())
        agent.steps += 1
    assert seen == pytest.approx([0.9, 0.7, 0.5, 0.3, 0.1, 0.1])


def test_exploration_that_does_not_fall_is_refused_before_learning() -> None:
    env = Chance()
    agent = QLearning(env, QLearningConfig(epsilon_steps=10))  # so that agents saved with it can be loaded
    with pytest.raises(InvalidArgumentError, match="epsilon_steps=10 has no effect, since epsilon stays as it is: set"):
        agent.learn(env, steps=1)
    agent = QLearning(env, QLearningConfig(epsilon=0.001, epsilon_end=0.01))
    with pytest.raises(InvalidArgumentError, match=r"epsilon_end must be at most epsilon=0.001, .* got 0.01"):
        agent.learn(env, steps=1)
