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
    optional: tuple[str, ...] = ("url", "subject", "level")
    """Columns without which the row is a problem all the same."""


def deferred(row: Row, converter: str, *columns: str) -> StoredTests:
    return stored_tests(DataRow(row, 0, "here"), converter, *columns)


def boxed(answer: object) -> Row:
    return {"gold_completion": f"The answer is $\\boxed{{{answer}}}$."}


STDIN = "Double it.\n\nThe program reads standard input and writes to standard output."
DOUBLE = {"gold_completion": "```python\nprint(2 * int(input()))\n```"}
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
NUMINA: Row = {
    "problem": "How far?",
    "solution": "Far.",
    "answer": "$7$",
    "question_type": "math-word-problem",
    "problem_is_valid": "Yes",
    "solution_is_valid": "Yes",
    "source": "x",
}
SUPERGPQA: Row = {
    "uuid": "u1",
    "question": "Which gas?",
    "options": ["B", "argon"],
    "answer": "argon",
    "answer_letter": "B",
    "subject": "x",
}
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
SCHEMA: Row = {"json_schema": '{"type": "integer"}\n', "unique_id": "a-1", "subject": "x"}
TABLE = "CREATE TABLE a (b INT); INSERT INTO a VALUES (1);"
SQL: Row = {"sql_prompt": "Which b?", "sql_context": TABLE, "sql": "SELECT b FROM a;", "subject": "x"}
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


EVERY = {
    "gsm8k": Case(
        GSM8K,
        Problem("gsm8k/test/0", str(GSM8K["question"]), "1,080", {"gold_completion": GSM8K["answer"]}),
        ("openai/gsm8k", "main", "test"),
    ),
    "math": Case(
        MATH,
        Problem(
            "math/test/0",
            "Find $1/2 + 1/4$.",
            r"\frac{3}{4}",
            {"level": "Level 1", "type": "Prealgebra", "gold_completion": MATH["solution"]},
        ),
        ("DigitalLearningGmbH/MATH-lighteval", "default", "test"),
        ("level", "type"),
    ),
    "math500": Case(
        MATH500,
        Problem(
            "math500/test/algebra/1.json",
            "Find $2^3$.",
            "8",
            {"subject": "Algebra", "level": 2, "gold_completion": r"It is $\boxed{8}$."},
        ),
        ("HuggingFaceH4/MATH-500", None, "test"),
    ),
    "aime24": Case(
        AIME24,
        Problem("aime24/60", "How many?", "025", {"solution": "Count them: 25.", "url": "u", **boxed("025")}),
        ("HuggingFaceH4/aime_2024", None, "train"),
        ("solution", "question", "url"),
    ),
    "amc23": Case(
        AMC23, Problem("amc23/3", "How far?", "36", {"url": "u", **boxed(36)}), ("math-ai/amc23", None, "test")
    ),
    **{
        f"aime{year}": Case(
            ARENA,
            Problem(f"aime{year}/7", "How many?", "25", {"url": "u", **boxed(25)}),
            (f"MathArena/aime_20{year}", None, "train"),
        )
        for year in (25, 26)
    },
    "hmmt25": Case(
        HMMT25,
        Problem("hmmt25/8", "How far?", r"\frac{1}{2}", {"subject": ["Algebra"], **boxed(r"\frac{1}{2}")}),
        ("MathArena/hmmt_feb_2025", None, "train"),
    ),
    "dapo_math_17k": Case(
        DAPO,
        Problem("dapo_math_17k/train/0", "How many?", "34", {"url": "u", **boxed(34)}),
        ("open-r1/DAPO-Math-17k-Processed", "en", "train"),
        ("source_prompt", "url"),
    ),
    **{
        name: Case(
            TRAINING,
            Problem(f"{name}/{split_here}/0", "How far?", r"\sqrt{2}", {"level": "3/8", **boxed(r"\sqrt{2}")}),
            (hub_id, None, split_there),
        )
        for name, split_here, hub_id, split_there in (
            ("deepscaler", "train", "agentica-org/DeepScaleR-Preview-Dataset", "train"),
            ("polaris", "train", "POLARIS-Project/Polaris-Dataset-53K", "train"),
            ("omni_math", "test", "KbsdJames/Omni-MATH", "test"),
        )
    },
    "olympiadbench": Case(
        OLYMPIAD,
        Problem("olympiadbench/test/0", "Which?", "$1$, $-2$", {"id": 7, "unit": None, **boxed("$1$, $-2$")}),
        ("Hothan/OlympiadBench", "OE_TO_maths_en_COMP", "train"),
        ("id", "context", "unit", "image_1"),
    ),
    "numina_math": Case(
        NUMINA,
        Problem(
            "numina_math/train/0",
            "How far?",
            "$7$",
            {
                "question_type": "math-word-problem",
                "problem_is_valid": "Yes",
                "solution_is_valid": "Yes",
                "source": "x",
                **boxed("$7$"),
            },
        ),
        ("AI-MO/NuminaMath-1.5", None, "train"),
        ("solution", "source"),
    ),
    "gpqa": Case(
        GPQA,
        Problem(
            "gpqa/rec1",
            "Which gas?\n\nA) neon\nB) argon\nC) radon\nD) xenon",
            "B",
            {"choices": ("neon", "argon", "radon", "xenon"), "gold_completion": "The answer is B."},
        ),
        ("Idavidrein/gpqa", "gpqa_diamond", "train"),
    ),
    "mmlu_pro": Case(
        MMLU_PRO,
        Problem(
            "mmlu_pro/test/0",
            "Which gas?\n\nA) neon\nB) argon\nC) C",
            "B",
            {"subject": "x", "choices": ("neon", "argon", "C"), "gold_completion": "The answer is B."},
        ),
        ("TIGER-Lab/MMLU-Pro", None, "test"),
        ("answer", "subject"),
    ),
    "supergpqa": Case(
        SUPERGPQA,
        Problem(
            "supergpqa/u1",
            "Which gas?\n\nA) B\nB) argon",
            "B",
            {"subject": "x", "choices": ("B", "argon"), "gold_completion": "The answer is B."},
        ),
        ("m-a-p/SuperGPQA", None, "train"),
        ("answer", "subject"),
    ),
    **{
        name: Case(
            IFEVAL,
            Problem(f"{name}/7", "No commas.", (Instruction("punctuation:no_comma"),), {"subject": "x"}),
            (hub_id, None, "train"),
        )
        for name, hub_id in (("ifeval", "google/IFEval"), ("ifbench", "allenai/IFBench_test"))
    },
    "json_schema": Case(
        SCHEMA,
        Problem(
            "json_schema/a-1",
            'Give a JSON value that fits this JSON schema.\n\n```json\n{"type": "integer"}\n```',
            '{"type": "integer"}\n',
            {"subject": "x"},
        ),
        ("epfl-dlab/JSONSchemaBench", "Github_easy", "test"),
    ),
    "sql": Case(
        SQL,
        Problem(
            "sql/test/0",
            f"{TABLE}\n\nWhich b?",
            SQLReference("SELECT b FROM a;", (TABLE,)),
            {"subject": "x", "gold_completion": "```sql\nSELECT b FROM a;\n```"},
        ),
        ("gretelai/synthetic_text_to_sql", None, "test"),
    ),
    "humaneval": Case(
        HUMANEVAL,
        Problem(
            "HumanEval/0",
            str(HUMANEVAL["prompt"]),
            CheckTests(entry_point="twice", test=str(HUMANEVAL["test"]), prefix=str(HUMANEVAL["prompt"])),
            {"entry_point": "twice", "gold_completion": "    return 2 * x\n"},
        ),
        ("openai/openai_humaneval", None, "test"),
    ),
    "mbpp": Case(
        mbpp(11),
        Problem(
            "mbpp/11",
            "Write a function to negate a number.\nYour code should pass these tests:\n\n"
            "assert negate(1) == -1\nassert negate(0) == 0",
            AssertTests(asserts=("assert negate(1) == -1", "assert negate(0) == 0"), setup=""),
            {
                "task_id": 11,
                "text": "Write a function to negate a number.",
                "code": "def negate(x):\r\n    return -x",
                "challenge_test_list": ("assert negate(-5) == 5",),
                "gold_completion": "```python\ndef negate(x):\r\n    return -x\n```",
            },
        ),
        ("google-research-datasets/mbpp", "full", "test"),
    ),
    "livecodebench": Case(
        LCB,
        Problem(
            "livecodebench/q1",
            STDIN,
            deferred(LCB, "livecodebench", "public_test_cases", "private_test_cases", "metadata"),
        ),
        ("lighteval/code_generation_lite", "release_v6", "test"),
        ("starter_code", "metadata"),
    ),
    **{
        name: Case(
            APPS,
            Problem(
                f"{name}/test/0",
                STDIN,
                deferred(APPS, "input_output", "input_output", "starter_code"),
                {"url": "u", **DOUBLE},
            ),
            call,
            ("solutions", "starter_code", "url"),
        )
        for name, call in (("apps", ("codeparrot/apps", "all", "test")), ("taco", ("parquet", None, "train")))
    },
    "codecontests": Case(
        CONTEST,
        Problem(
            "codecontests/test/0",
            STDIN,
            deferred(CONTEST, "codecontests", "public_tests", "private_tests", "generated_tests", "time_limit"),
            {"cf_rating": 800, "time_limit": {"seconds": 2, "nanos": 0}, **DOUBLE},
        ),
        ("deepmind/code_contests", None, "test"),
        ("solutions", "time_limit", "cf_rating"),
    ),
    "deepcoder": Case(
        DEEPCODER,
        Problem(
            "deepcoder/test/0",
            "Double it.\n\nThe tests call the function `twice`.",
            deferred(DEEPCODER, "test_list", "tests"),
            {"gold_completion": "```python\ndef twice(n):\n    return 2 * n\n```"},
        ),
        ("agentica-org/DeepCoder-Preview-Dataset", "codeforces", "test"),
        ("solutions",),
    ),
    **{
        f"codecontests_{language}": Case(
            CONTEST | {"solutions": {"language": [3, number], "solution": ["print(1)", program]}},
            Problem(
                f"codecontests_{language}/test/0",
                f"{STDIN} Write it in {title}.",
                deferred(CONTEST, f"codecontests_{language}", *CONTEST_TESTS, "time_limit"),
                {
                    "cf_rating": 800,
                    "time_limit": {"seconds": 2, "nanos": 0},
                    "gold_completion": f"```{language}\n{program}\n```",
                },
            ),
            ("deepmind/code_contests", None, "test"),
            ("solutions", "time_limit", "cf_rating"),
        )
        for language, number, title, program in (("cpp", 2, "C++", DOUBLE_CPP), ("java", 4, "Java", DOUBLE_JAVA))
    },
    "leetcode": Case(
        LEETCODE,
        Problem(
            "leetcode/double",
            "Double it.\n\nComplete this code:\n\n```python\nclass Solution:\n    def double(self, n):\n```",
            CheckTests("Solution().double", "def check(candidate):\n    assert candidate(n=2) == 4", "import math\n"),
            {"difficulty": "Easy", "gold_completion": f"```python\n{LEETCODE['completion']}\n```"},
        ),
        ("newfacade/LeetCodeDataset", None, "test"),
        ("difficulty",),
    ),
    "classeval": Case(
        CLASSEVAL,
        Problem(
            "classeval/ClassEval_7",
            "Complete the class Twice:\n\n```python\nclass Twice:\n    def of(self, n):\n```",
            FunctionTests(f"from solution import *\n{CLASSEVAL['test']}", together=True),
            {"class_name": "Twice", "gold_completion": f"```python\n{CLASSEVAL['solution_code']}\n```"},
        ),
        ("FudanSELab/ClassEval", None, "test"),
        (),
    ),
    "kodcode": Case(
        KODCODE,
        Problem(
            "kodcode/K_1",
            "Double it.",
            FunctionTests(str(KODCODE["test"]), together=True),
            {"style": "instruct", "gold_completion": "```python\ndef twice(n): return 2 * n\n```"},
        ),
        ("KodCode/KodCode-Light-RL-10K", None, "train"),
        ("style",),
    ),
    "bigcodebench": Case(
        BIGCODEBENCH,
        Problem(
            "bigcodebench/BigCodeBench/0",
            "Double it.",
            FunctionTests(f"from solution import *\n{BIGCODEBENCH['test']}", entry_point="task_func", together=True),
            {
                "entry_point": "task_func",
                "libs": "['math']",
                "gold_completion": "```python\nimport math\ndef task_func(n):\n    return 2 * n\n```",
            },
        ),
        ("bigcode/bigcodebench", None, "v0.1.2"),
        ("libs",),
    ),
    "ds1000": Case(
        DS1000,
        Problem(
            "ds1000/3",
            "Problem:\nDouble it.\n\nA:\n<code>\nn = 2\n</code>\n\n"
            "Write only the code that follows, without the code that is given above.",
            FunctionTests(f"{DS1000['code_context']}{SOLUTION_AS_TEXT}", together=True),
            {"library": "Numpy", "gold_completion": "```python\nm = 2 * n\n```"},
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
