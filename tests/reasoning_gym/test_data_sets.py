"""Every data set of reasoning-gym: problems that follow from their seed, right answers that pass, and what is refused."""

from __future__ import annotations

import pprint
import re
import subprocess
import sys
from typing import Any

import gymnasium as gym
import pytest
from reasoning_gym.factory import DATASETS

import rlvr_envs
import verifiers
from rlvr_envs.tasks import ReasoningGym
from tests.docs import DOCS
from verifiers import InvalidArgumentError, Outcome, Problem, UnknownNameError, UnreadableReferenceError
from verifiers.reasoning_gym import ReasoningGymReference
from verifiers.reasoning_gym.jailed import CONDITIONS

TASKS = sorted(DATASETS.keys() - {"composite"})
WITHOUT_GOLD = {"boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour"}
MIXTURE = {"datasets": [{"name": "gcd", "weight": 2.0}, {"name": "coin_flip", "config": {"max_trials": 4}}]}
VERIFIER = verifiers.make("reasoning_gym")


def judged(completion: str, problem: Problem) -> verifiers.Verdict:
    return verifiers.verify_batch(VERIFIER, [completion], [problem])[0]


@pytest.mark.parametrize("task", TASKS)
def test_right_answers_pass_and_meaningless_ones_do_not(task: str) -> None:
    for split in ("train", "test"):
        problem = ReasoningGym(split, task)[1]
        assert ("gold_completion" in problem.metadata) == (task not in WITHOUT_GOLD)
        if task not in WITHOUT_GOLD:
            assert judged(str(problem.metadata["gold_completion"]), problem).outcome is Outcome.CORRECT
        for answer in ("", "?", "nan", "None", "0 0", "[]", "{}"):
            assert judged(f"<answer>{answer}</answer>", problem).outcome in (Outcome.INCORRECT, Outcome.SCORED), answer


def test_a_mixture_is_scored_by_the_scorers_of_its_parts() -> None:
    mixture = ReasoningGym(task="composite", config=MIXTURE)
    problems = [mixture[index] for index in range(8)]
    assert len({problem.prompt[:20] for problem in problems}) == 2
    for problem in problems:
        assert judged(str(problem.metadata["gold_completion"]), problem).outcome is Outcome.CORRECT


def test_the_same_seed_makes_the_same_problems_in_every_process() -> None:
    # These go through sets of texts, whose order depends on the process.
    tasks = ("isomorphic_strings", "ransom_note", "knight_swap", "polynomial_multiplication", "word_ladder")
    code = f"from rlvr_envs.tasks import ReasoningGym\nfor task in {tasks}: print(repr(ReasoningGym(task=task, seed=5)[3]))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [repr(ReasoningGym(task=task, seed=5)[3]) for task in tasks]


def test_splits_and_seeds_have_problems_of_their_own() -> None:
    prompts = {
        (split, seed): {ReasoningGym(split, "chain_sum", seed)[index].prompt for index in range(30)}
        for split in ("train", "test")
        for seed in (0, 1)
    }
    drawn = [prompt for one in prompts.values() for prompt in one]
    assert len(drawn) == len(set(drawn)) == 120


def test_there_are_as_many_problems_as_asked_for() -> None:
    dataset = ReasoningGym(task="gcd", size=10**12)
    assert len(dataset) == 10**12
    assert dataset[10**12 - 1].prompt != dataset[0].prompt
    with pytest.raises(IndexError, match="has problems 0 to 999999999999"):
        dataset[10**12]


def test_levels_and_fields_of_the_config_set_how_hard_a_problem_is() -> None:
    def longest(**arguments: Any) -> int:
        dataset = ReasoningGym(task="chain_sum", **arguments)
        return max(len(dataset[index].prompt) for index in range(10))

    assert longest(level=0) < longest() < longest(config={"min_terms": 30, "max_terms": 30})
    both = ReasoningGym(task="chain_sum", level=4, config={"min_terms": 2, "max_terms": 2})[0]
    assert both.prompt.count("+") + both.prompt.count(" - ") == 1


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"task": "chain_summ"}, UnknownNameError, "unknown data set of reasoning-gym 'chain_summ'. Did you mean 'chain_sum'"),
        ({"config": {"min_tems": 3}}, UnknownNameError, "unknown config field of 'chain_sum' 'min_tems'. Did you mean 'min_"),
        ({"config": {"min_terms": 30}}, InvalidArgumentError, "refuses the config of 'chain_sum': AssertionError: max_terms"),
        ({"config": {"seed": 3}}, InvalidArgumentError, "config can't hold 'seed', which is an argument of the data set here"),
        ({"config": {"min_terms": object()}}, InvalidArgumentError, "config must map names of fields to numbers, texts"),
        ({"level": -1}, InvalidArgumentError, "level must be a whole number of at least 0, or None, got -1"),
        ({"task": "composite", "level": 1}, InvalidArgumentError, "'composite' has no curriculum, so that it takes no level"),
        ({"task": "composite"}, InvalidArgumentError, r"datasets must be a list such as \[\{'name': 'chain_sum'"),
        ({"split": "dev"}, UnknownNameError, "unknown split 'dev'"),
        ({"seed": -1}, InvalidArgumentError, "seed must be at least 0, got -1"),
        ({"max_prompt_bytes": 5}, InvalidArgumentError, "no problem of 'chain_sum' can be used .*has more than 5 bytes"),
        ({"isolation": "some"}, UnknownNameError, "isolation"),
    ],
)  # fmt: skip
def test_what_is_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ReasoningGym(**arguments)


def test_an_environment_pays_what_the_scorer_gives() -> None:
    assert rlvr_envs.ENVIRONMENTS  # the ids are registered
    env = gym.make("rlvr/ReasoningGym-v0", task="spell_backward", seed=3)
    for answer, least in (("right", 1.0), ("wrong", 0.0)):
        _, info = env.reset(options={"problem": 0})
        gold = str(ReasoningGym(task="spell_backward", seed=3)[0].metadata["gold_completion"])
        text = gold if answer == "right" else "<answer>?</answer>"
        *_, reward, terminated, truncated, info = env.unwrapped.step_many([*text.encode(), 256])  # type: ignore[attr-defined]
        assert (reward, terminated, truncated) == (least, True, False)
    assert info["verdict"].outcome is Outcome.INCORRECT


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("a text", "expected a ReasoningGymReference, or a mapping with 'task' and 'seed', got 'a text'"),
        ({"task": "gcd"}, "expected a ReasoningGymReference"),
        ({"task": "gcd", "seed": 1, "answer": 3}, "expected a ReasoningGymReference"),
        ({"task": "gcd", "seed": 2**32}, "seed must be from 0 to"),
        ({"task": "gcdd", "seed": 1}, "unknown data set of reasoning-gym 'gcdd'"),
        (ReasoningGymReference("gcd", 1, config={"min_numbers": 0}), "refuses the config of 'gcd'"),
        # Its right answer is an unevaluated integral, with which the question itself would be an answer.
        (ReasoningGymReference("intermediate_integration", 1, 4), "can't be judged: its own right answer does not have"),
    ],
)  # fmt: skip
def test_references_that_can_not_be_read_are_errors_whatever_the_answer(reference: object, message: str) -> None:
    with pytest.raises(UnreadableReferenceError, match=message):
        VERIFIER("<answer>1</answer>", Problem("p", "", reference))
    good = ReasoningGym(task="gcd")[0]
    bad, right = verifiers.verify_batch(
        VERIFIER, ["<answer>1</answer>", str(good.metadata["gold_completion"])], [Problem("p", "", reference), good]
    )
    assert (bad.outcome, right.outcome) == (Outcome.VERIFIER_ERROR, Outcome.CORRECT)


PAGE = (DOCS / "environments" / "reasoninggym.md").read_text(encoding="utf-8")


def test_the_examples_run() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(code, {})


def test_the_first_problem_is_the_one_that_is_shown() -> None:
    problem = ReasoningGym()[0]
    shown = re.findall(r"````text\n(.*?)\n````", PAGE, re.DOTALL)
    assert shown == [problem.prompt, problem.metadata["gold_completion"], pprint.pformat(problem.reference, width=100)]


def test_every_condition_is_named() -> None:
    table = PAGE.partition("| task |")[2].partition("\n\n")[0]
    assert set(CONDITIONS) <= set(re.findall(r"`(\w+)`", table))
