"""Programs of several files: how a completion names them, and who can import them."""

from __future__ import annotations

import time

import pytest

from tests.sandbox import judge
from verifiers import InvalidArgumentError, Outcome
from verifiers.unit_tests import (
    AssertTests,
    CallCase,
    CallTests,
    CheckTests,
    FunctionTests,
    StdioCase,
    StdioTests,
    UnitTestVerifier,
)
from verifiers.unit_tests.extraction.extraction import ExtractedProgram, extract

pytestmark = pytest.mark.sandbox(memory_mib=1024)


@pytest.mark.parametrize(
    "opening",
    [
        "```python utils.py\n",
        "```utils.py\n",
        '```python title="utils.py"\n',
        '```python {file="utils.py"}\n',
        "```python\n# utils.py\n",
        "```\n#!# --- \n",
        "**utils.py**\n```python\n",
        "--- utils.py ---\n```python\n# utils.py\n",
        "`utils.py`\n~~~python\n",
    ],
)
def test_ways_to_name_a_file(opening: str) -> None:
    fence = "~~~" if "~~~" in opening else "```"
    source = extract(f"Here:\n{opening}x = 1\n{fence}\nand\n```python\nimport utils\n```\n", "last_block")
    assert source is not None
    named = "utils.py" in opening
    assert list(source.others) == (["utils.py"] if named else [])
    assert source.text == "import utils"
    assert source.path == ""


@pytest.mark.parametrize(
    "completion",
    [
        "{}\n```python\nx = 1\n```",
        "{}!\n```python\nx = 1\n```",
        "```python {}\nx = 1\n```",
        "```python {}x`\nx = 1\n```",
        "```python\n# {}x\nx = 1\n```",
    ],
)
@pytest.mark.parametrize("unit", ["-", "#", " ", "_", "*", "1.", "1", "a/", "=", "file ", "> ", "a.py ", ":a", "`"])
def test_no_completion_takes_long_to_read(completion: str, unit: str) -> None:
    before = time.process_time()
    extract(completion.format(unit * 50_000), "last_block")
    assert time.process_time() - before < 10, "linear: milliseconds; a pattern that backtracks takes minutes or ages"


@pytest.mark.parametrize(
    "opening",
    [
        "```python ../utils.py\n",
        "```python /etc/utils.py\n",
        "see utils.py there\n```python\n",
        "```python\n# utils.py is bad\n",
        "```bash utils.sh\n",
    ],
)
def test_what_names_no_file(opening: str) -> None:
    source = extract(f"{opening}x = 1\n```\n\n```python\ny = 2\n```\n", "last_block")
    assert source == ExtractedProgram("y = 2")


def test_of_equal_names_the_last_counts_and_the_main_file_is_found() -> None:
    completion = """
```python a.py
1
```
```python main.py
2
```
```python a.py
3
```
"""
    assert extract(completion, "last_block") == ExtractedProgram("2", "main.py", {"a.py": "3"})
    assert extract(completion, "last_block", "a.py") == ExtractedProgram("3", "a.py", {"main.py": "2"})
    assert extract(completion.replace("main.py", "b.py"), "first_block") == ExtractedProgram("3", "a.py", {"b.py": "2"})


PACKAGE = """The package:

```python bank/__init__.py
from .account import Account
from .errors import FundsError
```

```python bank/account.py
from .errors import FundsError
from util import check
class Account:
    def __init__(self, balance=0): self.balance = balance
    def withdraw(self, amount):
        check(amount)
        if amount > self.balance: raise FundsError(amount)
        self.balance -= amount
        return self.balance
```

```python bank/errors.py
class FundsError(Exception): pass
```

```python util.py
def check(amount):
    if amount < 0: raise ValueError("negative")
```
"""
PACKAGE_TEST = """
import pytest
import bank
import bank.errors
from bank import Account, account
from bank.errors import FundsError
from util import check

def test_withdraw():
    assert Account(5).withdraw(3) == 2 and account.Account is not None

def test_errors():
    with pytest.raises(FundsError): bank.Account(1).withdraw(2)
    with pytest.raises(bank.errors.FundsError): bank.Account(1).withdraw(2)
    with pytest.raises(ValueError, match="negative"): check(-1)
"""


def test_tests_import_a_package_and_its_modules(verifier: UnitTestVerifier) -> None:
    tests = FunctionTests(PACKAGE_TEST, module="bank", modules=("util",))
    verdict = judge(verifier, PACKAGE, tests)
    assert (verdict.outcome, verdict.detail["total"]) == (Outcome.CORRECT, 2), verdict.detail
    assert judge(verifier, PACKAGE.replace("-= amount", "-= 1"), tests).detail["failure"] == "wrong_answer"
    assert (
        judge(verifier, PACKAGE.replace("class Account:", "class Account(:"), tests).detail["failure"] == "syntax_error"
    )
    assert judge(verifier, PACKAGE.replace("from util", "from utils"), tests).outcome is Outcome.INCORRECT
    assert judge(verifier, "```python\nx = 1\n```", tests).outcome is Outcome.INCORRECT


TWO = """
**helper.py**
```python
def twice(x):
    return 2 * x
```
**{main}**
```python
from helper import twice
def f(x):
    return twice(x) + 1
```
"""


@pytest.mark.parametrize("main", ["solution.py", "main.py", "f.py", "the program"])
def test_every_kind_of_tests_runs_several_files(verifier: UnitTestVerifier, main: str) -> None:
    completion = TWO.format(main=main)
    for tests in (
        CallTests("f", (CallCase((3,), 7),)),
        AssertTests(("assert f(3) == 7",)),
        CheckTests("f", "def check(g): assert g(3) == 7"),
        FunctionTests("from solution import f\ndef test_it(): assert f(3) == 7"),
    ):
        assert judge(verifier, completion, tests).outcome is Outcome.CORRECT
        assert judge(verifier, completion.replace("2 *", "3 *"), tests).outcome is Outcome.INCORRECT


def test_files_of_the_problem_are_there_for_both(verifier: UnitTestVerifier) -> None:
    files = {"data/primes.py": "PRIMES = [2, 3, 5]\n"}
    program = "from data.primes import PRIMES\ndef nth(n): return PRIMES[n]"
    spoiled = "from data import primes\nprimes.PRIMES[:] = [7, 7, 7]\ndef nth(n): return 7"
    overwritten = f"""
```python data/primes.py
PRIMES = [7] * 9
```
```python
{program}
```
"""
    for tests in (
        FunctionTests(
            "from solution import nth\nfrom data.primes import PRIMES\ndef test_it(): assert nth(1) == PRIMES[1]",
            files=files,
        ),
        AssertTests(("assert nth(1) == PRIMES[1]",), setup="from data.primes import PRIMES", files=files),
    ):
        assert judge(verifier, program, tests).outcome is Outcome.CORRECT
        assert judge(verifier, spoiled, tests).outcome is Outcome.INCORRECT
        assert judge(verifier, overwritten, tests).outcome is Outcome.INCORRECT
    script = StdioTests((StdioCase("1\n", "3\n"),), files=files)
    assert judge(verifier, program + "\nprint(nth(int(input())))", script).outcome is Outcome.CORRECT


def test_files_named_like_what_tests_import_change_nothing_for_them(verifier: UnitTestVerifier) -> None:
    names = ("math", "pytest", "unittest", "collections", "builtins", "numpy", "tests")
    forged = "".join(
        (f"```python {name}.py\nisclose = approx = raises = TestCase = lambda *a, **k: 0\n```\n") for name in names
    )
    completion = f"{forged}```python\ndef f(x): return 0\n```"
    test = """
import math, unittest, pytest
from solution import f
def test_it(): assert math.isclose(f(1), 1) and f(1) == pytest.approx(1)
"""
    assert judge(verifier, completion, FunctionTests(test)).outcome is Outcome.INCORRECT
    assert judge(verifier, completion, FunctionTests(f"import numpy\n{test}")).outcome is Outcome.VERIFIER_ERROR
    honest = completion.replace("return 0", "return x")
    assert judge(verifier, honest, FunctionTests(test)).outcome is Outcome.CORRECT


@pytest.mark.parametrize("name", ["bisect", "statistics", "xml.dom", "pytest", "tests"])
def test_no_program_has_the_name_of_a_module_that_its_tests_would_import_instead(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"can't be called '{name}': .* Choose another name"):
        FunctionTests(PACKAGE_TEST, module=name)
    with pytest.raises(InvalidArgumentError, match=f"can't be called '{name}'"):
        FunctionTests(PACKAGE_TEST, modules=("bank", name))
