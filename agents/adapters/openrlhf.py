"""OpenRLHF's remote reward: the answers of `rlvr serve-verifier` to `--reward.remote_url http://HOST:PORT/get_reward`.

A request is `{"query": [...], "prompts": [...], "labels": [...]}`. A query is prompt and completion as one decoded text with
special tokens, a prompt is the prompt alone, and a label is the reference, from the column `--data.label_key`. The answer is
`{"rewards": [...], "scores": [...], "extra_logs": {...}}` (OpenRLHF 0.11, `openrlhf/utils/agent.py`).

If the verifier can't judge, the service answers with status 503. OpenRLHF then asks four more times, and stops the run if there
is still no reward for the completion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from verifiers import InvalidArgumentError, Outcome, Problem, Verdict


def completions_of(queries: Sequence[str], prompts: Sequence[str], end_of_text: Sequence[str] = ()) -> list[str]:
    """Return the completions. A completion is a query without its prompt, up to the first end token.

    Args:
        queries: Texts, each a prompt followed by its completion.
        prompts: The prompts alone.
        end_of_text: End tokens as text. A completion ends before the first end token.

    Raises:
        InvalidArgumentError: If there is not one prompt for each query, or a query does not begin with its prompt. Only the
            policy's own text may be judged.
    """
    if len(queries) != len(prompts):
        raise InvalidArgumentError(f"{len(queries)} queries came with {len(prompts)} prompts")
    for number, (query, prompt) in enumerate(zip(queries, prompts, strict=True)):
        if not query.startswith(prompt):
            raise InvalidArgumentError(
                f"query {number} does not begin with its prompt, so its completion can't be separated: the tokenizer "
                "does not decode the prompt as it was, or the prompt was cut"
            )
    texts = [query[len(prompt) :] for query, prompt in zip(queries, prompts, strict=True)]
    for token in end_of_text:
        texts = [text.partition(token)[0] for text in texts]
    return texts


def problems_of(prompts: Sequence[str], labels: Sequence[Any]) -> list[Problem]:
    """Make a problem from each prompt, with the prompt's label as the reference.

    Raises:
        InvalidArgumentError: If there is not one label for each prompt.
    """
    if len(prompts) != len(labels):
        raise InvalidArgumentError(f"{len(prompts)} prompts came with {len(labels)} labels")
    return [Problem("", prompt, label) for prompt, label in zip(prompts, labels, strict=True)]


def reply(verdicts: Sequence[Verdict]) -> Mapping[str, object]:
    """Make the answer to a request. No verdict may be `VERIFIER_ERROR`."""
    scores = [verdict.score for verdict in verdicts]
    answered = [float(verdict.outcome is not Outcome.NO_ANSWER) for verdict in verdicts]
    return {"rewards": scores, "scores": scores, "extra_logs": {"answered": answered}}
