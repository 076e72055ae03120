"""`JudgeVerifier`, which asks a language model whether a completion is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from verifiers._settings import checked
from verifiers.bounds import AtLeast, Count, HTTPAddress, Seconds
from verifiers.completion.cut import thought_names
from verifiers.completion.words import THOUGHTS
from verifiers.errors import InvalidArgumentError, unknown_name
from verifiers.functions import verifier_error
from verifiers.http import OpenAIServer, Route
from verifiers.judge.presets import PRESETS, Preset
from verifiers.judge.prompt import JudgePrompt
from verifiers.judge.replies import ReplyReader
from verifiers.judge.server import JudgeServer, Question
from verifiers.types import Outcome, Problem, Verdict


class JudgeVerifier:
    """Asks a model behind an OpenAI-compatible server to judge; `vllm serve` runs such a server.

    The reply's label becomes the outcome. A reply that is missing, cut off, or not one of the labels is a `VERIFIER_ERROR` with
    its cause in `detail["error"]`, and never a score. `detail` also holds the `label` and the end of the `reply`; `cost` holds
    the `seconds` and `tokens`. If nothing follows a completion's thoughts, it is `NO_ANSWER` and the judge is not asked.

    With `logprobs`, the verdict is `SCORED`: the mean of the labels' scores (1 for correct, 0 for incorrect and no_answer),
    weighted by each label's probability as the reply's first token. Each label must be one token, and together they must
    have at least half of the probability.

    A completion can address its judge; `verifiers.judge.prompt` describes the defences. A judge's verdicts may change
    with the server, and are not reproducible across machines.

    Args:
        model: The model's name on the server.
        base_url: The server's address with the version, such as `http://localhost:8000/v1`.
        preset: A name of `verifiers.judge.PRESETS`; by default `"reasoned"`, or `"yes_no"` with `logprobs`. The arguments below
            replace its settings.
        prompt: The question, in which these placeholders are replaced: `{prompt}`, `{reference}`, `{completion}` (the text
            after its thoughts), `{answer}` (the answer that the completion marks in a box, after `####` or in `<answer>`;
            without a marked answer the completion is `NO_ANSWER` if the prompt has no `{completion}`) and `{fence}` (a checksum
            of the completion). Required for models trained to judge.
        system: A system message before the question.
        labels: The judge's possible labels, each with its outcome (`"correct"`, `"incorrect"`, `"no_answer"`) or a score; case,
            quotes, brackets and asterisks around a label do not matter.
        pattern: A regular expression; in its last match in the reply, the first group that matched is the label. Without a
            pattern, the whole reply is the label.
        logprobs: Whether to score by the log-probabilities of the labels.
        route: `"chat"`, or `"completions"`, which sends the prompt without a chat template.
        api_key: The server's key, if it requires one; `env:NAME` in a file or on the command line reads it from that
            environment variable.
        temperature: Sampling temperature.
        max_tokens: Maximum number of tokens of a reply, including thoughts.
        parameters: Further settings of the request's body, such as `{"seed": 0}`; None removes a setting that is sent by
            default.
        deadline_s: Seconds for one verdict, with all attempts.
        attempts: Maximum number of times that a question is asked: it is asked again after a lost connection, an invalid answer
            or a temporary status (408, 409, 425, 429, 5xx), but not after a refusal.
        backoff_s: Pause before the second attempt, doubled for each further one up to a minute; a server's `Retry-After`
            replaces it.
        concurrency: Maximum number of concurrent questions of a batch.
        thoughts: Names of the tags that enclose a completion's thoughts, which are cut off; a sequence, or text with commas
            between the names.

    Raises:
        InvalidArgumentError: If an argument is out of range, or a preset's prompt is missing.
        UnknownNameError: If there is no such preset or route.
        MissingDependencyError: If the package `openai` is not installed.
    """

    @checked
    def __init__(
        self,
        model: str,
        base_url: Annotated[str, HTTPAddress("http://localhost:8000/v1")],
        *,
        preset: str | None = None,
        prompt: str | None = None,
        system: str | None = None,
        labels: Mapping[str, str | float] | None = None,
        pattern: str | None = None,
        logprobs: bool = False,
        route: Route | None = None,
        api_key: str | None = None,
        temperature: Annotated[float, AtLeast(0)] = 0.0,
        max_tokens: Annotated[int | None, AtLeast(1)] = None,
        parameters: Mapping[str, Any] | None = None,
        deadline_s: Seconds = 60.0,
        attempts: Count = 4,
        backoff_s: Seconds = 0.5,
        concurrency: Count = 32,
        thoughts: str | Sequence[str] = THOUGHTS,
    ) -> None:
        defaults = _preset(preset, logprobs)
        text = _prompt(preset, prompt, defaults)
        route = defaults.route if route is None else route
        if system is not None and route == "completions":
            raise InvalidArgumentError("a system message needs route='chat'")
        if not model:
            raise InvalidArgumentError("a judge's model must be a name that the server knows, got ''")
        most = max_tokens or defaults.max_tokens
        self._prompt = JudgePrompt(text, thought_names(thoughts))
        self._system = system
        # A pattern belongs to the labels it finds.
        effective_pattern = pattern if pattern is not None or labels is not None or logprobs else defaults.pattern
        self._reader = ReplyReader(defaults.labels if labels is None else labels, effective_pattern, logprobs=logprobs)
        body = {"temperature": temperature, "max_tokens": 1 if logprobs else most, **(parameters or {})}
        self._server = JudgeServer(
            OpenAIServer(base_url, api_key, attempts, backoff_s, timeout_s=None, purpose="the judge"),
            model,
            route,
            parameters={name: value for name, value in body.items() if value is not None},
            logprobs=logprobs,
            deadline_s=deadline_s,
            concurrency=concurrency,
        )

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion."""
        return self.verify_batch([completion], [problem])[0]

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i, several completions at once."""
        verdicts: dict[int, Verdict] = {}
        answers: dict[int, str | None] = {}
        questions: dict[int, Question] = {}
        for row, (completion, problem) in enumerate(zip(completions, problems, strict=True)):
            try:
                text, answers[row] = self._prompt.filled(completion, problem)
            except InvalidArgumentError as error:  # only this row fails; the others are judged
                verdicts[row] = verifier_error(error)
                continue
            if text is None:
                verdicts[row] = Verdict.of(Outcome.NO_ANSWER, answers[row])
            else:
                questions[row] = self._question(text)
        replies = self._server.ask(list(questions.values())) if questions else []
        for row, (reply, seconds) in zip(questions, replies, strict=True):
            cost = {"seconds": seconds, "tokens": float(reply.tokens)}
            verdicts[row] = self._reader.verdict(reply, answers[row], cost)
        return [verdicts[row] for row in range(len(problems))]

    def _question(self, text: str) -> Question:
        if self._server.route == "completions":
            return text
        system = [] if self._system is None else [{"role": "system", "content": self._system}]
        return [*system, {"role": "user", "content": text}]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._server.model!r}, {self._server.server.address!r})"


def _preset(name: str | None, logprobs: bool) -> Preset:
    name = name or ("yes_no" if logprobs else "reasoned")
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    return PRESETS[name]


def _prompt(preset: str | None, prompt: str | None, defaults: Preset) -> str:
    if prompt is not None:
        return prompt
    if defaults.prompt is None:
        raise InvalidArgumentError(
            f"the preset {preset!r} needs prompt=, the one that the model was trained on: {defaults.source}, with {{prompt}}, "
            "{reference} and {completion} or {answer} in their places"
        )
    return defaults.prompt
