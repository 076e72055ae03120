"""Graders of other libraries as functions of (completion, reference), each called as its library calls it.

Files of packages are loaded by themselves where the package would bring torch, ray or a server. `GRADERS` says in which form
each expects an answer.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType


@functools.cache
def file_of(package: str, path: str) -> ModuleType:
    """A module of an installed package, loaded without the package."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(f"{package} is not installed; benchmarks/court/of_verifiers.py says what to install")
    name = f"court_{package}_{path.replace('/', '_').removesuffix('.py')}"
    spec = importlib.util.spec_from_file_location(name, Path(found.origin).parent / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def math_verify(completion: str, reference: str) -> bool:
    from math_verify import parse, verify

    return bool(verify(parse(f"\\boxed{{{reference}}}"), parse(completion)))


def trl_accuracy(completion: str, reference: str) -> float:
    from trl.rewards import accuracy_rewards

    (reward,) = accuracy_rewards.accuracy_reward([[{"role": "assistant", "content": completion}]], [f"${reference}$"])
    if reward is None:  # "to skip the example"
        raise ValueError("the gold cannot be parsed")
    return float(reward)


def lm_eval_hendrycks(completion: str, reference: str) -> bool:
    task = file_of("lm_eval", "tasks/hendrycks_math/utils.py")
    return bool(task.process_results({"solution": f"\\boxed{{{reference}}}"}, [completion])["exact_match"])


def lm_eval_minerva(completion: str, reference: str) -> bool:
    task = file_of("lm_eval", "tasks/minerva_math/utils.py")
    gold = task.normalize_final_answer(reference)  # as its process_docs does
    document = {"answer": gold, "solution": f"\\boxed{{{reference}}}"}
    return bool(task.process_results(document, [completion])["exact_match"])


def verl_math_reward(completion: str, reference: str) -> float:
    return float(file_of("verl", "utils/reward_score/math_reward.py").compute_score(completion, reference))


def verl_math_dapo(completion: str, reference: str) -> bool:
    return bool(file_of("verl", "utils/reward_score/math_dapo.py").compute_score(completion, reference)["acc"])


def reasoning_gym_default(completion: str, reference: str) -> float:
    from reasoning_gym.dataset import ProceduralDataset
    from reasoning_gym.utils import extract_answer

    return float(ProceduralDataset.score_answer(None, extract_answer(completion), {"answer": reference}))  # type: ignore[arg-type]


def rewardlint_robust(completion: str, reference: str) -> float:
    from rewardlint import reference as rules

    return float(rules.robust_match(completion, reference))


def rewardlint_boxed(completion: str, reference: str) -> float:
    from rewardlint import reference as rules

    return float(rules.boxed_exact(completion, reference))


@dataclass(frozen=True)
class Grader:
    """A row of the table."""

    name: str
    package: str
    verifier: str | Callable[[str, str], float]
    answer_format: str = "\\boxed{ANSWER}"


GRADERS = (
    Grader("`math` of this package", "rlvr-envs", "math"),
    Grader("`parse`, `verify`", "math-verify", math_verify),
    Grader("`accuracy_reward`", "trl", trl_accuracy),
    Grader("`hendrycks_math`", "lm-eval", lm_eval_hendrycks, "$ANSWER$"),
    Grader(
        "`minerva_math`, exact match",
        "lm-eval",
        lm_eval_minerva,
        "Final Answer: The final answer is ANSWER. I hope it is correct.",
    ),
    Grader("`math_reward`", "verl", verl_math_reward),
    Grader("`math_dapo`", "verl", verl_math_dapo, "Answer: ANSWER"),
    Grader("default `score_answer`", "reasoning-gym", reasoning_gym_default, "<answer>ANSWER</answer>"),
    Grader("`robust_match`", "rewardlint", rewardlint_robust),
    Grader("`boxed_exact`", "rewardlint", rewardlint_boxed),
)
