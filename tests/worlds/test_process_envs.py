"""Worlds, bandits, cliff, ice and cards: the token environments play the processes, and these are the known ones."""

from __future__ import annotations

from collections import Counter
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

import rlvr_envs
import verifiers
from agents.runs.files.json_files import plain, to_json
from rlvr_envs import exact
from rlvr_envs.tasks import Bandit, BlackjackHand, CliffWalk, ContextualBandit, FrozenLake
from rlvr_envs.worlds import Branch, Process, Walk, World, world_of
from rlvr_envs.worlds.process_rules import ProcessVerifier
from rlvr_envs.worlds.rules import action_tokens
from verifiers import InvalidArgumentError, Outcome, Problem, UnknownArgumentError

PLAYED: list[tuple[str, dict[str, Any]]] = [
    ("Bandit", {}),
    ("Bandit", {"means": (0.25, 0.5), "rewards": "normal", "noise": 2.0}),
    ("Bandit", {"pulls": 4}),
    ("Bandit", {"pulls": 3, "rewards": "normal"}),
    ("ContextualBandit", {"bits": 2, "arms": 3, "split": "test"}),
    ("ContextualBandit", {"bits": 2, "arms": 3, "pulls": 3}),
    ("CliffWalk", {}),
    ("FrozenLake", {"seed": 3}),
    ("BlackjackHand", {}),
]


WALKS = [("GridWorld", {}), ("GridWorld", {"n": 3, "split": "test"}), ("Maze", {"step_reward": -0.3})]


def state_env(name: str, **options: Any) -> Any:
    return gymnasium.make(f"rlvr/{name}State-v0", **options).unwrapped


def token_env(name: str, **options: Any) -> Any:
    return gymnasium.make(f"rlvr/{name}-v0", **options).unwrapped


@pytest.mark.parametrize("env_id", rlvr_envs.STATE_ENVIRONMENTS)
def test_gymnasiums_checker_accepts_it(env_id: str) -> None:
    check_env(gymnasium.make(env_id, render_mode="ansi").unwrapped, skip_render_check=False)


@pytest.mark.parametrize(("name", "options"), [*PLAYED, *WALKS])
def test_episodes_are_those_of_the_plain_environment(name: str, options: dict[str, Any]) -> None:
    """Same seed, same problem; after each action the same reward and flags, and the stream ends with the state's name.

    In a walk, which has no names in its stream, the cell is that of the moves.
    """
    plain, tokens = state_env(name, **options), token_env(name, **options)
    process, actions = plain.process, np.random.default_rng(0)
    token_of, walk = action_tokens(tokens.tokenizer, process.actions), Walk(tokens.tokenizer)
    ends = set()
    for seed in range(8 if name == "CliffWalk" else 25):
        state, info = plain.reset(seed=seed)
        observation, told = tokens.reset(seed=seed)
        assert info == {key: told[key] for key in info}
        prompt, problem = int(observation["length"][0]), tokens.streams.dataset[info["problem_index"]]
        over, regret = False, 0.0
        while not over:
            stream = observation["tokens"][: observation["length"][0]]
            if isinstance(problem.reference, World):
                assert process.states[state].startswith("{}{}".format(*walk.cell(stream, prompt, problem)))
            else:
                assert rlvr_envs.decode(tokens.tokenizer, stream).endswith(f"{process.states[state]}:")
            action = int(actions.integers(len(process.actions)))
            state, reward, *flags, said = plain.step(action)
            observation, paid, *ended, info = tokens.step(token_of[action])
            assert (reward, flags) == (paid, ended)
            over, regret = any(flags), regret + said.get("regret", 0.0)
        ends.add(tuple(flags))
        assert info["verdict"].detail.get("regret", 0.0) == pytest.approx(regret, abs=1e-12)
        assert ("regret" in info["verdict"].detail) == ("regret" in said) == ("Bandit" in name)
        assert (name, options) in WALKS or info["verdict"].detail["state"] == process.states[state]
    assert (name, options) not in WALKS or ends == {(True, False), (False, True)}


def test_the_same_luck_meets_the_same_actions_and_independent_luck_others() -> None:
    """Rewards of two arms in the same problem are uncorrelated, within six standard errors."""
    dataset = Bandit(means=(0.5, 0.5))
    draws = np.array([[dataset.process.draw(0, arm, dataset.luck(at), 0)[1] for arm in (0, 1)] for at in range(4000)])
    assert abs(np.corrcoef(draws.T)[0, 1]) < 6 / np.sqrt(4000)
    again = [dataset.process.draw(0, 0, dataset.luck(at), 0)[1] for at in range(4000)]
    assert again == draws[:, 0].tolist()


@pytest.mark.parametrize(
    ("dataset", "env_id", "options", "order"),
    [
        (FrozenLake(), "FrozenLake-v1", {"map_name": "4x4"}, (0, 1, 2, 3)),
        (FrozenLake(slip=0.0), "FrozenLake-v1", {"map_name": "4x4", "is_slippery": False}, (0, 1, 2, 3)),
        (CliffWalk(), "CliffWalking-v1", {}, (3, 2, 1, 0)),
    ],
)
def test_the_tables_are_those_of_gymnasium(
    dataset: Any, env_id: str, options: dict[str, Any], order: tuple[int, ...]
) -> None:
    """Each state's branches, merged, by Gymnasium's numbers of our actions; its moves after the end are left out."""
    process = dataset.process
    known: Any = gymnasium.make(env_id, **options).unwrapped
    compared = 0
    for state, actions in enumerate(process.branches):
        for action, branches in enumerate(actions):
            theirs: Counter[tuple[int, float, bool]] = Counter()
            for probability, target, reward, over in known.P[state][order[action]]:
                theirs[int(target), float(reward), bool(over)] += probability
            ours = {(b.state, b.reward, process.ends_at(b.state)): b.probability for b in branches}
            assert ours.keys() == theirs.keys()
            assert all(abs(ours[key] - theirs[key]) < 1e-12 for key in ours)
            compared += 1
    assert compared == {"FrozenLake-v1": 4 * 11, "CliffWalking-v1": 4 * 37}[env_id]


def test_the_best_path_along_the_cliff_returns_minus_13() -> None:
    mdp = exact.state_mdp(state_env("CliffWalk"))
    assert exact.expected_return(mdp, exact.optimal_values(mdp)) == -13
    verdict = ProcessVerifier()(CliffWalk().gold(0), CliffWalk()[0])
    assert (verdict.outcome, verdict.score) == (Outcome.CORRECT, -1.0)


STICKS = {False: "17 13 13 12 12 12 17 17 17 17", True: "19 18 18 18 18 18 18 18 19 19"}
"""The lowest total at which Sutton & Barto 2018, figure 5.2 sticks, against ace, 2, ..., 10, without and with a usable ace."""


@pytest.mark.parametrize("soft", [False, True])
def test_the_best_policy_at_cards_is_the_known_one(soft: bool) -> None:
    env = state_env("BlackjackHand")
    values = exact.optimal_values(exact.state_mdp(env))
    for shown, least in zip(["A", *"23456789", "10"], map(int, STICKS[soft].split()), strict=True):
        for total in range(12 if soft else 11, 22):
            hit, stick = values.action[env.process.index[f"{total}{'s' if soft else ''}/{shown}"]]
            assert (stick > hit) == (total >= least), (total, shown)


def test_values_of_problems_are_those_of_their_starts() -> None:
    env = token_env("BlackjackHand", size=40)
    mdp = exact.state_mdp(env)
    values = exact.optimal_values(mdp)
    starts = [env.streams.dataset[at].reference.state for at in range(40)]  # type: ignore[attr-defined] # a ProcessStart
    np.testing.assert_allclose(exact.optimal_returns(env), values.state[starts], atol=1e-12)
    with pytest.raises(InvalidArgumentError, match="Addition is not a finite decision process"):
        exact.state_mdp(token_env("Addition"))


def test_arm_means_are_the_expected_rewards() -> None:
    for dataset in (Bandit(instance=5), Bandit(rewards="normal"), Bandit(means=(0.0, 1.0))):
        means = [dataset.process.mean(0, arm) for arm in range(len(dataset.arm_means))]
        assert means == pytest.approx(dataset.arm_means, abs=1e-15)
        assert dataset.gold(0) == dataset.process.actions[int(np.argmax(means))]
    context = ContextualBandit(instance=2)
    mdp = exact.state_mdp(state_env("ContextualBandit", instance=2))
    np.testing.assert_allclose(mdp.reward[:-2], context.arm_means, atol=1e-15)
    assert exact.expected_return(mdp, exact.optimal_values(mdp)) == pytest.approx(context.arm_means.max(axis=1).mean())


@pytest.mark.parametrize("rewards", ["bernoulli", "normal"])
def test_several_pulls_are_worth_as_many_times_one(rewards: str) -> None:
    """Exact values, from the state before the first pull and between pulls; the regret of a wrong arm counts each time."""
    for name in ("Bandit", "ContextualBandit"):
        one, four = (state_env(name, rewards=rewards, pulls=pulls) for pulls in (1, 4))
        starts = len(one.dataset.starts)
        single, several = (exact.optimal_values(exact.state_mdp(env)) for env in (one, four))
        np.testing.assert_allclose(several.state[:starts], 4 * single.state[:starts], atol=1e-12)
        last = several.state[-2 - (len(several.state) - 2 - starts) // 3 : -2].reshape(starts, -1)
        np.testing.assert_allclose(last, single.state[:starts, None] * np.ones(last.shape), atol=1e-12)
    env = token_env("Bandit", means=(0.0, 1.0), pulls=3)
    env.reset(seed=0)
    arms = action_tokens(env.tokenizer, "ab")
    paid = [env.step(arms[arm])[1] for arm in (0, 1)]
    observation, reward, terminated, _, info = env.step(arms[0])
    written = rlvr_envs.decode(env.tokenizer, observation["tokens"][: observation["length"][0]])
    assert (written, [*paid, reward], terminated) == (":a1=0:b2=1:a", [0.0, 1.0, 0.0], True)
    assert (info["verdict"].detail["regret"], info["verdict"].outcome) == (2.0, Outcome.INCORRECT)


def test_judging_without_an_environment() -> None:
    problem = Bandit(means=(0.0, 1.0))[0]
    assert verifiers.make("rlvr_envs.worlds.process_rules:ProcessVerifier")("b", problem).score == 1
    wrong = ProcessVerifier()("I pull a!", problem)
    assert (wrong.score, wrong.outcome, wrong.answer, wrong.detail["regret"]) == (0.0, Outcome.INCORRECT, "a", 1.0)
    assert ProcessVerifier()("?", problem).outcome is Outcome.NO_ANSWER
    with pytest.raises(InvalidArgumentError, match="expected a ProcessStart"):
        ProcessVerifier()("a", Problem("x", "", "4"))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Bandit(means=(0.5, 1.5)), "from 0 to 1"),
        (lambda: Bandit(means=(float("nan"), 1.0), rewards="normal"), "finite|a number"),
        (lambda: ContextualBandit(pulls=101), "pulls"),
        (lambda: FrozenLake(slip=1.5), "slip must be from 0 to 1"),
        (lambda: FrozenLake(layout="SFFF\nFHFH\nFFFH\nHFFG"), "letters of Gymnasium: draw its holes H as traps T"),
        (lambda: FrozenLake(layout="+---+\n| H |\n+---+"), "must have the form .* T a trap, .*; got '| H |'"),
        (lambda: Bandit(noise=5.0), "noise=5.0 has no effect on rewards 0 and 1"),
        (lambda: Bandit(means=(0.2, 0.8), arms=3), "means has 2 arms and arms is 3"),
        (lambda: Bandit(means=(0.2, 0.8), instance=3), "instance=3 has no effect"),
        (lambda: token_env("Bandit", pulls=10, max_new_tokens=3), "max_new_tokens must be at least 10 here"),
        (lambda: state_env("ContextualBandit", pulls=10, max_steps=3), "max_steps must be at least 10 here"),
    ],
)
def test_arguments_out_of_range_are_named(make: Any, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        make()


def test_a_record_of_a_problem_is_short() -> None:
    """What `rlvr eval` writes of a reference: the data set's arguments, not its table of transitions."""
    written = to_json(plain(BlackjackHand(seed=7)[3].reference))
    assert len(written) < 200
    assert '"seed": 7' in written


@pytest.mark.parametrize(("name", "options"), WALKS)
def test_values_are_those_of_the_worlds(name: str, options: dict[str, Any]) -> None:
    """The values of a world's process, in the states of the whole."""
    env = state_env(name, **options)
    whole = exact.optimal_values(exact.state_mdp(env), gamma=0.9)
    for index in range(min(env.num_problems, 20)):
        world = world_of(env.dataset[index])
        mdp = exact.world_mdp(world)
        alone = exact.expected_return(mdp, exact.optimal_values(mdp, gamma=0.9))
        np.testing.assert_allclose(whole.state[env.dataset.start(index)], alone, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "options"), [("GridWorld", {"n": 3}), ("Maze", {}), ("FrozenLake", {}), ("CliffWalk", {})]
)
@pytest.mark.parametrize("gamma", [0.0, 0.95])
def test_policy_iteration_finds_the_values_of_value_iteration(name: str, options: dict[str, Any], gamma: float) -> None:
    mdp = exact.state_mdp(state_env(name, **options))
    policy, values = exact.policy_iteration(mdp, gamma=gamma)
    optimal = exact.optimal_values(mdp, gamma=gamma)
    np.testing.assert_allclose(values.action, optimal.action, atol=1e-9)
    assert ((policy == 0) | (policy == 1)).all()
    assert (exact.greedy_policy(optimal)[policy == 1] > 0).all()


def test_policy_iteration_refuses_what_may_not_end() -> None:
    with pytest.raises(InvalidArgumentError, match=r"discount in \[0, 1\), got 1.0"):
        exact.policy_iteration(exact.state_mdp(state_env("Maze")), gamma=1.0)


def test_bad_input_is_named() -> None:
    env = state_env("Maze")
    with pytest.raises(ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(InvalidArgumentError, match="an integer from 0 to 3, got 4"):
        env.step(4)
    with pytest.raises(InvalidArgumentError, match="problem 1 does not exist"):
        env.reset(options={"problem": 1})
    with pytest.raises(UnknownArgumentError, match="max_step"):
        state_env("Maze", max_step=3)
    with pytest.raises(InvalidArgumentError, match="max_steps"):
        state_env("Maze", max_steps=0)


def test_an_action_against_the_odds_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="action 'R' in state 'a' must sum to 1"):
        Process(("a", "b"), "R", (((Branch(0.5, 1),),), ()))


def test_draws_have_the_probabilities_of_the_branches() -> None:
    """Within six standard errors, whatever the luck: 20 000 draws that are the same on every machine."""
    chances = (0.1, 0.6, 0.3)
    branches = tuple(Branch(chance, state) for state, chance in enumerate(chances))
    process = Process(("a", "b", "c"), "R", ((branches,), (), ()))
    drawn = [process.draw(0, 0, luck=3, step=step)[0] for step in range(20_000)]
    shares = np.bincount(drawn, minlength=3) / len(drawn)
    errors = np.sqrt(np.multiply(chances, np.subtract(1, chances)) / len(drawn))
    assert (np.abs(shares - chances) < 6 * errors).all()


def test_noise_is_normal() -> None:
    process = Process(("a", "b"), "R", (((Branch(1.0, 1, reward=2.0, noise=3.0),),), ()))
    rewards = np.array([process.draw(0, 0, luck=luck, step=0)[1] for luck in range(20_000)])
    error = 3 / np.sqrt(len(rewards))
    assert abs(rewards.mean() - 2) < 6 * error
    assert abs(rewards.std() - 3) < 6 * error
    assert abs((rewards < 5).mean() - 0.8413) < 6 * 0.5 / np.sqrt(len(rewards))
