"""Everything on docs/results.md runs, in its order, and prints what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from agents.commands.main import main
from agents.commands.view import OLDEST

ROOT = Path(__file__).parent.parent
DOCS = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(sh|python|json|)\n(.*?)```", DOCS, re.DOTALL)


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    said = ""
    commands = []
    for language, block in BLOCKS:
        if language == "json":
            Path("completions.jsonl").write_text(block)
        elif language == "python":
            exec(compile(block, "results.md", "exec"), {})
        elif language == "":
            assert said.endswith(block)
        else:
            for line in block.splitlines():
                command = shlex.split(line)[1:]
                with pytest.raises(SystemExit) as ended:
                    main(command)
                said = capsys.readouterr().out
                assert ended.value.code == 0, line
                commands.append(command[0])
    assert set(commands) == {"train", "eval", "grade", "rescore", "compare", "contamination", "plot", "view", "show"}
    assert Path("runs/eval/adder/inspect.eval").is_file()


def test_the_versions_of_inspect_are_those_that_are_tested() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    newest = re.findall(
        r"^inspect-ai==(.*)$", (ROOT / "constraints-view.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert re.findall(r"^OLDEST_INSPECT := (.*)$", makefile, re.MULTILINE) == [OLDEST]
    assert re.findall(r"`make test-view` tests (\S+) and (\S+)\.\n", DOCS) == [(OLDEST, *newest)]
    assert set(re.findall(r"inspect-ai>=([\d.]+\d)", DOCS)) == {OLDEST}
