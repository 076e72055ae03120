"""The program that runs in the sandbox: it makes problems of reasoning-gym, and asks its scorers.

It reads one request as JSON from its standard input and answers in lines of JSON. Its source is sent as text and imports
nothing from this distribution.

Some scorers evaluate the answer as Python (`eval`, sympy's `parse_expr`), in the process that scores the answer. The sandbox
keeps such an answer from harming the machine. So that the answer can't choose its own score, `eval` within a scorer accepts
only literals, arithmetic, and calls of elementary functions. Otherwise the text `Integral(f, x)` would pass as an
antiderivative of `f`, and a comprehension could write to the list of right answers.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import json
import math
import re
import sys
import tokenize
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

CONTROL = "?"
"""An answer without content: a scorer that gives it the full score can't judge the problem."""
TEST_FRACTION = 4
"""Reciprocal of the share of questions in the test split: one in four."""
MAX_DRAWS = 400
"""Maximum number of problems of a data set that are examined to find one that can be used."""


class RefusedError(Exception):
    """A request that can't be fulfilled; its arguments are a class of error, a message, and the known names."""


# --- what a scorer may evaluate ---------------------------------------------------------------------------------------------

_NUMBERS = frozenset(("Symbol", "Integer", "Float", "Rational"))
"""Classes that sympy's parser writes around the names and numbers of a text."""
_TRIGONOMETRIC = tuple(
    f"{inverse}{name}{hyperbolic}"
    for inverse in ("", "a")
    for name in ("sin", "cos", "tan", "cot", "sec", "csc")
    for hyperbolic in ("", "h")
)
_FUNCTIONS = frozenset((*_TRIGONOMETRIC, "exp", "log", "ln", "sqrt", "cbrt", "Abs"))
_NODES = (
    ast.Expression, ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Load, ast.Name, ast.Call, ast.keyword,
    ast.UnaryOp, ast.UAdd, ast.USub, ast.Invert, ast.BinOp, ast.operator,
)  # fmt: skip


def restricted_eval(
    text: object, names: dict[str, Any] | None = None, own: Mapping[str, object] | None = None, /
) -> object:
    """The replacement for `eval` within a scorer: literals, arithmetic and elementary functions.

    Without `names`, a text can only be a literal or arithmetic on numbers.

    Raises:
        ValueError: If the text contains anything else.
    """
    if not isinstance(text, str):
        raise ValueError("only text is evaluated")
    tree = ast.parse(text.strip(), mode="eval")
    if any(token.type == tokenize.COMMENT for token in tokenize.generate_tokens(io.StringIO(text).readline)):
        raise ValueError("an answer has no comments")
    for node in ast.walk(tree):
        if not isinstance(node, _NODES) or (isinstance(node, ast.Call) and not _is_harmless(node)):
            raise ValueError(f"an answer has no {type(node).__name__}")
    return eval(compile(tree, "<answer>", "eval"), {"__builtins__": {}} if names is None else names, own)


def _is_harmless(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Name):
        return False
    if call.func.id in _NUMBERS:
        return all(isinstance(given, ast.Constant) for given in (*call.args, *(word.value for word in call.keywords)))
    return call.func.id in _FUNCTIONS and not call.keywords


@contextlib.contextmanager
def restricted() -> Iterator[None]:
    """Within the block, make the modules of reasoning-gym and sympy's parser evaluate with `restricted_eval`."""
    modules = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("reasoning_gym.") or name == "sympy.parsing.sympy_parser"
    ]
    for module in modules:
        vars(module)["eval"] = restricted_eval
    try:
        yield
    finally:
        for module in modules:
            vars(module).pop("eval", None)


# --- what scorers of 0.1.25 leave out ---------------------------------------------------------------------------------------


def _uses_the_numbers(answer: str, entry: Mapping[str, Any]) -> bool:
    """Whether an answer uses each given number once, with only the allowed operators; some scorers don't check this."""
    numbers = sorted(int(number) for number in re.findall(r"\d+", answer))
    return (
        re.fullmatch(r"[\d\s()+*/-]*", answer) is not None
        and not re.search(r"\*\s*\*|/\s*/", answer)
        and numbers == sorted(map(int, entry["metadata"]["numbers"]))
    )


def _is_the_probability(answer: str, entry: Mapping[str, Any]) -> bool:
    """Whether an answer is the whole probability; some scorers also give its prefixes, such as 0, the full score."""
    exact = entry["metadata"]["rational"]
    return abs(Fraction(answer.replace(",", "")) - Fraction(exact["numerator"], exact["denominator"])) <= 1e-4


def _are_the_numbers(answer: str, entry: Mapping[str, Any]) -> bool:
    """Whether an answer has exactly the right numbers; the scorer lets each number be off by 1."""
    given, right = (json.loads(text.replace("'", '"')) for text in (answer, entry["answer"]))
    return all(math.isclose(float(a), float(b), abs_tol=1e-9) for a, b in zip(given, right, strict=True))


def _is_the_first_number(answer: str, entry: Mapping[str, Any]) -> bool:
    """Whether the first number of an answer is right; the scorer ignores its sign."""
    found = re.search(r"-?\d+(?:\.\d+)?", answer)
    return found is not None and float(found[0]) == float(entry["answer"])


def _is_no_premise(answer: str, entry: Mapping[str, Any]) -> bool:
    """Whether an answer is not a premise; the scorer accepts a repeated premise as a conclusion."""
    return _formula(answer) not in map(_formula, entry["metadata"]["premises"])


def _formula(text: str) -> str:
    return re.sub(r"[\s()]", "", text)


CONDITIONS: Mapping[str, Callable[[str, Mapping[str, Any]], bool]] = {
    "coin_flip": _is_the_probability,
    "countdown": _uses_the_numbers,
    # Without this, text beyond the word, or a wrong letter in a long word, has the full score.
    "figlet_font": lambda answer, entry: answer.replace(" ", "").strip().lower() == entry["answer"].strip().lower(),
    # Without this, any text has the full score.
    "game_of_life_halting": lambda answer, entry: answer.strip().lower() == str(entry["answer"]).lower(),
    "gsm_symbolic": _is_the_first_number,
    "number_sorting": _are_the_numbers,
    "propositional_logic": _is_no_premise,
    "puzzle24": _uses_the_numbers,
    # Without this, further words after the right words do not matter.
    "word_sorting": lambda answer, entry: answer.count(",") == len(entry["metadata"]["sorted_words"]) - 1,
}
"""By task, a further condition on answers with the full score, which scorers also give to some wrong answers."""
_NOT_FINITE = re.compile(r"(?<![a-z])(?:nan|inf)", re.IGNORECASE)
"""Matches numbers that are not finite, which some scorers consider equal or near enough to any number."""


def score_of(dataset: Any, answer: str, entry: Mapping[str, Any]) -> float:
    """The score of an answer: 1.0 only if the answer is right, and 0.0 if the scorer's number is not from 0 to 1.

    Raises:
        Exception: Whatever the scorer raises.
    """
    with restricted():
        score = float(dataset.score_answer(answer, entry))
    if not 0.0 <= score <= 1.0:
        return 0.0
    return 0.0 if score == 1.0 and not _is_right(answer, entry) else score


def _is_right(answer: str, entry: Mapping[str, Any]) -> bool:
    if _NOT_FINITE.search(answer) and not _NOT_FINITE.search(str(entry["answer"])):
        return False
    condition = CONDITIONS.get(entry["metadata"].get("source_dataset", ""))
    try:
        return condition is None or condition(answer, entry)
    except (ValueError, TypeError, ZeroDivisionError):  # the answer has a form that the condition can't read
        return False


def unjudgeable(dataset: Any, entry: Mapping[str, Any]) -> str:
    """The reason why a problem's answers can't be judged; empty if they can."""
    gold = entry["answer"]
    try:
        if isinstance(gold, str) and score_of(dataset, gold.strip(), entry) != 1.0:
            return "its own right answer does not have the full score"
    except Exception as error:  # noqa: BLE001 - the reason is given
        return f"scoring its own right answer raises {type(error).__name__}: {error}"[:200]
    try:
        return f"the answer {CONTROL!r} has the full score" if score_of(dataset, CONTROL, entry) == 1.0 else ""
    except Exception:  # noqa: BLE001 - some scorers raise at an answer of another form, which is not a full score
        return ""


# --- data sets and problems -------------------------------------------------------------------------------------------------


def dataset_of(request: Mapping[str, Any]) -> Any:
    """Make the data set that a request describes.

    Raises:
        RefusedError: If there is no data set of that name, or its config is refused.
    """
    from reasoning_gym.factory import DATASETS

    name = request["task"]
    if name not in DATASETS:
        raise RefusedError("task", name, sorted(DATASETS))
    dataset_class, config_class = DATASETS[name]
    config = {**_level(name, request["level"]), **ast.literal_eval(request["config"])}
    known = sorted(set(config_class.__dataclass_fields__) - {"seed", "size"})
    for field in config:
        if field not in known:
            raise RefusedError("field", field, known)
    if name == "composite":
        config["datasets"] = _specs(config.get("datasets"))
    try:
        made = config_class(**config, seed=request["seed"])
        if hasattr(made, "validate"):
            made.validate()
        return dataset_class(config=made)
    except Exception as error:
        raise RefusedError("config", f"{type(error).__name__}: {error}", []) from error


def _level(name: str, level: int | None) -> dict[str, Any]:
    """The fields of a config that a level of the data set's curriculum sets."""
    from reasoning_gym.factory import CURRICULA, create_curriculum

    if level is None:
        return {}
    if name not in CURRICULA:
        raise RefusedError("config", f"the data set {name!r} has no curriculum, so that it takes no level", [])
    curriculum = create_curriculum(name)
    curriculum.set_global_level(level)
    fields = [
        field
        for attribute in curriculum.attributes.values()
        for field in ("field_name", "lower_field_name", "upper_field_name")
        if hasattr(attribute, field)
        for field in [getattr(attribute, field)]
    ]
    made = curriculum.generate_configuration()
    return {field: getattr(made, field) for field in fields}


def _specs(given: object) -> list[Any]:
    from reasoning_gym.composite import DatasetSpec

    try:
        return [DatasetSpec(**{"weight": 1.0, "config": {}, **spec}) for spec in given]  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise RefusedError(
            "config", f"datasets must be a list such as [{{'name': 'chain_sum', 'weight': 2.0}}] ({error})", []
        ) from error


def make(request: Mapping[str, Any]) -> dict[str, Any]:
    """The first problem of a data set that belongs to the split, is short enough, and has answers that can be judged.

    Raises:
        RefusedError: If there is no such problem.
    """
    dataset = dataset_of(request)
    reasons: dict[str, int] = {}
    for index in range(min(MAX_DRAWS, len(dataset))):
        try:
            entry = dataset[index]
        except Exception as error:  # noqa: BLE001 - some data sets give up on some indices; counted
            reason = f"{type(error).__name__}: {error}"[:200]
        else:
            question = entry["question"]
            reason = _misfit(request, question) or unjudgeable(dataset, entry)
            if not reason:
                gold = entry["answer"].strip() if isinstance(entry["answer"], str) else None
                return {"question": question, "answer": gold, "index": index}
        reasons[reason] = reasons.get(reason, 0) + 1
    raise RefusedError("problem", "; ".join(f"{number}: {reason}" for reason, number in reasons.items()), [])


def _misfit(request: Mapping[str, Any], question: str) -> str:
    if len(question.encode()) > request["max_prompt_bytes"]:
        return f"the question has more than {request['max_prompt_bytes']} bytes"
    digest = hashlib.blake2b(f"{request['task']}:{question}".encode(), digest_size=8).digest()
    split = "test" if int.from_bytes(digest, "little") % TEST_FRACTION == 0 else "train"
    return "" if split == request["split"] else "the question belongs to the other split"


def judge(request: Mapping[str, Any], say: Callable[[object], None]) -> None:
    """Report whether the problem can be judged, then the score of the answer."""
    dataset = dataset_of(request)
    entry = dataset[request["index"]]
    reason = unjudgeable(dataset, entry)
    say({"unjudgeable": reason})
    if not reason:
        try:
            say({"score": score_of(dataset, request["answer"], entry)})
        except Exception as error:  # noqa: BLE001 - the scorer can't read the answer's form; recorded
            say({"score": 0.0, "exception": type(error).__name__})


def main() -> None:
    """Answer one request."""
    request = json.loads(sys.stdin.read())
    replies, sys.stdout = sys.stdout, io.StringIO()  # what reasoning-gym prints is lost

    def say(reply: object) -> None:
        replies.write(json.dumps(reply) + "\n")
        replies.flush()

    try:
        if "answer" in request:
            judge(request, say)
        else:
            say(make(request))
    except RefusedError as error:
        say({"refused": list(error.args)})


if __name__ == "__main__":
    main()
