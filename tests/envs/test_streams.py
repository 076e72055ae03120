"""The transition, argued from hand-made cases and from one property: chunks are steps."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from hypothesis import given, settings, strategies as st

import verifiers
from rlvr_envs import FixedActions, Reply, StreamState, TokenEnv, TokenVectorEnv, Turn
from tests.envs.helpers import EOS, CountLetters, says, streams, text_tokens, two_bs, vector_env, visible
from verifiers import IllegalTokenError, InvalidArgumentError, Outcome, Problem, Verdict

A, B, C = text_tokens("abc")


def single(**rules: Any) -> TokenEnv:
    return TokenEnv(streams(**rules))


def test_an_episode_step_by_step() -> None:
    env = single()
    observation, info = env.reset(options={"problem": 0})
    assert visible(observation) == text_tokens("Q")
    assert info == {"problem_id": "p0", "problem_index": 0}
    observation, reward, terminated, truncated, info = env.step(A)
    assert visible(observation) == [*text_tokens("Q"), A]
    assert (reward, terminated, truncated, info["consumed"]) == (0.0, False, False, 1)
    observation, reward, terminated, truncated, info = env.step(EOS)
    assert visible(observation) == [*text_tokens("Q"), A, EOS]
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert (info["completion"], info["problem_id"], info["verdict"].score) == ("a", "p0", 1.0)
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step(A)


@given(
    patterns=st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3),
    text=st.text("abc", max_size=16),
    cuts=st.lists(st.integers(1, 4), max_size=16),
)
def test_the_matcher_agrees_with_a_search_after_every_byte(patterns: list[str], text: str, cuts: list[int]) -> None:
    from rlvr_envs.stop_strings import StopStrings

    pieces, rest = [], text
    for cut in cuts:
        pieces.append(rest[:cut])
        rest = rest[cut:]
    matcher = StopStrings(patterns, lambda token: pieces[token].encode(), max(len(pieces), 1))
    state, seen = np.zeros(1, dtype=np.int32), ""
    for token, piece in enumerate(pieces):
        state, seen = matcher.advance(state, np.array([token])), seen + piece
        assert (state[0] == matcher.matched) == any(pattern in seen for pattern in patterns)
    ends = [(seen.find(p) + len(p), seen.find(p)) for p in patterns if p in seen]
    assert matcher.cut(seen.encode()).decode() == (seen[: min(ends)[1]] if ends else seen)


RULES = st.fixed_dictionaries(
    {
        "max_new_tokens": st.integers(1, 6),
        "stop": st.sampled_from([(), ("ab",), ("ba", "c"), (A,)]),
        "process_scorer": st.sampled_from([None, lambda tokens, start, of: (tokens[-1] == A) - 0.01 * len(tokens)]),
        "end_condition": st.sampled_from([None, two_bs]),
    }
)


@settings(max_examples=150)
@given(
    rules=RULES,
    seeds=st.lists(st.integers(0, 9), min_size=3, max_size=3),
    tokens=st.lists(st.lists(st.sampled_from([A, B, C, EOS]), min_size=7, max_size=7), min_size=3, max_size=3),
    widths=st.lists(st.integers(1, 4), min_size=7, max_size=7),
)
def test_any_split_into_chunks_equals_steps_equals_single_environments(
    rules: dict[str, Any], seeds: list[int], tokens: list[list[int]], widths: list[int]
) -> None:
    chunked = _play_vector(vector_env(3, **rules), seeds, np.array(tokens), widths)
    stepped = _play_vector(vector_env(3, **rules), seeds, np.array(tokens), [1] * 7)
    alone = [_play_single(single(**rules), seed, row) for seed, row in zip(seeds, tokens, strict=True)]
    assert chunked == stepped == alone
    for row, (_, end, _) in zip(tokens, alone, strict=True):
        assert end[:3] == _expected_end(row, rules)


def _expected_end(tokens: list[int], rules: dict[str, Any]) -> tuple[bool, bool, str]:
    """Read the rules again, one token after the other: whatever ends an episode by itself comes before the budget."""
    for made in range(1, rules["max_new_tokens"] + 1):
        text = bytes(token for token in tokens[:made] if token < 256).decode()
        if tokens[made - 1] in (EOS, *rules["stop"]):
            return True, False, text.removesuffix("a") if tokens[made - 1] == A else text
        for stop in rules["stop"]:
            if isinstance(stop, str) and text.endswith(stop):
                return True, False, text.removesuffix(stop)
        if rules["end_condition"] is not None and text.count("b") >= 2:
            return True, False, text
    return False, True, text


def _play_vector(env: TokenVectorEnv, seeds: list[int], tokens: np.ndarray, widths: list[int]) -> list[Any]:
    env.reset(seed=seeds)
    rewards: list[list[float]] = [[] for _ in seeds]
    ends: list[Any] = [None] * len(seeds)
    start = 0
    for width in widths:
        chunk = tokens[:, start : start + width]
        if chunk.shape[1] == 0:
            break
        observation, reward, terminated, truncated, info = env.step_many(chunk, np.full(3, chunk.shape[1]))
        start += width
        for row in range(len(seeds)):
            rewards[row] += info["rewards"][row, : info["consumed"][row]].tolist()
            total = 0.0
            for value in info["rewards"][row]:
                total += value
            assert reward[row] == total
            if terminated[row] or truncated[row]:
                assert ends[row] is None, "an end is reported once"
                ends[row] = (bool(terminated[row]), bool(truncated[row]), info["completion"][row], info["verdict"][row])
    return [(rewards[row], ends[row], visible(observation, row)) for row in range(len(seeds))]


def _play_single(env: TokenEnv, seed: int, tokens: list[int]) -> Any:
    observation, _ = env.reset(seed=seed)
    rewards: list[float] = []
    for token in tokens:
        observation, reward, terminated, truncated, info = env.step(token)
        rewards.append(reward)
        if terminated or truncated:
            end = (terminated, truncated, info["completion"], info["verdict"])
            return rewards, end, visible(observation)
    return rewards, None, visible(observation)


def test_a_row_that_ended_is_left_alone_until_it_is_refilled() -> None:
    env = vector_env(2)
    env.reset(options={"problems": np.array([0, 1])})
    env.step([EOS, A])
    before = env.streams.tokens.copy()
    _, reward, terminated, truncated, info = env.step([-5, A])
    assert (reward[0], terminated[0], truncated[0], info["consumed"].tolist()) == (0.0, False, False, [0, 1])
    assert (env.streams.tokens[0] == before[0]).all()
    observation, info = env.reset(options={"problems": np.array([3, 99]), "reset_mask": np.array([True, False])})
    assert visible(observation, 0) == text_tokens("QQQQ")
    assert visible(observation, 1) == [*text_tokens("QQ"), A, A]
    assert info["_problem_id"].tolist() == [True, False]


def test_an_int_seed_spawns_and_a_list_seeds_each_row_as_alone() -> None:
    many = [Problem(f"p{index}", str(index), "") for index in range(1000)]
    vector = TokenVectorEnv(streams(3, problems=many))
    vector.reset(seed=[4, 5, 6])
    rows = vector.streams.problem_index.tolist()
    alone = []
    for seed in (4, 5, 6):
        env = TokenEnv(streams(problems=many))
        env.reset(seed=seed)
        alone.append(env.streams.problem_index[0])
    assert rows == alone
    vector.reset(seed=4)
    spawned = vector.streams.problem_index.tolist()
    assert len(set(spawned)) == 3
    assert spawned != rows
    vector.reset(seed=4)
    assert vector.streams.problem_index.tolist() == spawned


def test_options_are_not_mutated_and_unknown_ones_are_refused() -> None:
    env = vector_env(2)
    options = {"problems": np.array([1, -1]), "reset_mask": np.array([True, True])}
    kept = copy.deepcopy(options)
    env.reset(options=options)
    assert all((options[key] == kept[key]).all() for key in kept)
    with pytest.raises(LookupError, match=r"unknown reset option 'problem'\. Did you mean 'problems'"):
        env.reset(options={"problem": 3})


@pytest.mark.parametrize("token", [257, -1, 10**12])
def test_a_token_out_of_range_raises_and_changes_nothing(token: int) -> None:
    env = single()
    env.reset(seed=0)
    before = pickle.dumps(env.get_state())
    with pytest.raises(IllegalTokenError, match=rf"token {token} of row 0 .*expected \[0, 257\)"):
        env.step(token)
    with pytest.raises(IllegalTokenError):
        env.step_many([A, token])
    assert pickle.dumps(env.get_state()) == before


def test_order_and_shapes_are_checked() -> None:
    env, alone = vector_env(2), single()
    with pytest.raises(ResetNeeded):
        env.step([A, A])
    env.reset(seed=0)
    alone.reset(seed=0)
    with pytest.raises(IllegalTokenError, match=r"shape \(2,\)"):
        env.step([A])
    for action in (1.0, "a", None, np.array([1, 2]), np.float32(3)):
        with pytest.raises(IllegalTokenError, match="one integer token"):
            alone.step(action)
    with pytest.raises(IllegalTokenError, match="counts must be in"):
        env.step_many([[A], [A]], [2, 1])
    with pytest.raises(InvalidArgumentError, match=r"bool of shape \(2,\)"):
        env.reset(options={"reset_mask": np.array([1, 0])})
    with pytest.raises(InvalidArgumentError, match="problem 7 does not exist"):
        env.reset(options={"problems": np.array([0, 7])})
    with pytest.raises(ResetNeeded, match="before step"):
        single().step(A)
    with pytest.raises(InvalidArgumentError, match="the data set is empty"):
        streams(1, problems=[])


def test_a_broken_verifier_truncates_with_nan_and_never_zero() -> None:
    def failing(completion: str, problem: Problem) -> Verdict:
        raise OSError("the pool died")

    env = single(verifier=failing)
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(EOS)
    assert np.isnan(reward)
    assert (terminated, truncated) == (False, True)
    assert info["verdict"].outcome is Outcome.VERIFIER_ERROR
    assert "the pool died" in info["verdict"].detail["error"]


def ask_again(turns: Sequence[Turn], problem: Problem) -> Reply | None:
    return says(f"[{turns[0].text}?]") if len(turns) == 1 else None


def test_an_interaction_appends_tokens_and_only_the_last_turn_is_judged() -> None:
    env = single(interaction=ask_again, max_inserted_tokens=8)
    env.reset(options={"problem": 0})
    observation, reward, terminated, truncated, info = env.step_many([A, EOS, B, B])
    assert visible(observation) == [ord("Q"), A, EOS, *text_tokens("[a?]")]
    assert (reward, terminated, truncated, info["consumed"], info["inserted"]) == (0.0, False, False, 2, 4)
    _, reward, terminated, _, info = env.step_many([A, A, EOS])
    assert (reward, terminated, info["completion"]) == (2.0, True, "aa")


def test_a_turn_of_so_many_tokens_needs_no_stop() -> None:
    """Two tokens are a turn, the stop one of them; what was inserted does not count."""
    env = single(interaction=ask_again, max_inserted_tokens=8, turn_tokens=2)
    env.reset(options={"problem": 0})
    observation, _, terminated, _, info = env.step_many([A, B, A])
    assert visible(observation) == [ord("Q"), A, B, *text_tokens("[ab?]")]
    assert (terminated, info["consumed"]) == (False, 2)
    assert env.step(B)[2] is False
    _, reward, terminated, truncated, info = env.step(A)
    assert (reward, terminated, truncated, info["completion"]) == (1.0, True, False, "ba")
    with pytest.raises(InvalidArgumentError, match="turn_tokens must be at least 1, or None, got 0"):
        single(interaction=ask_again, max_inserted_tokens=8, turn_tokens=0)


def test_states_are_picklable_and_restore_everything() -> None:
    env = single(stop=["bc"])
    env.reset(seed=1)
    env.step_many([A, B])
    state = pickle.loads(pickle.dumps(env.get_state()))
    first = env.step(C), env.reset()[1]
    env.set_state(state)
    second = env.step(C), env.reset()[1]
    assert repr(first) == repr(second)


class Gated(CountLetters):
    """Judges when it is let."""

    def __init__(self) -> None:
        self.open = threading.Event()

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        assert self.open.wait(30)
        return super().__call__(completion, problem)


def test_a_deferred_verdict_comes_later_with_reward_and_flags_together() -> None:
    gate = Gated()
    env = vector_env(2, verifier=gate, verification="deferred")
    env.reset(options={"problems": np.array([0, 0])})
    _, reward, terminated, truncated, info = env.step([EOS, A])
    assert (terminated.sum(), truncated.sum(), reward.sum()) == (0, 0, 0)
    assert "verdict" not in info
    assert info["pending"].tolist() == [True, False]
    with pytest.raises(InvalidArgumentError, match=r"rows \[0\] await"):
        env.reset(options={"reset_mask": np.array([True, False])})
    _, _, terminated, _, info = env.step([B, A])
    assert (info["consumed"].tolist(), terminated[0]) == ([0, 1], False)
    env.step([B, EOS])
    gate.open.set()
    _, reward, terminated, _, info = env.wait()
    assert (reward.tolist(), terminated.tolist()) == ([0.0, 2.0], [True, True])
    assert info["completion"].tolist() == ["", "aa"]
    assert "pending" not in info
    env.close()


def alternate(tokens: np.ndarray, prompt_length: int) -> np.ndarray:
    mask = np.zeros(257, dtype=np.int8)
    mask[[EOS, B if tokens[-1] == A else A]] = 1
    return mask


def test_an_illegal_token_raises_and_the_whole_chunk_is_undone() -> None:
    env = vector_env(2, legal_actions=alternate)
    _, info = env.reset(options={"problems": np.array([0, 0])})
    assert np.flatnonzero(info["action_mask"][0]).tolist() == [A, EOS]
    with pytest.raises(IllegalTokenError, match=rf"token {B} of row 1 is not legal here: expected .*\[{A}, {EOS}\]"):
        env.step_many([[EOS, A], [B, A]], [2, 2])
    assert env.streams.live.tolist() == [True, True]
    _, reward, terminated, _, info = env.step_many([[A, EOS], [A, B]], [2, 2])
    assert (terminated.tolist(), reward.tolist()) == ([True, False], [1.0, 0.0])
    assert np.flatnonzero(info["action_mask"][1]).tolist() == [A, EOS]


def test_spaces_draw_and_hold_only_the_legal_tokens() -> None:
    mask = np.zeros(257, dtype=np.int8)
    mask[[A, C]] = 1
    env, vector = single(legal_actions=FixedActions(mask)), vector_env(3, legal_actions=FixedActions(mask))
    env.action_space.seed(0)
    vector.action_space.seed(0)
    assert {int(env.action_space.sample()) for _ in range(64)} == {A, C}
    assert {int(token) for _ in range(64) for token in vector.action_space.sample()} == {A, C}
    assert [env.action_space.contains(token) for token in (A, B, C, 257, "a")] == [True, False, True, False, False]
    assert vector.action_space.contains(np.array([A, C, A]))
    assert not vector.action_space.contains(np.array([A, B, A]))
    only_c = np.zeros(257, dtype=np.int8)
    only_c[C] = 1
    assert env.action_space.sample(only_c) == C
    assert vector.action_space.sample((only_c,) * 3).tolist() == [C, C, C]
    again = pickle.loads(pickle.dumps(env.action_space))
    assert again == env.action_space
    assert not again.contains(B)
    env.reset(seed=0)
    with pytest.raises(IllegalTokenError, match=rf"token {B} of row 0 is not legal"):
        env.step(B)


def test_a_mask_that_is_none_or_of_another_vocabulary_is_named() -> None:
    for mask in (np.zeros(257, dtype=np.int8), np.ones(257), np.full(257, 2, dtype=np.int8)):
        with pytest.raises(InvalidArgumentError, match=r"int8 of shape \(vocab_size,\), 1 where legal, at least once"):
            FixedActions(mask)
    with pytest.raises(InvalidArgumentError, match="each of the 257 tokens, got 5"):
        single(legal_actions=FixedActions(np.ones(5, dtype=np.int8)))


def test_copies_are_given_unless_they_are_declined() -> None:
    for copies in (True, False):
        env = TokenVectorEnv(streams(2), copy=copies)
        first, _ = env.reset(seed=0)
        second, *_ = env.step([A, A])
        assert np.shares_memory(first["tokens"], second["tokens"]) is not copies


@pytest.mark.parametrize("name", ["rlvr/Text-v0", "rlvr/Function-v0", "rlvr/Addition-v0"])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_an_environment_that_was_used_can_be_copied(name: str, copied: Any) -> None:
    env = gymnasium.make(name, verification="deferred").unwrapped
    env.reset(seed=0)
    env.step(EOS)
    env.wait()
    env.reset(seed=0)
    env.step(A)
    other = copied(env)
    env.step(EOS)
    other.step(EOS)
    assert repr(env.wait()) == repr(other.wait())
    env.close()
    other.close()


def test_a_stop_may_be_one_string_or_one_token() -> None:
    for stop in ("zz", ord("z")):
        env = gymnasium.make("rlvr/Addition-v0", stop=stop)
        env.reset(seed=0)
        *_, terminated, _, info = env.unwrapped.step_many([ord("1"), ord("z"), ord("z")])
        assert (terminated, info["completion"]) == (True, "1")


def test_a_failed_reset_starts_nothing_and_loses_no_verdict() -> None:
    env = vector_env(2, verification="deferred")
    env.reset(options={"problems": np.array([0, 0])})
    env.step([EOS, A])
    with pytest.raises(InvalidArgumentError, match="problem 99 does not exist"):
        env.reset(options={"problems": np.array([-1, 99])})
    _, _, terminated, _, info = env.wait()
    assert terminated.tolist() == [True, False]
    assert info["problem_id"][0] == "p0"
    env.reset()
    env.step([EOS, A])
    env.reset()  # of all rows: what was awaited is forgotten
    assert not env.wait()[2].any()
    env.close()


def test_a_verifier_that_breaks_its_contract_raises_and_loses_nothing() -> None:
    env = vector_env(1, verifier=verifiers.from_function(lambda completion, problem: "yes"), verification="deferred")
    env.reset(seed=0)
    env.step([EOS])
    for _ in range(2):
        with pytest.raises(TypeError, match="returned 'yes'; expected a Verdict"):
            env.wait()
    env.close()


A, B, C = text_tokens("abc")


def captured(problem: int, tokens: list[int], **rules: Any) -> StreamState:
    """The state of an environment after some tokens."""
    env = TokenEnv(streams(**rules))
    env.reset(seed=99, options={"problem": problem})
    env.step_many(tokens)
    return pickle.loads(pickle.dumps(env.get_state()))


def test_an_episode_goes_on_from_a_state_of_another_environment() -> None:
    env = TokenEnv(streams(stop=["bc"]))
    observation, info = env.reset(seed=1, options={"state": captured(1, [A, A, B], stop=["bc"])})
    assert visible(observation) == text_tokens("QQaab")
    assert (info["problem_id"], info["problem_index"]) == ("p1", 1)
    _, reward, terminated, _, info = env.step(C)  # half of the stop string was in the state
    assert (reward, terminated, info["completion"]) == (0.0, True, "aa")


def test_the_budget_and_the_turns_before_go_on_too() -> None:
    rules: dict[str, Any] = {
        "interaction": lambda turns, problem: says(str(len(turns)), reward=len(turns)) if len(turns) < 3 else None,
        "max_inserted_tokens": 4,
    }
    env = TokenEnv(streams(**rules))
    env.reset(options={"state": captured(0, [A, EOS], **rules)})
    observation, reward, *_ = env.step_many([B, EOS])
    assert (visible(observation)[-1:], reward) == (text_tokens("2"), 2.0)
    _, _, terminated, truncated, _ = env.step_many([B, B])
    assert (terminated, truncated) == (False, True)  # after six tokens of the policy, two of them in the state


def test_rows_start_from_states_or_prompts_as_the_list_says() -> None:
    env = vector_env(3)
    env.reset(seed=0)
    env.step([A, A, A])
    states = [captured(2, [B, B]), captured(3, [C]), None]
    options = {"states": states, "problems": np.array([0, 0, 4]), "reset_mask": np.array([True, False, True])}
    observation, info = env.reset(options=options)
    assert visible(observation, 0) == text_tokens("QQQbb")
    assert visible(observation, 1)[-1] == A
    assert visible(observation, 2) == text_tokens("QQQQQ")
    assert info["problem_index"][[0, 2]].tolist() == [2, 4]
    _, reward, *_ = env.step([EOS, EOS, EOS])
    assert reward[[0, 2]].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (captured(0, [A, EOS]), "has ended, so that nothing can follow from it"),
        (dataclasses.replace(captured(0, [A]), problem_index=9), "problem 9; this environment has"),
        (captured(0, [A], max_new_tokens=20), "of which there may be 21 at the end"),
        (dataclasses.replace(captured(0, [A]), tokens=np.array([81, 300], dtype=np.int32)), "tokens up to 300"),
        ([1, 2], "a state that get_state gave, got list"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(state: Any, message: str) -> None:
    env = vector_env(2)
    env.reset(seed=0, options={"problems": np.array([0, 0])})
    before = pickle.dumps([env.get_state(0), env.get_state(1)])
    with pytest.raises(InvalidArgumentError, match=message):
        env.reset(options={"states": [None, state], "problems": np.array([0, 0])})
    assert pickle.dumps([env.get_state(0), env.get_state(1)]) == before


@pytest.mark.parametrize("states", [[None], "ab"])
def test_one_entry_is_expected_for_each_row(states: Any) -> None:
    env = vector_env(3)
    with pytest.raises(InvalidArgumentError, match="a list with a state or None for each of 3 rows"):
        env.reset(options={"states": states})
