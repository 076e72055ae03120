"""Searches against enumeration of all completions, and what they say of themselves."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from agents import Episode, EvaluationRecord, TorchPolicy, evaluate, rollout
from agents.commands.evaluate import search_for
from agents.commands.gradient_lab import small_env, small_lab
from agents.search import MCTS, Beam, BestOfN, Search, SearchResult
from agents.search.mcts import _Edge, _Node, _Tree
from agents.search.prefixes import next_logprobs
from rlvr_envs import Reply, Turn
from rlvr_envs.types import FixedActions
from tests.envs.helpers import EOS, says, text_tokens, vector_env
from verifiers import InvalidArgumentError, Outcome, Problem, UnknownNameError, Verdict

A, B = text_tokens("ab")
LAB = small_lab()
MOST = max(float(score) for score in LAB.returns)
"""The best score of any of the 15 completions."""
LOGPROBS = [float(np.sum(one.logprobs, dtype=np.float64)) for one in LAB.completions]


def found(search: Search, env: Any, policy: Any, seeds: Sequence[int] = (0,)) -> list[SearchResult]:
    episodes = [Episode(0, number, seed) for number, seed in enumerate(seeds)]
    results = dict(search.find(env, policy, episodes))
    return [results[index] for index in range(len(seeds))]


class Nothing(torch.nn.Module):
    """A body whose states are all alike."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(size))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.weight.expand(*tokens.shape, -1)


def uniform_policy(vocab_size: int) -> TorchPolicy:
    head = torch.nn.Linear(1, vocab_size)
    torch.nn.init.zeros_(head.weight)
    torch.nn.init.zeros_(head.bias)
    return TorchPolicy(Nothing(1), head)


# Next-token probabilities


def test_illegal_tokens_have_no_probability() -> None:
    rated = next_logprobs(LAB.policy, [LAB.completions[0].tokens[:1]], np.array([[1, 0, 1]], dtype=np.int8))
    assert np.isneginf(rated[0]).tolist() == [False, True, False]
    assert np.exp(rated[0]).sum() == pytest.approx(1)


# Beam search


def test_a_beam_as_wide_as_the_tree_finds_the_likeliest_completion() -> None:
    (result,) = found(Beam(100), small_env(), LAB.policy)
    best = int(np.argmax(LOGPROBS))
    assert result.trajectory.tokens.tolist() == LAB.completions[best].tokens.tolist()
    assert result.guide_score == pytest.approx(LOGPROBS[best], abs=1e-5)
    assert result.trajectory.score == pytest.approx(float(LAB.returns[best]))


def test_with_an_exponent_of_1_it_finds_the_likeliest_per_token() -> None:
    (result,) = found(Beam(100, length_exponent=1.0), small_env(), LAB.policy)
    lengths = [int(one.policy_mask.sum()) for one in LAB.completions]
    means = [logprob / length for logprob, length in zip(LOGPROBS, lengths, strict=True)]
    assert result.trajectory.tokens.tolist() == LAB.completions[int(np.argmax(means))].tokens.tolist()
    assert result.tokens == 7  # every prefix that has not ended: of no letter, one and two


def test_a_beam_of_one_is_greedy() -> None:
    (result,) = found(Beam(1), small_env(), LAB.policy)
    (greedy,) = rollout(small_env(), LAB.policy.at_temperature(0.0), [Episode(0, 0, 0)])
    assert result.trajectory.tokens.tolist() == greedy.tokens.tolist()
    assert (
        found(Beam(1), small_env(), LAB.policy.at_temperature(0.0))[0].trajectory.tokens.tolist()
        == greedy.tokens.tolist()
    )


# Best of n


@pytest.mark.parametrize(
    "guide", ["oracle", "likelihood", lambda completion, problem: Verdict(-len(completion), Outcome.SCORED)]
)
def test_the_best_of_n_is_the_best_of_its_samples(guide: Any) -> None:
    env, search = small_env(), BestOfN(4, guide)
    for seed in range(5):
        (result,) = found(search, env, LAB.policy, [seed])
        (first,) = found(BestOfN(1, guide), env, LAB.policy, [seed])
        assert result.guide_score >= first.guide_score - 1e-5  # scored in batches of different sizes
        assert first.tokens == int(first.trajectory.policy_mask.sum())
        assert result.tokens > first.tokens
        if guide == "oracle":
            assert result.guide_score == result.trajectory.score


def test_the_oracles_mean_is_the_expected_best_of_n() -> None:
    """By the exact distribution of the best of n; beyond 5 standard errors there would be one seed in a million."""
    results = found(BestOfN(3, "oracle"), small_env(), LAB.policy, range(150))
    mean = float(LAB.best_of(3)(LAB.probabilities.detach()))
    scores = np.array([result.trajectory.score for result in results])
    assert abs(scores.mean() - mean) < 5 * scores.std(ddof=1) / math.sqrt(len(scores))
    assert mean > LAB.expected_return + 0.05


def test_a_vote_chooses_an_answer_that_most_have_whether_it_is_right_or_not() -> None:
    env = gymnasium.make_vec("rlvr/Addition-v0", num_envs=4, max_new_tokens=3)
    said = ["7", "9", "7", "12", "+9", "9"]
    search = BestOfN(6, "majority")
    chosen = search._chosen(env, [answered(text) for text in said])
    assert (chosen.trajectory.completion, chosen.guide_score) == ("9", 3.0)
    assert search._chosen(env, [answered(None), answered("3")]).trajectory.completion == "3"


def answered(text: str | None) -> Any:
    """An episode whose verdict found an answer, or none; to be wrong counts for nothing in a vote."""
    verdict = Verdict(0.0, Outcome.NO_ANSWER if text is None else Outcome.INCORRECT, text)
    mask = np.array([False, True])
    return SimpleNamespace(problem=0, completion=text, verdict=verdict, policy_mask=mask)


# Tree search


@pytest.mark.parametrize("batch", [1, 8])
def test_with_more_simulations_than_completions_the_best_one_is_found(batch: int) -> None:
    env = small_env()
    for result in found(MCTS(150, "oracle", batch=batch, exploration=3.0), env, LAB.policy, range(3)):
        assert result.guide_score == result.trajectory.score == pytest.approx(MOST)


def test_episodes_whose_verifier_breaks_are_worth_the_least() -> None:
    def break_on_b(completion: str, problem: Problem) -> float:
        if "b" in completion:
            raise RuntimeError("broken")
        return float(len(completion))

    (result,) = found(MCTS(100, "oracle", exploration=3.0), small_env(break_on_b), LAB.policy)
    assert (result.trajectory.completion, result.guide_score) == ("aaa", 3.0)

    def broken(completion: str, problem: Problem) -> float:
        raise RuntimeError("broken")

    (result,) = found(MCTS(20, "oracle"), small_env(broken), LAB.policy)
    assert result.trajectory.errored


def test_puct_by_hand() -> None:
    tree: Any = _Tree.__new__(_Tree)
    tree._settings, tree._least, tree._greatest = MCTS(1, "oracle", exploration=2.0), -1.0, 3.0
    node = _Node(None, (), 0.0, None)  # type: ignore[arg-type]
    node.edges = [
        _Edge(node, 0, 0.5, visits=4, total=8.0),
        _Edge(node, 1, 0.3, visits=1, total=0.0),
        _Edge(node, 2, 0.2),
    ]
    # Means 2, 0 and, as that of all visits, 1.6, each scaled from [-1, 3]; then 2 P sqrt(5) / (1 + N).
    values = [
        0.75 + 2 * 0.5 * math.sqrt(5) / 5,
        0.25 + 2 * 0.3 * math.sqrt(5) / 2,
        0.65 + 2 * 0.2 * math.sqrt(5),
    ]
    assert tree._best_edge(node) is node.edges[int(np.argmax(values))] is node.edges[2]
    node.edges[2].pending = 1  # one on its way came to the least: 0, and 2 * 0.2 sqrt(6) / 2
    assert tree._best_edge(node) is node.edges[0]


def test_rewards_of_earlier_turns_count() -> None:
    """The first turn pays 5 for its b; the verifier at the end pays for the a's of the last turn alone."""

    def pay(turns: Sequence[Turn], problem: Problem) -> Reply | None:
        return says("?", reward=5.0 * (turns[0].text == "b")) if len(turns) == 1 else None

    legal = np.zeros(257, dtype=np.int8)
    legal[[A, B, EOS]] = 1
    env = vector_env(4, interaction=pay, max_inserted_tokens=4, max_new_tokens=4, legal_actions=FixedActions(legal))
    (result,) = found(MCTS(200, "oracle", exploration=4.0), env, uniform_policy(257))
    assert result.guide_score == result.trajectory.score == 7.0
    assert result.trajectory.tokens.tolist() == [ord("Q"), B, EOS, ord("?"), A, A]
    (beam,) = found(Beam(3), env, uniform_policy(257))
    assert beam.trajectory.policy_mask.sum() <= 4


# Honesty


def test_a_guide_is_not_shown_the_answer() -> None:
    seen: list[Problem] = []

    def look(completion: str, problem: Problem) -> Verdict:
        seen.append(problem)
        return Verdict(0.0, Outcome.SCORED)

    env = gymnasium.make_vec("rlvr/Addition-v0", num_envs=4, max_new_tokens=2)
    found(BestOfN(2, look), env, uniform_policy(257))
    assert seen
    assert all(problem.reference is None and not problem.metadata for problem in seen)
    assert seen[0].prompt == env.unwrapped.streams.dataset[0].prompt  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["numeric", "math"])
def test_a_guide_that_needs_the_answer_is_refused(name: str) -> None:
    search = search_for("best-of-n", ["n=2"], name, [])
    assert search is not None
    env = gymnasium.make_vec("rlvr/Addition-v0", num_envs=4, max_new_tokens=2)
    with pytest.raises(InvalidArgumentError, match=r"sees the problem without its reference.*is the guide 'oracle'"):
        found(search, env, uniform_policy(257))


def test_an_oracles_score_is_not_called_accuracy(tmp_path: Path) -> None:
    env = small_env()
    with EvaluationRecord(tmp_path / "oracle") as record:
        oracle = evaluate(env, LAB.policy, samples=3, search=BestOfN(4, "oracle"), record=record)
    manifest = json.loads((tmp_path / "oracle" / "manifest.json").read_text())
    assert manifest["settings"]["search"] == {"method": "best-of-n", "n": 4, "guide": "oracle", "oracle": True}
    assert manifest["summary"]["oracle"] is True
    lines = [json.loads(line) for line in (tmp_path / "oracle" / "samples.jsonl").read_text().splitlines()]
    assert manifest["summary"]["search_tokens"] == sum(line["search_tokens"] for line in lines) == oracle.search_tokens
    assert oracle.search_tokens > sum(line["tokens"] for line in lines)
    assert "an upper bound like pass@k, not an accuracy" in str(oracle)
    with (
        EvaluationRecord(tmp_path / "oracle", resume=True) as record,
        pytest.raises(InvalidArgumentError, match="started with search"),
    ):
        evaluate(env, LAB.policy, samples=3, search=BestOfN(5, "oracle"), record=record)
    plain = evaluate(env, LAB.policy, samples=3, search=BestOfN(4, "likelihood"))
    assert not plain.oracle
    assert "upper bound" not in str(plain)
    assert f"found by best-of-n with the guide likelihood and {plain.search_tokens} tokens" in str(plain)
    assert evaluate(env, LAB.policy, samples=3).search is None


# Bad input


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BestOfN(0, "oracle"), "n must be at least 1, got 0"),
        (lambda: BestOfN(2, "orakel"), "guide must be one of 'oracle', 'likelihood'"),
        (lambda: BestOfN(2, 3), "guide must be one of 'oracle', 'likelihood', 'majority' or a function"),  # type: ignore[arg-type]
        (lambda: MCTS(10, "majority"), "unknown guide 'majority'"),
        (lambda: MCTS(1.5, "oracle"), "simulations must be a whole number, got 1.5"),  # type: ignore[arg-type]
        (lambda: MCTS(1, "oracle", exploration=-1), "exploration must be at least 0"),
        (lambda: Beam(0), "width must be at least 1"),
        (lambda: Beam(2, length_exponent=2), "length_exponent must be from 0 to 1"),
        (lambda: search_for("beam", [], "oracle", []), "--search beam takes no guide"),
        (lambda: search_for("mcts", ["simulations=2"], None, []), "--search mcts chooses by a guide: give --guide"),
        (lambda: search_for("mcts", [], "oracle", []), "--search mcts needs simulations"),
        (lambda: search_for("best-of-n", ["n=2", "width=3"], "oracle", []), "width"),
        (lambda: search_for("best-of-n", ["n=2"], "oracle", ["model=x"]), "the guide oracle takes no arguments"),
    ],
)
def test_settings_that_make_no_sense_are_named(make: Any, message: str) -> None:
    with pytest.raises((InvalidArgumentError, UnknownNameError, LookupError), match=message):
        make()


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_several_samples_of_a_search_that_draws_nothing_are_refused(temperature: float) -> None:
    policy = LAB.policy.at_temperature(temperature)
    with pytest.raises(InvalidArgumentError, match="all 2 samples of a problem would be the same: Beam draws nothing"):
        evaluate(small_env(), policy, samples=2, search=Beam(2))
    assert evaluate(small_env(), policy, samples=1, search=Beam(2)).samples == 1


def test_what_can_not_be_searched_is_said() -> None:
    env = small_env()
    with pytest.raises(InvalidArgumentError, match="all 2 completions would be the same at temperature 0"):
        found(BestOfN(2, "oracle"), env, LAB.policy.at_temperature(0.0))
    sampler: Any = SimpleNamespace()
    with pytest.raises(InvalidArgumentError, match="needs the probabilities of all next tokens, which SimpleNamespace"):
        found(Beam(2), env, sampler)
    with pytest.raises(InvalidArgumentError, match="compares answers with each other"):
        found(BestOfN(2, "majority"), env, LAB.policy)


def test_the_searches_of_a_command_are_those_of_the_library() -> None:
    assert search_for(None, [], None, []) is None
    assert search_for("best-of-n", ["n=8"], "majority", []) == BestOfN(8, "majority")
    assert search_for("beam", ["width=3", "length_exponent=0.5"], None, []) == Beam(3, 0.5)
    assert search_for("mcts", ["simulations=9", "batch=2"], "oracle", []) == MCTS(9, "oracle", batch=2)
    assert dataclasses.is_dataclass(MCTS)
