"""Where a completion's program is found."""

from __future__ import annotations

import argparse
import doctest
import ftplib
import html.parser
import inspect
import textwrap
import time
from typing import Any

import pytest

import verifiers.completion.blocks
import verifiers.errors
from verifiers.unit_tests.extraction.extraction import ExtractedProgram, continues, extract
from verifiers.unit_tests.tests import (
    AssertTests,
    CallCase,
    CallTests,
    CheckTests,
    FunctionTests,
    StdioCase,
    StdioTests,
    Tests,
    needed_names,
)

F = "def f(x):\n    return x"
CASES = {
    "indented": ("1. Here:\n   ```python\n   def f(x):\n       return x\n   ```\n", F),
    "indented by one, code at the margin": (" ```python\ndef f(x):\n    return x\n ```\n", F),
    "a list item": ("1. Here:\n\n    ```python\n    def f(x):\n        return x\n    ```\nDone.", F),
    "a text in the margin": ("- a\n  ```py\n  def f(x):\n      return x\n\n  # a\n  ```\n", F + "\n\n# a"),
    "no list, so no fence": (
        "x = '''\n      ```\n      a\n      ```\n'''",
        "x = '''\n      ```\n      a\n      ```\n'''",
    ),
    "a fence in the code": ("```\nx = '''\n    ```\n'''\n```", "x = '''\n    ```\n'''"),
    "output": (f"```python\n{F}\n```\nOutput:\n```\n5\n```\n", F),
    "an example session": (f"```python\n{F}\n```\n```pycon\n>>> f(1)\n```\n", F),
    "no label": (f"Input:\n```\n5\n```\n```\n{F}\n```\n", F),
    "two programs": (f"```python\nx\n```\nBetter:\n```python\n{F}\n```\n", F),
    "continued": ("    return x\n```\nThis works because x.\n", "    return x"),
    "continued, then an example": ("    return x\n```\nSo:\n```python\nf(1)\n```\n", "    return x"),
    "continued with a docstring": (
        '    """\n    ```\n    a\n    ```\n    """\n```\nSo.',
        '    """\n    ```\n    a\n    ```\n    """',
    ),
    "continued with a whole program": (f"{F}\n```\nSo.", F),
    "a bullet first": (f"  - so:\n    ```\n    {F}\n    ```\n", F.replace("    ", "")),
}


BODY = "    return x"
DOC = '"""Example:\n\n```python\nf(1)\n```\nor\n```\nf(2)\n```\n"""\ndef f(x):\n    return x'
TAGS = 'import re\ndef f(x):\n    return re.sub(r"<think>.*</think>\\s*", "", x).split("</think>")'
CASES |= {
    # Tags and tokens around fences.
    "a tag before the fence": (f"<answer>```python\n{F}\n```\n</answer>", F),
    "a token after the fence": (f"```python\n{F}\n```<|im_end|>", F),
    "a token after an unclosed block": (f"```python\n{F}<|im_end|><|endoftext|>\n", F),
    "a tag closes the block": (f"<answer>\n```python\n{F}\n</answer>\nDone.", F),
    "a token in the code": (f"```python\n{F}.split('<|im_end|>')\n```", f"{F}.split('<|im_end|>')"),
    "a generic type is no tag": ("```python\nx = a <b> c\n```", "x = a <b> c"),
    # Thoughts.
    "a thought that is cut off": (f"<think>\n```python\ndef f(x):\n    retu\n</think>\n\n```python\n{F}\n```", F),
    "cut off within a line": (f"```python\ndef f(x):\n    retu</think>```python\n{F}\n```", F),
    "a thought in brackets": (f"[THINK]```\nx\n[/THINK]\n```\n{F}\n```\n", F),
    "channels": (f"<|channel|>analysis<|message|>```\nx\n<|channel|>final<|message|>\n```\n{F}\n```\n", F),
    "a thought, then code": (f"```python\nx\n```\n</think>\n\n{F}", F),
    "a thought, then prose": (f"```python\n{F}\n```\n</think>\n\nThat is all.", "That is all."),
    "a thought, then an unclosed block": (f"```\nx\n```\n</think>\n\n```python\n{F}", F),
    "the end of a thought in the code": (f"```python\n{TAGS}\n```\n", TAGS),
    "the end of a thought within a string": ("```python\nx = '<think>4</think> 5'\n```", "x = '<think>4</think> 5'"),
    "a thought, then what continues the prompt": (f"```\nx\n```\n</think>\n{BODY}\n```\n", BODY),
    "a line of a string that ends thoughts": (
        "```python\nx = '''\n</think>\n'''\n```\nRun:\n```bash\nls\n```\n",
        "x = '''\n</think>\n'''",
    ),
    "a thought, then a shell": (f"```python\n{F}\n```\n</think>\nRun:\n```bash\nls\n```\n", "ls"),
    # Labels.
    **{
        f"labelled {info}": (f"```{info}\n{F}\n```\n```\n5\n```\n", F)
        for info in ("python3.11", "{.python .numberLines}", 'python title="Solution"', "python,ignore", "ipython")
    },
    "a label after text": (f"**Solution:** ```python\n{F}\n```\nDone.", F),
    "an item's mark, no label": ("1. ```\n   def f(x):\n       return x\n   ```\n", F),
    # Fences.
    "backticks in tildes": ("~~~python\nx = '''\n```\n'''\n~~~\n", "x = '''\n```\n'''"),
    "Markdown": (f"````markdown\nSo:\n```python\n{F}\n```\n````\n", F),
    "Markdown with equal fences": (f"```markdown\nSo:\n```python\n{F}\n```\n```\n", F),
    "fences in a string": (f"```python\n{DOC}\n```\nSo.", DOC),
    "a string that is not closed": (f'```python\nx = """a\n```\nBetter:\n```python\n{F}\n```\n', F),
    "an apostrophe in a comment": (f"```python\n{F}  # it's\n```\n", f"{F}  # it's"),
    "no newline before the fence": (f"```python\n{F}```\nThis works.\n```bash\nls\n```", F),
    "no newline after a string": ('```python\nx = """\n"""```\nSo.', 'x = """\n"""'),
    "a fence in a string of a line": ("```python\nx = '```'\ny = '''```\n'''\n```", "x = '```'\ny = '''```\n'''"),
    "unclosed, after an output": (f"```\n5\n```\n```python\n{F}\n", F),
    "a fence at the end": (f"```python\n{F}\n```\n\n```python", F),
    "a quotation": ("So:\n> ```python\n> def f(x):\n>     return x\n> ```\nDone.", F),
    # Other languages, and sessions.
    "a shell first": (f"```bash\npip install a\n```\n```python\n{F}\n```\n", F),
    "a session labelled as Python": (f"```python\n{F}\n```\n```python\n>>> f(1)\n1\n```\n", F),
    # No fence.
    "HTML": (
        'So:\n<pre><code class="language-python">def f(x):\n    return x &lt; 2\n</code></pre>\nDone.',
        f"{F} < 2",
    ),
    "HTML over lines": (f"<pre>\n<code>\n{F}\n</code>\n</pre>\n", F),
    "a tag": (f"Here it is.\n<answer>\n{F}\n</answer>", F),
    "MBPP's brackets": (f"[BEGIN]\n{F}\n[DONE]\nSo.", F),
    "a label in brackets": (f"[PYTHON]\n{F}\n[/PYTHON]\n[TESTS]\nf(1)\n[/TESTS]", F),
    "a listing": (f"\\begin{{lstlisting}}[language=Python, frame=single]\n{F}\n\\end{{lstlisting}}\n", F),
    "listings": (
        f"\\begin{{minted}}{{bash}}\nls\n\\end{{minted}}\n\\begin{{minted}}{{python}}\n{F}\n\\end{{minted}}\n"
        "\\begin{minted}{bash}\nls\n\\end{minted}\n",
        F,
    ),
    "tags in a program": ("import a\nx = '''\n<code>\n1\n</code>\n'''", "import a\nx = '''\n<code>\n1\n</code>\n'''"),
    "fences in the strings of a program": (DOC, DOC),
    # What continues the prompt.
    "continued with statements": ("n = int(input())\nprint(n)\n```\nThis reads n.\n", "n = int(input())\nprint(n)"),
    "prose like a statement": (f"if you want it:\n```\n{F}\n```\n", F),
    "continued up to a tag": (f"{BODY}\n</code>\nSo it is.", BODY),
    "continued, then prose": (f"{BODY}\n\nThis works because x is x.\n", BODY),
    "continued, a string at the margin": (
        f'    """\nThis is a text.\n"""\n{BODY}\nThis is prose.',
        f'    """\nThis is a text.\n"""\n{BODY}',
    ),
    "a program, then a better one": (f"def f(x): pass\n\nThis is better:\n```python\n{F}\n```\n", F),
    "capitals": ("import a\nN, M, K = a.b\nA if N else M", "import a\nN, M, K = a.b\nA if N else M"),
    "indented prose": (f"  Here is the program:\n```\n{F}\n```\n", F),
}


def extracted(completion: str, policy: str = "last_block", **options: Any) -> ExtractedProgram:
    found = extract(completion, policy, **options)
    assert found is not None
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_program_of_a_completion(name: str) -> None:
    completion, program = CASES[name]
    found = extracted(completion)
    assert (found.text.strip("\n"), found.others) == (program, {})
    windows = extracted(completion.replace("\n", "\r\n"))
    assert windows.text.replace("\r\n", "\n").strip("\n") == program


@pytest.mark.parametrize(
    "completion",
    [
        "{}",
        "Sure!\n```python\n{}\n```\nDone.",
        "Sure:\n```\n{}\n```\nDone.",
        "~~~py\n{}\n~~~",
        "<answer>```python\n{}```</answer>",
        "So\n```python\ndef f(\n</think>\n```python\n{}\n```\nRun:\n```bash\nls\n```\n",
        "So\n```python\n{}",
    ],
)
def test_real_programs_come_whole(completion: str) -> None:
    for module in (
        doctest,
        ftplib,
        html.parser,
        textwrap,
        inspect,
        argparse,
        verifiers.errors,
        verifiers.completion.blocks,
    ):
        program = inspect.getsource(module).strip("\n")
        assert extracted(completion.replace("{}", program)).text.strip("\n") == program, module


def test_nothing_is_left_out_of_a_raw_completion() -> None:
    completion = f"So.</think>\r\n```python\n{F}\n```<|im_end|>"
    assert extracted(completion, "raw").text == completion


@pytest.mark.parametrize(("policy", "text"), [("first_block", "1"), ("longest_block", "222"), ("last_block", "33")])
def test_policies_pick_out_of_what_follows_a_thought(policy: str, text: str) -> None:
    blocks = "".join(f"```python\n{content}\n```\n" for content in ("1", "222", "33"))
    assert extracted(f"```python\n4444\n```\nSo.</think>\n{blocks}", policy).text == text


USED = f"```python\n{F}\n```\nExample:\n```python\nprint(f(1))\n```\n"


def test_a_usage_example_is_not_the_program() -> None:
    assert extracted(USED, "defining_block", names=["f"]).text == F
    assert extracted(USED, names=["f"]).text == "print(f(1))"
    assert extracted(USED + f"```python\n{F}  # 2\n```", "defining_block", names=["f"]).text == f"{F}  # 2"


@pytest.mark.parametrize(
    ("tests", "names"),
    [
        (CheckTests("f", "def check(f): pass"), {"f"}),
        (CallTests("f", (CallCase((1,), 2),)), {"f", "Solution"}),
        (AssertTests(("assert set(f(1)) == {2}", "assert g.h(1)")), {"f"}),
        (FunctionTests("def test(): pass", prefix="def f(x):\n"), {"f"}),
        (StdioTests((StdioCase("", ""),)), set()),
    ],
)
def test_names_that_tests_need(tests: Tests, names: set[str]) -> None:
    assert needed_names(tests) == names


def test_unlabelled_blocks_count_where_no_labelled_one_can_be_the_main_file() -> None:
    found = extracted("```python utils.py\nx = 1\n```\n```\nimport utils\n```\n")
    assert (found.text, found.others) == ("import utils", {"utils.py": "x = 1"})
    found = extracted("```python solution.py\nx = 1\n```\n```\n5\n```\n")
    assert (found.text, found.others) == ("x = 1", {})


@pytest.mark.parametrize("beginning", ["", "```python\n", "  x\n", '  x = """\n', "<code>\n", "x\n</think>\n", "```"])
@pytest.mark.parametrize(
    "text",
    [
        "```\n",
        " ",
        "- ",
        "1",
        "    ```\n",
        "`",
        "- \n",
        "  x\n",
        "1. ```\n",
        "@",
        "import ",
        "    ",
        "~~~ a\n\n",
        "def ",
        "</think>",
        "</think>\n",
        "<a>",
        "<a>\n```\n",
        "```<a>x\n",
        "<|a|>",
        "<code>",
        "<code>\n",
        "<pre>\n</pre>\n",
        "<pre>\n<code>\n</pre>\n",
        "[PYTHON]\n",
        "> ```\n",
        "> ```\nx\n",
        ">",
        "```python\n",
        "```markdown\n",
        '```python\nx = """\n```\n',
        "```\nx = '''\n```python\n",
        "x = 1\n```\n",
        "  x```\n",
        "'\"",
        "a ",
        "Aa ",
        "A a\n",
    ],
)
def test_extraction_takes_linear_time(text: str, beginning: str) -> None:
    start = time.process_time()
    extract(beginning + text * (60_000 // len(text)), "last_block")
    assert time.process_time() - start < 15, "linear: about a second at most; what is quadratic takes minutes"


@pytest.mark.parametrize(
    ("program", "continuing"),
    [
        ("        return 1", True),
        ("class Solution:\n    def head(self): pass", False),
        ("def head(nums): pass", False),
        ("head = len", False),
        ("    def helper(self): pass\n    return 1", True),
        ("class Solutions: pass", True),
    ],
)
def test_what_continues_starter_code(program: str, continuing: bool) -> None:
    assert continues(program, "import math\nclass Solution:\n    def head(self, nums):\n        ", "head") is continuing


@pytest.mark.parametrize("line", ["for x" + " in" * 150_000, "while " + ":x" * 200_000, "a" * 400_000, "a." * 200_000])
def test_a_long_first_line_takes_linear_time(line: str) -> None:
    start = time.process_time()
    extract(line, "last_block")
    assert time.process_time() - start < 15, "linear: milliseconds; what is quadratic takes half a minute"
