"""Where a completion's program is found."""

from __future__ import annotations

import time

import pytest

from verifiers.unit_tests.extraction import EXTRACTIONS, continues, extract

F = "def f(x):\n    return x"
CASES = {
    "indented": ("1. Here:\n   ```python\n   def f(x):\n       return x\n   ```\n", F),
    "indented by one, code at the margin": (" ```python\ndef f(x):\n    return x\n ```\n", F),
    "a list item": ("1. Here:\n\n    ```python\n    def f(x):\n        return x\n    ```\nDone.", F),
    "an item of an item": ("- a\n  - b:\n\n    ```py\n    def f(x):\n        return x\n    ```\n", F),
    "a text in the margin": ("- a\n  ```py\n  def f(x):\n      return x\n\n  # a\n  ```\n", F + "\n\n# a"),
    "no list, so no fence": (
        "x = '''\n      ```\n      a\n      ```\n'''",
        "x = '''\n      ```\n      a\n      ```\n'''",
    ),
    "a fence in the code": ("```\nx = '''\n    ```\n'''\n```", "x = '''\n    ```\n'''"),
    "output": (f"```python\n{F}\n```\nOutput:\n```\n5\n```\n", F),
    "a shell": (f"```python\n{F}\n```\nRun:\n```bash\npython f.py\n```\n", F),
    "an example session": (f"```python\n{F}\n```\n```pycon\n>>> f(1)\n```\n", F),
    "output before": (f"Input:\n```\n5\n```\n```python\n{F}\n```\n", F),
    "no label": (f"Input:\n```\n5\n```\n```\n{F}\n```\n", F),
    "two programs": (f"```python\nx\n```\nBetter:\n```python\n{F}\n```\n", F),
    "continued": ("    return x\n```\nThis works because x.\n", "    return x"),
    "continued and closed": ("    return x\n```", "    return x"),
    "continued, then an example": ("    return x\n```\nSo:\n```python\nf(1)\n```\n", "    return x"),
    "continued with a docstring": (
        '    """\n    ```\n    a\n    ```\n    """\n```\nSo.',
        '    """\n    ```\n    a\n    ```\n    """',
    ),
    "continued with a whole program": (f"{F}\n```\nSo.", F),
    "prose first": (f"from the above:\n```\n{F}\n```\n", F),
    "a bullet first": (f"  - so:\n    ```\n    {F}\n    ```\n", F.replace("    ", "")),
}


@pytest.mark.parametrize("name", CASES)
def test_the_program_of_a_completion(name: str) -> None:
    completion, program = CASES[name]
    found = extract(completion, "last_block")
    assert found is not None
    assert (found.text.strip("\n"), found.others) == (program, {})
    windows = extract(completion.replace("\n", "\r\n"), "last_block")
    assert windows is not None
    assert windows.text.replace("\r\n", "\n").strip("\n") == program


def test_unlabelled_blocks_count_where_no_labelled_one_can_be_the_main_file() -> None:
    source = extract("```python utils.py\nx = 1\n```\n```\nimport utils\n```\n", "last_block")
    assert source is not None
    assert (source.text, source.others) == ("import utils", {"utils.py": "x = 1"})
    source = extract("```python solution.py\nx = 1\n```\n```\n5\n```\n", "last_block")
    assert source is not None
    assert (source.text, source.others) == ("x = 1", {})


@pytest.mark.parametrize("policy", EXTRACTIONS)
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
    ],
)
def test_extraction_takes_linear_time(policy: str, text: str) -> None:
    start = time.process_time()
    extract(text * (1_000_000 // len(text)), policy)
    assert time.process_time() - start < 3


def test_nothing_continues_what_announces_nothing() -> None:
    assert not continues("from __future__ import annotations\nx = 1", "import math\n", "")
    assert not continues("    return 1", "", "f")


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
