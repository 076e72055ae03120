"""A mixture is its parts: each row behaves as it does in its part alone, and what can't be mixed is refused."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import pytest

import rlvr_envs
from rlvr_envs import FixedActions, MessageEnv, Reply, TokenVectorEnv, Turn
from rlvr_envs.testing import check_token_env
from verifiers import InvalidArgumentError, Outcome, Problem, RLVRError, UnknownNameError, Verdict, verify_batch

NAMES = ("Addition", "GuessNumber", "Sort")
ROWS = 6


def part(name: str, num_envs: int | None = ROWS, **settings: Any) -> Any:
    settings = {"tokenizer": "byte", **settings}
    if num_envs is None:
        return gymnasium.make(f"rlvr/{name}-v0", **settings).unwrapped
    return gymnasium.make_vec(f"rlvr/{name}-v0", num_envs=num_envs, **settings)


def mixture(num_envs: int | None = ROWS, weights: Sequence[float] = (3, 1, 1), **settings: Any) -> Any:
    return rlvr_envs.mix({name: part(name, num_envs, **settings) for name in NAMES}, weights)


def test_it_passes_the_checks_of_environments_of_ones_own() -> None:
    check_token_env(lambda: mixture(None), episodes=12)
    check_token_env("Addition,GuessNumber,Sort", episodes=12, tokenizer="byte", mix=(3, 1, 1))


@pytest.mark.parametrize("verification", ["sync", "deferred"])
def test_every_row_is_that_of_its_part_alone(verification: str) -> None:
    mixed = mixture(verification=verification)
    alone = {name: part(name, verification=verification) for name in NAMES}
    data, generator = mixed.streams.dataset, np.random.default_rng(0)
    assert mixed.streams.buffer_tokens == max(env.streams.buffer_tokens for env in alone.values())
    for _ in range(3):
        problems = generator.integers(len(data), size=ROWS)
        problems[:3] = [data.starts[number] + generator.integers(10) for number in range(3)]
        owners = [data.locate(int(problem)) for problem in problems]
        _, info = mixed.reset(options={"problems": problems})
        for number, name in enumerate(NAMES):
            own = np.array([index if owner == number else 0 for owner, index in owners])
            _, said = alone[name].reset(options={"problems": own})
            for row in rows_of(owners, number):
                assert info["problem_id"][row] == f"{name}/{said['problem_id'][row]}"
        live = True
        while live:
            tokens = generator.integers(48, 58, size=(ROWS, 3))
            tokens[generator.random((ROWS, 3)) < 0.3] = mixed.tokenizer.eos_token
            results = {name: settled(env, env.step_many(tokens, np.full(ROWS, 3))) for name, env in alone.items()}
            result = settled(mixed, mixed.step_many(tokens, np.full(ROWS, 3)))
            for number, name in enumerate(NAMES):
                width = alone[name].streams.buffer_tokens
                for row in rows_of(owners, number):
                    own, (*expected, problem_id) = at_row(result, row), at_row(results[name], row)
                    assert own == [*expected, problem_id and f"{name}/{problem_id}"]
                    assert not result[0]["tokens"][row, width:].any()
            live = bool(mixed.streams.live.any())


def at_row(result: Any, row: int) -> list[Any]:
    """What a step makes of one row; its verdict and id, where the episode ends."""
    observation, reward, terminated, truncated, info = result
    length = int(observation["length"][row, 0])
    seen = [observation["tokens"][row, :length].tolist(), length, reward[row], terminated[row], truncated[row]]
    at_end = [info[name][row] for name in ("verdict", "completion", "problem_id") if terminated[row] or truncated[row]]
    return [*seen, info["consumed"][row], *(at_end or [None] * 3)]


def rows_of(owners: Sequence[tuple[int, int]], part_number: int) -> list[int]:
    return [row for row, (owner, _) in enumerate(owners) if owner == part_number]


def settled(env: TokenVectorEnv, result: Any) -> Any:
    """A result with what came later of it."""
    observation, reward, terminated, truncated, info = result
    while "pending" in info:
        observation, late, ended, cut, more = env.wait()
        reward, terminated, truncated = reward + late, terminated | ended, truncated | cut
        info = {**info, **more, "consumed": info["consumed"]}
        info.pop("pending") if "pending" not in more else None
    return observation, reward, terminated, truncated, info


def test_states_forks_and_copies_go_on_as_the_original_does() -> None:
    env = mixture()
    data = env.streams.dataset
    env.reset(options={"problems": np.array([data.starts[1] + row if row % 2 else row for row in range(ROWS)])})
    env.step(np.full(ROWS, ord("4")))
    state = env.get_state(1)
    assert state.problem_index == data.starts[1] + 1
    twin, pickled = copy.deepcopy(env), pickle.loads(pickle.dumps(env.streams))
    env.fork(1, [0, 2])  # rows of another part
    other = mixture()
    other.reset(seed=1)
    other.set_state(3, state)
    results = [one.step(np.full(ROWS, ord("2"))) for one in (env, other, twin)]
    for result, row in zip(results, (0, 3, 1), strict=True):
        assert np.array_equal(result[0]["tokens"][row], results[2][0]["tokens"][1])
        assert result[0]["length"][row] == results[2][0]["length"][1]
    assert np.array_equal(results[0][0]["tokens"][0], results[0][0]["tokens"][2])
    pickled.advance(np.full((ROWS, 1), ord("2")))
    assert np.array_equal(pickled.tokens, twin.streams.tokens)
    with pytest.raises(InvalidArgumentError, match="does not exist"):
        env.reset(options={"problems": np.full(ROWS, len(data))})


@pytest.mark.parametrize("longest", ["fine", "failing"])
def test_a_transition_that_fails_in_one_part_leaves_the_rows_of_all_as_they_were(longest: str) -> None:
    calls: list[int] = []

    def failing(turns: Sequence[Turn], problem: Problem) -> Reply:
        calls.append(1)
        raise KeyboardInterrupt  # not an error of the interaction, which would end the episode

    def fine(turns: Sequence[Turn], problem: Problem) -> Reply:
        return Reply(())

    tokens = {name: 64 if name == longest else 8 for name in ("fine", "failing")}
    settings = {"max_inserted_tokens": 8}
    env = rlvr_envs.mix(
        {
            "fine": part("Addition", 2, interaction=fine, max_new_tokens=tokens["fine"], **settings),
            "failing": part("Sort", 2, interaction=failing, max_new_tokens=tokens["failing"], **settings),
        }
    )
    env.reset(options={"problems": np.array([0, env.streams.dataset.starts[1]])})
    before = [env.streams.tokens.copy(), env.streams.length.copy(), env.get_state(0).turns]
    with pytest.raises(KeyboardInterrupt):
        env.step(np.full(2, env.tokenizer.eos_token))
    assert calls
    after = [env.streams.tokens, env.streams.length, env.get_state(0).turns]
    assert all(np.array_equal(one, other) for one, other in zip(before[:2], after[:2], strict=True))
    assert before[2] == after[2] == ()


def test_the_verifier_judges_each_completion_as_its_part_does() -> None:
    batches: list[int] = []

    class Lengths:
        def __call__(self, completion: str, problem: Problem) -> Verdict:
            return Verdict(len(completion) / 10, Outcome.SCORED)

        def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
            batches.append(len(completions))
            return [self(*pair) for pair in zip(completions, problems, strict=True)]

    alone = {"Addition": part("Addition"), "Sort": part("Sort"), "lengths": part("Sort", verifier=Lengths())}
    env = rlvr_envs.mix(alone)
    data, verifier = env.streams.dataset, env.streams.rules.verifier
    problems = [data[start + index] for index in range(5) for start in data.starts[:-1]]
    answers = [str(problem.reference) for problem in problems]
    completions = [answer if row % 4 else "no" for row, answer in enumerate(answers)]
    expected = [
        verify_batch(env.streams.parts[row % 3].rules.verifier, [completion], [problem])[0]
        for row, (completion, problem) in enumerate(zip(completions, problems, strict=True))
    ]
    assert {verdict.outcome for verdict in expected} >= {Outcome.CORRECT, Outcome.SCORED}
    assert [verifier(*pair) for pair in zip(completions, problems, strict=True)] == expected
    batches.clear()
    assert verifier.verify_batch(completions, problems) == expected
    assert batches == [5]


def test_episodes_of_messages_are_those_of_a_part() -> None:
    with pytest.raises(InvalidArgumentError, match=r"\['Addition', 'GuessNumber', 'Sort'\] one by one"):
        MessageEnv(mixture().streams)


def test_what_cannot_be_mixed_is_refused_when_it_is_made() -> None:
    digits = np.zeros(part("Sort", 1).streams.vocab_size, dtype=np.int8)
    digits[48:58] = 1
    for others, message in (
        ({"Sort": part("Sort", tokenizer="char")}, "their tokenizers differ"),
        ({"Sort": part("Sort", legal_actions=FixedActions(digits))}, "action spaces differ"),
        ({"Sort": part("Sort", 2)}, "6 and 2 rows"),
        ({"Sort": part("Sort", None)}, "a TaskEnv|a SortEnv"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            rlvr_envs.mix({"Addition": part("Addition"), **others})
    for weights in ((1, 2), (1, -1, 1), (1, float("nan"), 1)):
        with pytest.raises(InvalidArgumentError, match="a positive weight for each of its parts"):
            mixture(weights=weights)
    made: Any = rlvr_envs.environment_class("Addition,Sort")
    with pytest.raises(InvalidArgumentError, match="names one environment twice"):
        rlvr_envs.environment_id("Addition,Addition")
    with pytest.raises(UnknownNameError, match="Did you mean 'Sort'"):
        made.make_vec(2, **{"Sorts.max_new_tokens": 3})
    with pytest.raises(TypeError, match=r"^Sort: .* 'digits'\..* alone begins with its name: Addition\.digits=1$"):
        made.make_vec(2, digits=1)
    with pytest.raises(RLVRError, match="several environments, and one is needed here"):
        _ = made.task
    limits = made.make_vec(2, **{"Sort.max_new_tokens": 3, "Addition.max_new_tokens": 5}).streams.parts
    assert [one.rules.max_new_tokens for one in limits] == [5, 3]
