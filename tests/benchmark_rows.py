"""One row for each benchmark, written for these tests in the columns of its data set, and what is to come of it.

The rows are the small data of every test that needs some, so their gold completions pass. `EVERY` is the test row that a new
benchmark needs: `tests/data` loads it from a file and from a hub, without each column and with a wrong split.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlvr_envs.data import Row as DataRow
from rlvr_envs.data.stored import StoredTests, stored_tests
from rlvr_envs.tasks.programs import SOLUTION_AS_TEXT
from verifiers import Problem
from verifiers.ifeval import Instruction
from verifiers.sql import SQLReference
from verifiers.unit_tests import AssertTests, CheckTests, FunctionTests

Row = dict[str, object]


@dataclass(frozen=True)
class Case:
    row: Row
    problem: Problem
    """What the row becomes in the split `test`, or `train` where there is no other."""
    call: tuple[str, str | None, str]
    """Data set, configuration and split for which the hub is asked."""
    optional: tuple[str, ...]
    """Columns without which the row is a problem all the same."""


def case(row: Row, problem: Problem, call: tuple[str, str | None, str], *optional: str) -> Case:
    return Case(row, problem, call, optional or ("url", "subject", "level"))


def asked(name: str, prompt: object, reference: object, gold: object = None, **metadata: object) -> Problem:
    """A problem with a gold completion and other metadata."""
    gold_completion = {} if gold is None else {"gold_completion": gold}
    return Problem(name, str(prompt), reference, metadata | gold_completion)


def deferred(row: Row, converter: str, *columns: str) -> StoredTests:
    return stored_tests(DataRow(row, 0, "here"), converter, *columns)


def boxed(answer: object) -> str:
    return f"The answer is $\\boxed{{{answer}}}$."


def fenced(program: object, language: str = "python") -> str:
    return f"```{language}\n{program}\n```"


STDIN = "Double it.\n\nThe program reads standard input and writes to standard output."
DOUBLE, GOLD_B = fenced("print(2 * int(input()))"), "The answer is B."
GSM8K: Row = {"question": "A pen costs $2. What do 540 pens cost?", "answer": "2*540=<<2*540=1080>>1080\n#### 1,080"}
MATH: Row = {
    "problem": "Find $1/2 + 1/4$.",
    "level": "Level 1",
    "type": "Prealgebra",
    "solution": r"Not $\boxed{1}$ but $\boxed{\frac{3}{4}}$.",
}
MATH500: Row = {
    "problem": "Find $2^3$.",
    "solution": r"It is $\boxed{8}$.",
    "answer": "8",
    "subject": "Algebra",
    "level": 2,
    "unique_id": "test/algebra/1.json",
}
AIME24: Row = {
    "id": 60,
    "problem": "How many?",
    "solution": "Count them: 25.",
    "answer": "025",
    "url": "u",
    "question": "How many?",
}
ARENA: Row = {"problem_idx": 7, "problem": "How many?", "answer": 25, "url": "u"}
HMMT25: Row = {"problem_idx": 8, "problem": "How far?", "answer": r"\frac{1}{2}", "subject": ["Algebra"]}
DAPO: Row = {"prompt": "How many?", "solution": "34", "source_prompt": [], "url": "u"}
TRAINING: Row = {"problem": "How far?", "answer": r"\sqrt{2}", "level": "3/8"}
GAS, GASES = "Which gas?\n\n", ("neon", "argon", "radon", "xenon")
GPQA: Row = {
    "Record ID": "rec1",
    "Question": "Which gas? ",
    "Correct Answer": "argon\n",
    "Incorrect Answer 1": "neon",
    "Incorrect Answer 2": "radon",
    "Incorrect Answer 3": "xenon",
}
MMLU_PRO: Row = {
    "question": "Which gas?",
    "options": ["neon", "argon", "C"],
    "answer": "B",
    "answer_index": 1,
    "subject": "x",
}
OLYMPIAD: Row = {
    "id": 7,
    "context": None,
    "question": "Which?",
    "final_answer": ["$1$", "$-2$"],
    "unit": None,
    "image_1": None,
}
NUMINA_DATA: Row = {
    "question_type": "math-word-problem",
    "problem_is_valid": "Yes",
    "solution_is_valid": "Yes",
    "source": "x",
}
NUMINA: Row = {"problem": "How far?", "solution": "Far.", "answer": "$7$", **NUMINA_DATA}
SUPERGPQA: Row = {
    "uuid": "u1",
    "question": "Which gas?",
    "options": ["B", "argon"],
    "answer": "argon",
    "answer_letter": "B",
    "subject": "x",
}
LCB_TESTS = ("public_test_cases", "private_test_cases")
LCB: Row = {
    "question_id": "q1",
    "question_content": "Double it.",
    "starter_code": "",
    "public_test_cases": '[{"input": "1", "output": "2", "testtype": "stdin"}]',
    "private_test_cases": "[]",
    "metadata": "{}",
}
APPS: Row = {
    "question": "Double it.\n",
    "solutions": '["print(2 * int(input()))", "x"]',
    "input_output": '{"inputs": ["1"], "outputs": ["2"]}',
    "starter_code": "",
    "url": "u",
}
DEEPCODER: Row = {
    "problem": "Double it.",
    "tests": '[{"type": "function_call", "fn_name": "twice", "input": [1], "output": 2}]',
    "solutions": ["```python\ndef twice(n):\n    return 2 * n\n```"],
}
CONTEST: Row = {
    "description": "Double it.",
    "public_tests": {"input": ["1"], "output": ["2"]},
    "private_tests": {"input": [], "output": []},
    "generated_tests": {"input": ["2"], "output": ["4"]},
    "solutions": {"language": [2, 3, 3], "solution": ["int main", "print(2 * int(input()))", "x"]},
    "time_limit": {"seconds": 2, "nanos": 0},
    "cf_rating": 800,
}
CONTEST_TESTS = ("public_tests", "private_tests", "generated_tests")
DOUBLE_CPP = "#include <iostream>\nint main() { int n; std::cin >> n; std::cout << 2 * n; }"
DOUBLE_JAVA = (
    "class Main { public static void main(String[] a) "
    "{ System.out.println(2 * new java.util.Scanner(System.in).nextInt()); } }"
)
LEETCODE: Row = {
    "task_id": "double",
    "difficulty": "Easy",
    "problem_description": "Double it.",
    "starter_code": "class Solution:\n    def double(self, n):\n",
    "prompt": "import math\n",
    "completion": "class Solution:\n    def double(self, n):\n        return 2 * n",
    "entry_point": "Solution().double",
    "test": "def check(candidate):\n    assert candidate(n=2) == 4",
}
CLASSEVAL: Row = {
    "task_id": "ClassEval_7",
    "class_name": "Twice",
    "skeleton": "class Twice:\n    def of(self, n):\n",
    "solution_code": "class Twice:\n    def of(self, n): return 2 * n",
    "test": "import unittest\nclass TwiceTest(unittest.TestCase):\n    def test_of(self): self.assertEqual(Twice().of(2), 4)",
}
KODCODE: Row = {
    "question_id": "K_1",
    "style": "instruct",
    "question": "Double it.",
    "solution": "def twice(n): return 2 * n",
    "test": "from solution import twice\ndef test_twice(): assert twice(2) == 4",
}
BIGCODEBENCH: Row = {
    "task_id": "BigCodeBench/0",
    "instruct_prompt": "Double it.",
    "code_prompt": "import math\ndef task_func(n):\n",
    "canonical_solution": "    return 2 * n",
    "test": "import unittest\nclass TestCases(unittest.TestCase):\n    def test_it(self): self.assertEqual(task_func(2), 4)",
    "entry_point": "task_func",
    "libs": "['math']",
}
DS1000: Row = {
    "prompt": "Problem:\nDouble it.\n\nA:\n<code>\nn = 2\n</code>\nBEGIN SOLUTION\n<code>\n",
    "reference_code": "m = 2 * n",
    "metadata": {"problem_id": 3, "library": "Numpy"},
    "code_context": """import tokenize, io
exec_context = "n = 2\\n[insert]\\n"
def test_execution(solution):
    env = {}
    exec(exec_context.replace("[insert]", solution), env)
    assert env["m"] == 4
def test_string(solution):
    assert "for" not in [token.string for token in tokenize.generate_tokens(io.StringIO(solution).readline)]
""",
}
IFEVAL: Row = {
    "key": 7,
    "prompt": "No commas.",
    "instruction_id_list": ["punctuation:no_comma"],
    "kwargs": [{"num_words": None}],
    "subject": "x",
}
FITS, INTEGER = "Give a JSON value that fits this JSON schema.", '{"type": "integer"}'
SCHEMA: Row = {"json_schema": f"{INTEGER}\n", "unique_id": "a-1", "subject": "x"}
TABLE = "CREATE TABLE a (b INT); INSERT INTO a VALUES (1);"
QUERY = "SELECT b FROM a;"
SQL: Row = {"sql_prompt": "Which b?", "sql_context": TABLE, "sql": QUERY, "subject": "x"}
AMC23: Row = {"id": 3, "question": "How far?", "answer": 36.0, "url": "u"}
HUMANEVAL: Row = {
    "task_id": "HumanEval/0",
    "prompt": 'def twice(x):\n    """Double x."""\n',
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
    "entry_point": "twice",
}


def mbpp(task_id: int, **changes: object) -> Row:
    return {
        "task_id": task_id,
        "text": "Write a function to negate a number.",
        "code": "def negate(x):\r\n    return -x",
        "test_setup_code": "",
        "test_list": ["assert negate(1) == -1", "assert negate(0) == 0"],
        "challenge_test_list": ["assert negate(-5) == 5"],
    } | changes


CONTEST_DATA: Row = {"cf_rating": 800, "time_limit": {"seconds": 2, "nanos": 0}}
EVERY = {
    "gsm8k": case(
        GSM8K, asked("gsm8k/test/0", GSM8K["question"], "1,080", GSM8K["answer"]), ("openai/gsm8k", "main", "test")
    ),
    "math": case(
        MATH,
        asked("math/test/0", "Find $1/2 + 1/4$.", r"\frac{3}{4}", MATH["solution"], level="Level 1", type="Prealgebra"),
        ("DigitalLearningGmbH/MATH-lighteval", "default", "test"),
        *("level", "type"),
    ),
    "math500": case(
        MATH500,
        asked("math500/test/algebra/1.json", "Find $2^3$.", "8", MATH500["solution"], subject="Algebra", level=2),
        ("HuggingFaceH4/MATH-500", None, "test"),
    ),
    "aime24": case(
        AIME24,
        asked("aime24/60", "How many?", "025", boxed("025"), solution="Count them: 25.", url="u"),
        ("HuggingFaceH4/aime_2024", None, "train"),
        *("solution", "question", "url"),
    ),
    "amc23": case(AMC23, asked("amc23/3", "How far?", "36", boxed(36), url="u"), ("math-ai/amc23", None, "test")),
    **{
        f"aime{year}": case(
            ARENA,
            asked(f"aime{year}/7", "How many?", "25", boxed(25), url="u"),
            (f"MathArena/aime_20{year}", None, "train"),
        )
        for year in (25, 26)
    },
    "hmmt25": case(
        HMMT25,
        asked("hmmt25/8", "How far?", r"\frac{1}{2}", boxed(r"\frac{1}{2}"), subject=["Algebra"]),
        ("MathArena/hmmt_feb_2025", None, "train"),
    ),
    "dapo_math_17k": case(
        DAPO,
        asked("dapo_math_17k/train/0", "How many?", "34", boxed(34), url="u"),
        ("open-r1/DAPO-Math-17k-Processed", "en", "train"),
        *("source_prompt", "url"),
    ),
    **{
        name: case(
            TRAINING,
            asked(f"{name}/{split_here}/0", "How far?", r"\sqrt{2}", boxed(r"\sqrt{2}"), level="3/8"),
            (hub_id, None, split_there),
        )
        for name, split_here, hub_id, split_there in (
            ("deepscaler", "train", "agentica-org/DeepScaleR-Preview-Dataset", "train"),
            ("polaris", "train", "POLARIS-Project/Polaris-Dataset-53K", "train"),
            ("omni_math", "test", "KbsdJames/Omni-MATH", "test"),
        )
    },
    "olympiadbench": case(
        OLYMPIAD,
        asked("olympiadbench/test/0", "Which?", "$1$, $-2$", boxed("$1$, $-2$"), id=7, unit=None),
        ("Hothan/OlympiadBench", "OE_TO_maths_en_COMP", "train"),
        *("id", "context", "unit", "image_1"),
    ),
    "numina_math": case(
        NUMINA,
        asked("numina_math/train/0", "How far?", "$7$", boxed("$7$"), **NUMINA_DATA),
        ("AI-MO/NuminaMath-1.5", None, "train"),
        *("solution", "source"),
    ),
    "gpqa": case(
        GPQA,
        asked("gpqa/rec1", f"{GAS}A) neon\nB) argon\nC) radon\nD) xenon", "B", GOLD_B, choices=GASES),
        ("Idavidrein/gpqa", "gpqa_diamond", "train"),
    ),
    "mmlu_pro": case(
        MMLU_PRO,
        asked(
            "mmlu_pro/test/0", f"{GAS}A) neon\nB) argon\nC) C", "B", GOLD_B, subject="x", choices=("neon", "argon", "C")
        ),
        ("TIGER-Lab/MMLU-Pro", None, "test"),
        *("answer", "subject"),
    ),
    "supergpqa": case(
        SUPERGPQA,
        asked("supergpqa/u1", f"{GAS}A) B\nB) argon", "B", GOLD_B, subject="x", choices=("B", "argon")),
        ("m-a-p/SuperGPQA", None, "train"),
        *("answer", "subject"),
    ),
    **{
        name: case(
            IFEVAL,
            asked(f"{name}/7", "No commas.", (Instruction("punctuation:no_comma"),), subject="x"),
            (hub_id, None, "train"),
        )
        for name, hub_id in (("ifeval", "google/IFEval"), ("ifbench", "allenai/IFBench_test"))
    },
    "json_schema": case(
        SCHEMA,
        asked("json_schema/a-1", f"{FITS}\n\n{fenced(INTEGER, 'json')}", f"{INTEGER}\n", subject="x"),
        ("epfl-dlab/JSONSchemaBench", "Github_easy", "test"),
    ),
    "sql": case(
        SQL,
        asked("sql/test/0", f"{TABLE}\n\nWhich b?", SQLReference(QUERY, (TABLE,)), fenced(QUERY, "sql"), subject="x"),
        ("gretelai/synthetic_text_to_sql", None, "test"),
    ),
    "humaneval": case(
        HUMANEVAL,
        asked(
            "HumanEval/0",
            HUMANEVAL["prompt"],
            CheckTests(entry_point="twice", test=str(HUMANEVAL["test"]), prefix=str(HUMANEVAL["prompt"])),
            HUMANEVAL["canonical_solution"],
            entry_point="twice",
        ),
        ("openai/openai_humaneval", None, "test"),
    ),
    "mbpp": case(
        mbpp(11),
        asked(
            "mbpp/11",
            "Write a function to negate a number.\nYour code should pass these tests:\n\n"
            "assert negate(1) == -1\nassert negate(0) == 0",
            AssertTests(asserts=("assert negate(1) == -1", "assert negate(0) == 0"), setup=""),
            fenced(mbpp(11)["code"]),
            challenge_test_list=("assert negate(-5) == 5",),
            **{name: mbpp(11)[name] for name in ("task_id", "text", "code")},
        ),
        ("google-research-datasets/mbpp", "full", "test"),
    ),
    "livecodebench": case(
        LCB,
        asked("livecodebench/q1", STDIN, deferred(LCB, "livecodebench", *LCB_TESTS, "metadata")),
        ("lighteval/code_generation_lite", "release_v6", "test"),
        *("starter_code", "metadata"),
    ),
    **{
        name: case(
            APPS,
            asked(f"{name}/test/0", STDIN, deferred(APPS, *["input_output"] * 2, "starter_code"), DOUBLE, url="u"),
            call,
            *("solutions", "starter_code", "url"),
        )
        for name, call in (("apps", ("codeparrot/apps", "all", "test")), ("taco", ("parquet", None, "train")))
    },
    **{
        name: case(
            CONTEST | {"solutions": solutions},
            asked(
                f"{name}/test/0",
                f"{STDIN}{extra}",
                deferred(CONTEST, name, *CONTEST_TESTS, "time_limit"),
                fenced(solutions["solution"][1], name.partition("_")[2] or "python"),
                **CONTEST_DATA,
            ),
            ("deepmind/code_contests", None, "test"),
            *("solutions", "time_limit", "cf_rating"),
        )
        for name, extra, solutions in (
            ("codecontests", "", CONTEST["solutions"]),
            ("codecontests_cpp", " Write it in C++.", {"language": [3, 2], "solution": ["print(1)", DOUBLE_CPP]}),
            ("codecontests_java", " Write it in Java.", {"language": [3, 4], "solution": ["print(1)", DOUBLE_JAVA]}),
        )
    },
    "deepcoder": case(
        DEEPCODER,
        asked(
            "deepcoder/test/0",
            "Double it.\n\nThe tests call the function `twice`.",
            deferred(DEEPCODER, "test_list", "tests"),
            fenced("def twice(n):\n    return 2 * n"),
        ),
        ("agentica-org/DeepCoder-Preview-Dataset", "codeforces", "test"),
        "solutions",
    ),
    "leetcode": case(
        LEETCODE,
        asked(
            "leetcode/double",
            "Double it.\n\nComplete this code:\n\n```python\nclass Solution:\n    def double(self, n):\n```",
            CheckTests("Solution().double", str(LEETCODE["test"]), "import math\n"),
            fenced(LEETCODE["completion"]),
            difficulty="Easy",
        ),
        ("newfacade/LeetCodeDataset", None, "test"),
        "difficulty",
    ),
    "classeval": case(
        CLASSEVAL,
        asked(
            "classeval/ClassEval_7",
            "Complete the class Twice:\n\n```python\nclass Twice:\n    def of(self, n):\n```",
            FunctionTests(f"from solution import *\n{CLASSEVAL['test']}", together=True),
            fenced(CLASSEVAL["solution_code"]),
            class_name="Twice",
        ),
        ("FudanSELab/ClassEval", None, "test"),
    ),
    "kodcode": case(
        KODCODE,
        asked(
            "kodcode/K_1",
            "Double it.",
            FunctionTests(str(KODCODE["test"]), together=True),
            fenced(KODCODE["solution"]),
            style="instruct",
        ),
        ("KodCode/KodCode-Light-RL-10K", None, "train"),
        "style",
    ),
    "bigcodebench": case(
        BIGCODEBENCH,
        asked(
            "bigcodebench/BigCodeBench/0",
            "Double it.",
            FunctionTests(f"from solution import *\n{BIGCODEBENCH['test']}", entry_point="task_func", together=True),
            fenced("import math\ndef task_func(n):\n    return 2 * n"),
            entry_point="task_func",
            libs="['math']",
        ),
        ("bigcode/bigcodebench", None, "v0.1.2"),
        "libs",
    ),
    "ds1000": case(
        DS1000,
        asked(
            "ds1000/3",
            "Problem:\nDouble it.\n\nA:\n<code>\nn = 2\n</code>\n\n"
            "Write only the code that follows, without the code that is given above.",
            FunctionTests(f"{DS1000['code_context']}{SOLUTION_AS_TEXT}", together=True),
            fenced("m = 2 * n"),
            library="Numpy",
        ),
        ("xlangai/DS-1000", None, "test"),
    ),
}
SEVERAL = {
    "gsm8k": [
        {"question": "Ada has 3 pens and buys 4 more. How many has she?", "answer": "3 + 4 = <<3+4=7>>7\n#### 7"},
        GSM8K,
    ],
    "mbpp": [mbpp(number) for number in (2, 12, 512, 602)],  # one for each split
}
"""The rows of those of which some tests need more than one."""
