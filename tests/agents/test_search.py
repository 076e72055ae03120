"""Searches against enumeration of all completions, and what they say of themselves."""

from __future__ import annotations

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


@pytest.mark.parametrize("exponent", [0.0, 1.0])
def test_a_beam_as_wide_as_the_tree_finds_the_likeliest_completion(exponent: float) -> None:
    """With an exponent of 1 the likeliest by token."""
    (result,) = found(Beam(100, length_exponent=exponent), small_env(), LAB.policy)
    lengths = [int(one.policy_mask.sum()) for one in LAB.completions]
    rated = [logprob / length**exponent for logprob, length in zip(LOGPROBS, lengths, strict=True)]
    best = int(np.argmax(rated))
    assert result.trajectory.tokens.tolist() == LAB.completions[best].tokens.tolist()
    assert result.guide_score == pytest.approx(rated[best], abs=1e-5)
    assert result.trajectory.score == pytest.approx(float(LAB.returns[best]))
    assert result.tokens == 7 or exponent == 0  # every prefix that has not ended: of no letter, one and two


def test_a_beam_of_one_is_greedy() -> None:
    greedy = LAB.policy.at_temperature(0.0)
    (expected,) = rollout(small_env(), greedy, [Episode(0, 0, 0)])
    for policy in (LAB.policy, greedy):
        assert found(Beam(1), small_env(), policy)[0].trajectory.tokens.tolist() == expected.tokens.tolist()


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
    def breaks_on(letters: str) -> Any:
        def verdict(completion: str, problem: Problem) -> float:
            if set(completion) & {*letters} or not letters:
                raise RuntimeError("broken")
            return float(len(completion))

        return verdict

    (result,) = found(MCTS(100, "oracle", exploration=3.0), small_env(breaks_on("b")), LAB.policy)
    assert (result.trajectory.completion, result.guide_score) == ("aaa", 3.0)
    (result,) = found(MCTS(20, "oracle"), small_env(breaks_on("")), LAB.policy)
    assert result.trajectory.errored


def test_puct_by_hand() -> None:
    """Means 2, 0 and, as that of all visits, 1.6, each scaled from [-1, 3]; then 2 P sqrt(5) / (1 + N)."""
    tree: Any = _Tree.__new__(_Tree)
    tree._settings, tree._least, tree._greatest = MCTS(1, "oracle", exploration=2.0), -1.0, 3.0
    node = _Node(None, (), 0.0, None)  # type: ignore[arg-type]
    node.edges = [_Edge(node, 0, 0.5, visits=4, total=8.0), _Edge(node, 1, 0.3, visits=1), _Edge(node, 2, 0.2)]
    bonuses = [2 * 0.5 * math.sqrt(5) / 5, 2 * 0.3 * math.sqrt(5) / 2, 2 * 0.2 * math.sqrt(5)]
    values = np.array([0.75, 0.25, 0.65]) + bonuses
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


def test_a_guide_is_not_shown_the_answer_and_one_that_needs_it_is_refused() -> None:
    seen: list[Problem] = []

    def look(completion: str, problem: Problem) -> Verdict:
        seen.append(problem)
        return Verdict(0.0, Outcome.SCORED)

    env = gymnasium.make_vec("rlvr/Addition-v0", num_envs=4, max_new_tokens=2)
    found(BestOfN(2, look), env, uniform_policy(257))
    assert seen
    assert all(problem.reference is None and not problem.metadata for problem in seen)
    assert seen[0].prompt == env.unwrapped.streams.dataset[0].prompt  # type: ignore[attr-defined]
    for name in ("numeric", "math"):
        search = search_for("best-of-n", ["n=2"], name, [])
        assert search is not None
        with pytest.raises(InvalidArgumentError, match=r"the problem without its reference.*is the guide 'oracle'"):
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
    again = EvaluationRecord(tmp_path / "oracle", resume=True)
    with again as record, pytest.raises(InvalidArgumentError, match="started with search"):
        evaluate(env, LAB.policy, samples=3, search=BestOfN(5, "oracle"), record=record)
    plain = evaluate(env, LAB.policy, samples=3, search=BestOfN(4, "likelihood"))
    assert not plain.oracle
    assert "upper bound" not in str(plain)
    assert f"found by best-of-n with the guide likelihood and {plain.search_tokens} tokens" in str(plain)


# Bad input


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BestOfN(0, "oracle"), "n must be at least 1, got 0"),
        (lambda: BestOfN(2, "orakel"), "guide must be one of 'oracle', 'likelihood', 'majority' or a function"),
        (lambda: MCTS(10, "majority"), "unknown guide 'majority'"),
        (lambda: MCTS(1.5, "oracle"), "simulations must be a whole number, got 1.5"),  # type: ignore[arg-type]
        (lambda: MCTS(1, "oracle", exploration=-1), "exploration must be at least 0"),
        (lambda: Beam(0), "width must be at least 1"),
        (lambda: Beam(2, length_exponent=2), "length_exponent must be from 0 to 1"),
        (lambda: search_for("beam", [], "oracle", []), "--search beam takes no guide"),
        (lambda: search_for("mcts", ["simulations=2"], None, []), "--search mcts chooses by a guide: give --guide"),
        (lambda: search_for("best-of-n", ["n=2"], "oracle", ["model=x"]), "the guide oracle takes no arguments"),
    ],
)
def test_settings_that_make_no_sense_are_named(make: Any, message: str) -> None:
    with pytest.raises((InvalidArgumentError, UnknownNameError, LookupError), match=message):
        make()


def test_what_can_not_be_searched_is_said() -> None:
    env, greedy, sampler = small_env(), LAB.policy.at_temperature(0.0), SimpleNamespace()
    searches: list[tuple[Search, Any, str]] = [
        (BestOfN(2, "oracle"), greedy, "all 2 completions would be the same at temperature 0"),
        (Beam(2), sampler, "needs the probabilities of all next tokens, which SimpleNamespace"),
        (BestOfN(2, "majority"), LAB.policy, "compares answers with each other"),
    ]
    for search, policy, message in searches:
        with pytest.raises(InvalidArgumentError, match=message):
            found(search, env, policy)
    for policy in (greedy, LAB.policy):
        with pytest.raises(InvalidArgumentError, match="all 2 samples of a problem would be the same: Beam"):
            evaluate(env, policy, samples=2, search=Beam(2))
        assert evaluate(env, policy, samples=1, search=Beam(2)).samples == 1


def test_the_searches_of_a_command_are_those_of_the_library() -> None:
    assert search_for(None, [], None, []) is None
    assert search_for("best-of-n", ["n=8"], "majority", []) == BestOfN(8, "majority")
    assert search_for("beam", ["width=3", "length_exponent=0.5"], None, []) == Beam(3, 0.5)
    assert search_for("mcts", ["simulations=9", "batch=2"], "oracle", []) == MCTS(9, "oracle", batch=2)
