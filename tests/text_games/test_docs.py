"""The examples of the pages run."""

from __future__ import annotations

import re

import pytest

from tests.docs import DOCS


@pytest.mark.parametrize("page", ["textarena.md", "gem.md"])
def test_the_examples_run(page: str) -> None:
    code, *_ = re.findall(r"```python\n(.*?)```", (DOCS / "environments" / page).read_text(encoding="utf-8"), re.DOTALL)
    exec(code, {})
