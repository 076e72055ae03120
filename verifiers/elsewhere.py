"""Verifiers that run elsewhere: behind an address, or in a program that is started for each completion.

Both get the JSON of an item, in the form that `rlvr serve-verifier` takes: `completion`, `reference`, `prompt`, `id` and
`metadata`. They answer with the JSON of a verdict: `outcome`, `score`, `answer` and `detail`.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Mapping

from verifiers._settings import checked
from verifiers.bounds import Address, Seconds
from verifiers.errors import InvalidArgumentError, UnreadableReferenceError, VerifierContractError
from verifiers.functions import as_verdict, verifier_error
from verifiers.http import JsonServer, ServerError
from verifiers.redaction import secret
from verifiers.types import Outcome, Problem, Verdict

_SHOWN = 300


class ServedVerifier:
    """Gives the verdicts of a server that speaks the protocol of `rlvr serve-verifier`.

    A request that fails, or that the server answers with an error, is a `VERIFIER_ERROR` with the cause.

    Args:
        address: Address of the server, such as http://localhost:8000.
        token: Token of the server, or `env:NAME` to read it from an environment variable.
        timeout_s: Longest wait for a verdict in seconds.

    Raises:
        InvalidArgumentError: If the address is not an HTTP address, or `timeout_s` is not positive.
    """

    @checked
    def __init__(self, address: Address, *, token: str | None = None, timeout_s: Seconds = 60.0) -> None:
        key = None if token is None else str(secret(token))
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._server = JsonServer(f"{address.rstrip('/')}/verify", "verifier", headers, key, timeout_s)

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Ask for one verdict.

        Raises:
            UnreadableReferenceError: If the problem can't be written as JSON.
        """
        question = json.loads(_item(completion, problem))
        try:
            answer = self._server.ask({"items": [question]})
            return _verdict(answer["verdicts"][0], "the server")
        except (ServerError, VerifierContractError) as error:
            return verifier_error(error)
        except (TypeError, LookupError):
            return verifier_error(VerifierContractError(f"expected verdicts, got {self._server.clean(answer)!r}"))


class CommandVerifier:
    """Gives the verdicts of a program that is started for each completion.

    The program reads the item from its standard input. The last line that it writes is the verdict, as JSON: an object with
    `outcome` or `score`, a number, or `true` or `false`. If the program fails or writes anything else, the verdict is a
    `VERIFIER_ERROR`.

    Args:
        command: The program and its arguments, written as for a shell: `"python grade.py"`. No shell is used.
        timeout_s: Longest time in seconds that the program may take.

    Raises:
        InvalidArgumentError: If an argument is out of range.
    """

    @checked
    def __init__(self, command: str, *, timeout_s: Seconds = 60.0) -> None:
        self._words, self._timeout_s = _words(command), timeout_s

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Start the program and read its verdict.

        Raises:
            UnreadableReferenceError: If the problem can't be written as JSON.
        """
        item = _item(completion, problem)
        try:
            done = subprocess.run(
                self._words, input=item.encode(), capture_output=True, timeout=self._timeout_s, check=True
            )
            *_, last = done.stdout.decode().strip().split("\n")
            return _verdict(json.loads(last), f"{self._words[0]}")
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode(errors="replace")[-_SHOWN:]
            return verifier_error(VerifierContractError(f"{self._words[0]} ended with {error.returncode}: {said}"))
        except (OSError, subprocess.TimeoutExpired, ValueError, VerifierContractError) as error:
            return verifier_error(error)


def _words(command: str) -> list[str]:
    """The program and its arguments."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InvalidArgumentError(f"command must be written as for a shell, got {command!r}: {error}") from error
    if not words:
        raise InvalidArgumentError("command must name a program, such as 'python grade.py', got none")
    return words


def _item(completion: str, problem: Problem) -> str:
    """The JSON of a question, in ASCII."""
    prompt = problem.prompt
    asked = prompt if isinstance(prompt, str) else [{"role": one.role, "content": one.content} for one in prompt]
    item = {"completion": completion, "reference": problem.reference, "prompt": asked, "id": problem.id}
    try:
        return json.dumps(item | {"metadata": dict(problem.metadata)}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UnreadableReferenceError(f"problem {problem.id!r} can't be sent as JSON: {error}") from error


def _verdict(answer: object, source: str) -> Verdict:
    """Read a verdict.

    Raises:
        VerifierContractError: If the answer is not a verdict.
    """
    if not isinstance(answer, Mapping) or "outcome" not in answer:
        return as_verdict(answer, source)
    try:
        outcome = Outcome(answer["outcome"])
        text, detail = answer.get("answer"), dict(answer.get("detail") or {})
        if answer.get("score") is None:
            return Verdict.of(outcome, text, detail=detail)
        return Verdict(float(answer["score"]), outcome, text, detail)
    except (TypeError, ValueError) as error:
        raise VerifierContractError(f"expected a verdict of {source}, got {str(dict(answer))[:_SHOWN]}") from error
