r"""The presets of the math verifier beside the graders that they stand for: on how many pairs they agree, and where not.

    pip install math-verify[antlr4_11_0]==0.9.0 antlr4-python3-runtime==4.11.1 && pip install --no-deps lm-eval==0.4.13
    python benchmarks/math_graders.py [--data DIR] [--golds 100] [--list 20]

Pairs are the labelled corpus of `tests/math/corpus.toml`, and golds of MATH-500 (`--data` or `RLVR_DATA_DIR`) with the
rewritings of the audit: equal forms, near misses, and answers that only an option accepts. `minerva` and `math_verify` are
compared with the packages themselves; OlympiadBench's judge has none, so its rule is written down here, after
`inference/code/math_judger.py` of its repository. A grader that raises or takes more than 5 s has not accepted.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import os
import random
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, ModuleType

from verifiers import Outcome
from verifiers.audit import TRANSFORMATIONS, recognise
from verifiers.math import MathVerifier

Judge = Callable[[str, str], bool]
"""Whether a grader accepts an answer (second) for a gold (first)."""
CORPUS = Path(__file__).resolve().parent.parent / "tests" / "math" / "math_corpus.py"
DEADLINE_S = 5


def module_of(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def rewritings(folder: Path, count: int) -> Iterator[tuple[str, str, str]]:
    """Golds of a sample of MATH-500 with their rewritings, and what each is."""
    rows = [json.loads(line) for line in (folder / "math500" / "test.jsonl").read_text().splitlines()]
    for row in random.Random(0).sample(rows, min(count, len(rows))):
        gold = recognise(row["answer"])
        for transformation in TRANSFORMATIONS.values():
            for answer in dict.fromkeys(transformation(gold)):
                yield row["answer"], answer, transformation.option or f"{transformation.label}"


# The originals.


def minerva() -> Judge:
    """lm-eval's minerva_math, `exact_match`: the last side of an equation, normalised, equal as text or by SymPy."""
    package = importlib.util.find_spec("lm_eval")
    assert package is not None
    assert package.submodule_search_locations is not None
    # The file by itself, without the package, which needs much that this does not.
    utils = module_of("minerva_utils", Path(package.submodule_search_locations[0], "tasks", "minerva_math", "utils.py"))
    return lambda gold, answer: utils.is_equiv(utils.normalize_final_answer(answer), utils.normalize_final_answer(gold))


def math_verify() -> Judge:
    """Math-Verify with its defaults, gold and answer boxed."""
    from math_verify import parse, verify

    return lambda gold, answer: bool(verify(parse(f"\\boxed{{{gold}}}"), parse(f"\\boxed{{{answer}}}")))


ERROR = 1e-8
SLACK = 1.01
_DELETED = ("\\left", "\\right", "$", "%", "^\\prime", "^{\\prime}", "^\\circ")


def olympiadbench() -> Judge:
    """OlympiadBench's judge for a problem without an error of its own."""
    from sympy import Symbol, pi, simplify, sympify
    from sympy.parsing.latex import parse_latex

    def expression(text: str) -> object:
        return sympify(parse_latex(text.split("=")[1] if "=" in text else text))

    def same_numbers(gold: str, answer: str) -> bool:
        return any(abs(float(gold) * factor - float(answer)) <= SLACK * ERROR for factor in (0.01, 1, 100))

    def same_expressions(gold: str, answer: str) -> bool:
        ours, theirs = expression(gold), expression(answer)
        if ours == theirs:
            return True
        ours, theirs = (side.subs(Symbol("pi"), pi.evalf()) for side in (ours, theirs))
        if ours.has(Symbol) != theirs.has(Symbol):
            return False
        if ours.has(Symbol):
            return abs(simplify(ours - theirs).evalf()) < 1e-3
        return abs(ours.evalf() - theirs.evalf()) <= SLACK * ERROR

    def same_equations(gold: str, answer: str) -> bool:
        ours, theirs = (
            simplify(parse_latex(left) - parse_latex(right)) for left, right in (gold.split("="), answer.split("="))
        )
        quotients = simplify(ours / theirs), simplify(theirs / ours)
        return any(quotient.is_Integer and quotient != 0 for quotient in quotients)

    def same_spans(gold: str, answer: str) -> bool:
        ours, theirs = gold.split("\\cup"), answer.split("\\cup")
        return len(ours) == len(theirs) and all(
            (one[0], one[-1]) == (two[0], two[-1])
            and all(map(same_expressions, one.strip("[]()").split(","), two.strip("[]()").split(",")))
            for one, two in zip(ours, theirs, strict=True)
        )

    def same(gold: str, answer: str) -> bool:
        if gold == answer != "":
            return True
        brackets = all(text.startswith(("(", "[")) and text.endswith((")", "]")) for text in (gold, answer))
        if brackets:
            try:
                if same_spans(gold, answer):
                    return True
            except Exception:  # noqa: BLE001 - as there
                return False
        equations = "=" in gold and "=" in answer
        tried = [same_numbers, *([] if equations else [same_expressions]), same_equations]
        return any(_accepts(rule, gold, answer) for rule in tried)

    return lambda gold, answer: _pairs_off(_cleaned(gold), _cleaned(answer), same)


def _accepts(rule: Judge, gold: str, answer: str) -> bool:
    try:
        return bool(rule(gold, answer))
    except TimeoutError:
        raise
    except Exception:  # noqa: BLE001 - what cannot be read is not equal
        return False


def _cleaned(text: str) -> str:
    text = text.split("\\in ")[1] if "\\in " in text else text
    for piece in _DELETED:
        text = text.replace(piece, "")
    text = re.sub(r"\\(?:approx|simeq|sim)", "=", text)
    text = text.strip("\n$,.:;^_=+`!@#%&*~，。")
    return re.sub(r"\\(?:mathrm|mathbf)\{~?([^}]*)\}", r"\1", text)


def _items(text: str) -> list[str]:
    """What stands between commas outside brackets, and both signs of a ±."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    plus_minus = (
        [part.replace("\\pm", "+"), part.replace("\\pm", "-")] if "\\pm" in part else [part]
        for part in map(str.strip, parts)
    )
    return [item for both in plus_minus for item in both]


def _pairs_off(gold: str, answer: str, same: Judge) -> bool:
    if gold == answer:
        return True
    left = _items(answer)
    if len(left) != len(_items(gold)):
        return False
    for item in _items(gold):
        match = next((index for index, other in enumerate(left) if same(item, other)), None)
        if match is None:
            return False
        left.pop(match)
    return True


# The comparison.


def within_deadline(judge: Judge, gold: str, answer: str) -> bool:
    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(DEADLINE_S)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return bool(judge(gold, answer))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return False
    finally:
        signal.alarm(0)


def compare(preset: str, original: Judge, pairs: list[tuple[str, str, str]], shown: int) -> None:
    ours = MathVerifier(preset=preset)
    disagreements: list[tuple[str, str, str, bool]] = []
    for gold, answer, label in pairs:
        accepted = ours.compare(answer, gold).outcome is Outcome.CORRECT
        if accepted != within_deadline(original, gold, answer):
            disagreements.append((label, gold, answer, accepted))
    print(f"  {preset:14} agrees on {100 - 100 * len(disagreements) / len(pairs):.1f} % of {len(pairs)} pairs")
    for accepted, who in ((True, "only the preset accepts"), (False, "only the original accepts")):
        mine = [row for row in disagreements if row[3] is accepted]
        counts = {label: sum(row[0] == label for row in mine) for label in sorted({row[0] for row in mine})}
        print(f"    {who} {len(mine)}: {counts}")
        for label, gold, answer, _ in random.Random(0).sample(mine, min(shown, len(mine))):
            print(f"      {label}: gold {gold!r}, answer {answer!r}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("RLVR_DATA_DIR"), help="folder of the data sets")
    parser.add_argument("--golds", type=int, default=100, help="golds of MATH-500")
    parser.add_argument("--list", type=int, default=0, help="disagreements of each kind to show")
    parser.add_argument("--presets", nargs="*", default=["minerva", "math_verify", "olympiadbench"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    labelled = module_of("math_corpus", CORPUS).PAIRS
    groups = {
        "labelled corpus": [(pair.gold, pair.answer, "correct" if pair.correct else "wrong") for pair in labelled]
    }
    if options.data:
        groups[f"rewritings of {options.golds} golds of MATH-500"] = list(rewritings(Path(options.data), options.golds))
    for name, pairs in groups.items():
        print(f"{name}, {len(pairs)} pairs")
        for preset in options.presets:
            original = {"minerva": minerva, "math_verify": math_verify, "olympiadbench": olympiadbench}[preset]()
            compare(preset, original, [(gold, answer, str(label)) for gold, answer, label in pairs], options.list)


if __name__ == "__main__":
    main()
