"""Second evaluations of drawn cases of the fields besides mathematics, which share no code with a verifier.

Programs run by plain `exec` in a process of their own, queries in sqlite3, and documents in `jsonschema`. Each instruction
has a rule of its own.
"""

from __future__ import annotations

import ast
import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

from verifiers.audit import Case

RUN = """
import json, sys
program, name, arguments = json.load(sys.stdin)
space = {"__name__": "solution"}
exec(program, space)
function = space[name] if name in space else getattr(space["Solution"](), name)
print("\\nvalues", json.dumps([function(*each) for each in arguments]))
"""


def is_right(case: Case) -> bool:
    """Whether a completion is right by the second evaluation of the case's problem."""
    reference: Any = case.problem.reference
    answer = re.sub(r"^\s*<think>.*?(?:</think>|\Z)", "", case.completion, flags=re.DOTALL)
    answer = answer.removesuffix("<|im_end|>").strip()
    blocks = re.findall(r"```(?:python|sql|json)\n(.*?)\n```", answer, re.DOTALL)
    block = blocks[-1] if blocks else answer
    if "query" in reference:
        return same_rows(block, reference)
    if "schema" in reference:
        return fits(block, reference["schema"])
    if "instruction_id_list" in reference:
        ((identifier,), (kwargs,)) = reference["instruction_id_list"], reference["kwargs"]
        return bool(answer) and RULES[identifier](answer, kwargs)
    return bool(blocks) and passes(block, reference)


def passes(program: str, reference: Mapping[str, Any]) -> bool:
    if "stdin" in reference.get("cases", [{}])[0]:
        return all(started(program, case["stdin"]).split() == case["expected"].split() for case in reference["cases"])
    name, calls = calls_of(reference)
    written = started(RUN, json.dumps([program, name, [arguments for arguments, _ in calls]]))
    values = re.findall(r"^values (.*)$", written, re.MULTILINE)
    return values == [json.dumps([expected for _, expected in calls])]


def started(program: str, stdin: str) -> str:
    python = [sys.executable, "-I", "-S", "-c", program]
    done = subprocess.run(python, input=stdin, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout if done.returncode == 0 else ""


def calls_of(reference: Mapping[str, Any]) -> tuple[str, list[tuple[list[Any], Any]]]:
    """The function under test, and arguments and values of its calls, read from any kind of tests."""
    if "cases" in reference:
        return reference["entry_point"], [(case["args"], case["expected"]) for case in reference["cases"]]
    source = "\n".join(reference["asserts"]) if "asserts" in reference else reference["test"]
    compared = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Compare)]
    calls = []
    for node in compared:
        assert isinstance(node.left, ast.Call)
        name = ast.unparse(node.left.func)
        calls.append(([ast.literal_eval(one) for one in node.left.args], ast.literal_eval(node.comparators[0])))
    return reference.get("entry_point", name), calls


def same_rows(query: str, reference: Mapping[str, Any]) -> bool:
    ordered = "ORDER BY" in reference["query"]
    pairs = [[rows(script, one) for one in (reference["query"], query)] for script in reference["scripts"]]
    return all(
        two is not None and (one == two if ordered else sorted(map(repr, one or [])) == sorted(map(repr, two)))
        for one, two in pairs
    )


def rows(script: str, query: str) -> list[Any] | None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(script)
    try:
        return list(connection.execute(query))
    except (sqlite3.Error, sqlite3.Warning):
        return None


def fits(text: str, schema: object) -> bool:
    import jsonschema

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) < len(pairs):
            raise ValueError("a name is repeated")
        return dict(pairs)

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        value = json.loads(text, object_pairs_hook=once, parse_constant=refuse)
    except ValueError:
        return False
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


def parts(text: str, divider: str) -> list[str]:
    """What stands between lines that are a divider."""
    found = [""]
    for line in text.split("\n"):
        if line == divider:
            found.append("")
        else:
            found[-1] += line
    return found


def is_json(text: str) -> bool:
    try:
        json.loads(text.removeprefix("```json").removesuffix("```"))
    except ValueError:
        return False
    return True


def bullets(text: str) -> int:
    return sum(line[:2] in ("* ", "- ") for line in text.split("\n"))


Rule = Callable[[str, Mapping[str, Any]], bool]
RULES: dict[str, Rule] = {
    "length_constraints:number_words": lambda text, k: len(text.split()) >= k["num_words"],
    "length_constraints:number_sentences": lambda text, k: text.count(".") < k["num_sentences"],
    "length_constraints:number_paragraphs": lambda text, k: len(parts(text, "***")) == k["num_paragraphs"],
    "keywords:existence": lambda text, k: set(k["keywords"]) <= set(re.findall("[a-z]+", text.lower())),
    "keywords:frequency": lambda text, k: text.lower().split().count(k["keyword"]) >= k["frequency"],
    "keywords:forbidden_words": lambda text, k: not any(word in text.lower() for word in k["forbidden_words"]),
    "punctuation:no_comma": lambda text, k: "," not in text,
    "change_case:english_lowercase": lambda text, k: text == text.lower(),
    "change_case:english_capital": lambda text, k: text == text.upper(),
    "detectable_format:number_bullet_lists": lambda text, k: bullets(text) == k["num_bullets"],
    "detectable_format:title": lambda text, k: re.search("<<[a-z ]+>>", text) is not None,
    "detectable_format:json_format": lambda text, k: is_json(text),
    "detectable_content:number_placeholders": lambda text, k: text.count("[") >= k["num_placeholders"],
    "detectable_content:postscript": lambda text, k: "\nP.S. " in text,
    "combination:two_responses": lambda text, k: len(parts(text, "******")) == 2 == len(set(parts(text, "******"))),
    "startend:end_checker": lambda text, k: text.lower().endswith("that is all."),
    "startend:quotation": lambda text, k: text[0] == text[-1] == '"',
}
