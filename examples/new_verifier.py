"""A verifier of your own: an answer is right within one part in ten, and the audit says what it gets wrong.

python examples/new_verifier.py
"""

import math

import gymnasium as gym

import verifiers
from verifiers import Outcome, Problem, Verdict


@verifiers.factory
def roughly(*, tolerance: float = 0.1) -> verifiers.Verifier:
    """Accept the last word of a completion if it is a number near the reference."""

    def judge(completion: str, problem: Problem) -> Verdict:
        gold = float(str(problem.reference))
        if not math.isfinite(gold):  # what can't be judged raises: it is no wrong answer
            raise ValueError(f"the reference is a finite number, got {problem.reference!r}")
        try:
            answer = float(completion.split()[-1].rstrip("."))
        except (IndexError, ValueError):
            return Verdict(0.0, Outcome.NO_ANSWER)
        right = abs(answer - gold) <= tolerance * abs(gold)
        return Verdict(float(right), Outcome.CORRECT if right else Outcome.INCORRECT, str(answer))

    return judge


def main() -> verifiers.AuditReport:
    """Judge three completions, use the verifier in an environment, and audit it."""
    judge = verifiers.make(roughly, tolerance=0.05)
    for completion in ("It is 41.", "It is 30.", "I do not know"):
        print(f"{completion!r}: {verifiers.verify(judge, completion, '42').outcome}")

    env = gym.make("rlvr_envs:rlvr/Text-v0", verifier=judge, max_new_tokens=16)
    env.reset(seed=0)
    env.close()

    # The audit asks from a process of its own, which has to be able to import the verifier: it is named.
    problems = [Problem("1", "Add 17 and 25.", "42")]
    report = verifiers.audit_verifier("examples.new_verifier:roughly", problems, answer_format="It is ANSWER")
    print(report)
    return report


if __name__ == "__main__":
    main()
