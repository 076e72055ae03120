"""The verifier of JSON that must fit a schema."""

from __future__ import annotations

import functools
import importlib.util
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

from verifiers._settings import checked
from verifiers._workers import Worker, WorkerBrokenError, WorkerTimeoutError
from verifiers.bounds import AtLeast, Seconds
from verifiers.completion.cut import cut, thought_names
from verifiers.completion.words import THOUGHTS
from verifiers.errors import UnreadableReferenceError, missing_dependency, unknown_name
from verifiers.json_schema.reading import NotJSONError, json_text, read_json, same, without_byte_order_mark
from verifiers.types import Outcome, Problem, Verdict

_WALL_FACTOR = 10
"""Factor by which an answer's wall-clock time may exceed its processor time on a busy machine."""
_START_S = 10.0


class JSONSchemaVerifier:
    r"""A completion is correct when its JSON fits the schema, and equals the expected value if there is one.

    The reference is a JSON Schema (draft 3 to 2020-12, as `$schema` says, by default 2020-12), as an object or as JSON text; or
    an object with the keys `schema` and, optionally, `expected`, and no other keys. Anything else is an error: one of these
    keys next to other keys, or only unknown (perhaps misspelt) keywords, which any JSON would fit.

    The JSON is the whole response if it begins as an object or an array; else it is in the last tag `<answer>`, or is the last
    fenced block that is labelled as JSON or begins like JSON without a label; else the whole response if it is JSON. Otherwise
    the verdict is `NO_ANSWER`. A leading byte-order mark is ignored, also in a schema's text. Apart from that, JSON is read
    strictly: a repeated key, `NaN`, a number past the range of floats, more than 100 levels and more than 1,000,000 characters
    are `INCORRECT`, with the reason in `detail`.

    `format` is checked for `date`, `time`, `date-time`, `duration`, `email`, `hostname`, `ipv4`, `ipv6`, `uri`,
    `uri-reference`, `json-pointer` and `uuid`; other formats are annotations. `multipleOf` divides decimal numbers: 0.3 is a
    multiple of 0.1. Patterns follow ECMA-262 with its flag `u`. The supported Unicode properties are the general categories,
    such as `\p{L}`, and `Any`, `ASCII` and `Assigned`; any other property is an error. A `$ref` that leads outside the schema
    is an error, too: nothing is ever fetched.

    Validation runs in its own process with limits. A completion that exceeds the time limit, for example with a text that makes
    a pattern slow, is `TIMEOUT`.

    Args:
        timeout_s: Processor time, in seconds, that one validation may take.
        memory_mib: Limit on the address space of the process, in MiB.
        thoughts: Names of the tags that enclose thoughts, which are cut off; a sequence, or text with commas between the names.

    Raises:
        MissingDependencyError: If `jsonschema` is not installed.
        InvalidArgumentError: If an argument is out of range.
    """

    @checked
    def __init__(
        self,
        *,
        timeout_s: Seconds = 5.0,
        memory_mib: Annotated[int, AtLeast(64)] = 1024,
        thoughts: str | Sequence[str] = THOUGHTS,
    ) -> None:
        if importlib.util.find_spec("jsonschema") is None:
            raise missing_dependency("jsonschema", "jsonschema", "the verifier 'json_schema'")
        self._thoughts = thought_names(thoughts)
        self._arguments: dict[str, Any] = {"timeout_s": timeout_s, "memory_mib": memory_mib, "thoughts": self._thoughts}
        self._timeout_s = timeout_s
        self._worker = Worker("verifiers.json_schema.process", memory_mib=memory_mib)

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion.

        Raises:
            UnreadableReferenceError: If the reference is not a schema by which a value can be judged.
        """
        schema, *expected = _schema_of(problem)
        text = json_text(without_byte_order_mark(cut(completion, thoughts=self._thoughts).text))
        value: object = None
        unreadable = None
        if text is not None:
            try:
                value = read_json(text)
            except NotJSONError as error:
                unreadable = str(error)
        judged = None if text is None or unreadable else json.dumps(value)
        try:
            reply = self._ask(schema, judged)
        except WorkerTimeoutError:
            return Verdict.of(Outcome.TIMEOUT, text, detail={"error": f"no verdict within {self._timeout_s:g} s"})
        except WorkerBrokenError as error:
            return Verdict.of(
                Outcome.VERIFIER_ERROR, text, detail={"error": f"the process of validation broke: {error}"}
            )
        if "schema_error" in reply:
            raise UnreadableReferenceError(f"the schema of problem {problem.id!r}: {reply['schema_error']}")
        if "failure" in reply:
            return Verdict.of(Outcome.VERIFIER_ERROR, text, detail={"error": f"validation failed: {reply['failure']}"})
        if text is None:
            return Verdict.of(Outcome.NO_ANSWER)
        reasons = [unreadable] if unreadable else [str(error) for error in reply["errors"]]
        if not reasons and expected and not same(value, expected[0]):
            reasons = ["it fits the schema, and is not the expected value"]
        return Verdict.of(Outcome.INCORRECT if reasons else Outcome.CORRECT, text, detail={"errors": reasons})

    def _ask(self, schema: str, value: str | None) -> dict[str, Any]:
        wall_s = _WALL_FACTOR * self._timeout_s + _START_S
        return cast("dict[str, Any]", self._worker.ask([schema, value, self._timeout_s], deadline_s=wall_s))

    def same_answer(self, first: str, second: str, problem: Problem) -> bool:
        """Whether two answers are the same JSON value; text that is not JSON is never the same."""
        try:
            return same(read_json(first), read_json(second))
        except NotJSONError:
            return False

    def close(self) -> None:
        """End the process. A verifier that is used again starts a new one."""
        self._worker.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copied or unpickled verifier has its own process."""
        return functools.partial(type(self), **self._arguments), ()


_PAIR = ("schema", "expected")


def _check_pair(content: Mapping[str, Any]) -> None:
    for name in content:
        if name not in _PAIR:
            raise ValueError(str(unknown_name("key", name, _PAIR)))
    if "schema" not in content:
        raise ValueError("the key 'schema' is missing")


def _schema_of(problem: Problem) -> list[Any]:
    """The schema as JSON text, followed by the expected value if there is one."""
    reference = problem.reference
    try:
        content = read_json(reference) if isinstance(reference, str) else reference
        if isinstance(content, Mapping) and not content.keys().isdisjoint(_PAIR):  # neither is a keyword of a schema
            _check_pair(content)
            given = content["schema"]
            schema = read_json(given) if isinstance(given, str) else given
            expected = [content["expected"]] if "expected" in content else []
        else:
            schema, expected = content, []
        return [json.dumps(schema, allow_nan=False), *(json.loads(json.dumps(value)) for value in expected)]
    except (ValueError, TypeError, RecursionError) as error:
        raise UnreadableReferenceError(
            f"problem {problem.id!r}: the reference must be a JSON schema, as an object or JSON text, or an object with the "
            f"keys 'schema' and 'expected': {error}"
        ) from error
