"""What data hold is shown on the terminal, and never obeyed by it."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from agents.commands.main import main
from agents.console.counting import counted
from agents.console.printable import printable
from agents.console.progress import progress
from agents.console.step_text import StepText
from agents.console.terminal import TerminalConsole

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\x08\x00\u202egnp.exe\u2066\ud800[link=file:///etc]x[/link]"
"""A new title, a cleared screen, a colour by a C1 control, text that overwrites and text that runs backwards."""
OBEYED = {*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), "\u202e", "\u2066", "\ud800"} - {"\n", "\t"}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit):
        main(arguments)
    captured = capsys.readouterr()
    output = captured.out + captured.err
    assert not OBEYED & set(output), output
    return output


def test_no_character_that_is_obeyed_stays() -> None:
    assert not OBEYED & {character for code in range(0x110000) for character in printable(chr(code))}


def test_hostile_answers_and_names_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    answer = HOSTILE.replace("\ud800", "")  # no argument of a command line holds one
    for words in (("verify", f"\\boxed{{{answer}}}", answer, "--verifier", "exact"), ("envs", HOSTILE), (HOSTILE,)):
        assert "owned" in run(capsys, *words)
    assert "mod:boom:" in run(capsys, "verify", "1", "1", "--verifier", "mod:boom:")  # no picture


def test_the_line_of_a_step_keeps_the_last_evaluation() -> None:
    text = StepText()
    assert text.after({"reward": 0.25}) == "reward 0.250"
    scores = {"eval/Sort": 0.5, "eval/Sort/low": 0.4, "eval/Sort/verifier_errors": 3.0}
    known = {"reward": 0.5, "frac_reward_zero_std": 0.375, "tokens_per_s": 1203.4}
    assert text.after(known | scores) == "reward 0.500, eval 0.500, signal 62%, 1203 tokens/s"
    assert text.after({"reward": 1.0}) == "reward 1.000, eval 0.500"
    several = {"eval/Sort": 0.5, "eval/Add": 0.0, "eval/Add/low": 0.0, "eval/mean": 0.25}
    assert text.after({"reward": 1.0} | several) == "reward 1.000, eval 0.250"


@pytest.mark.parametrize(
    "command", [("check-dataset", "AMC23", "--args"), ("audit-verifier", "exact", "--dataset", "AMC23", "--data-args")]
)
def test_a_data_set_of_hostile_rows(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "amc23").mkdir()
    rows = [{"id": HOSTILE, "problem": HOSTILE, "answer": f"{n}{HOSTILE}", "url": "u"} for n in range(2)]
    (tmp_path / "amc23" / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run(capsys, *command, f"data_dir={tmp_path}")


def test_progress_and_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(HOSTILE, 1) as advance:
        advance(1, HOSTILE)
    run(capsys, "--help")  # from its first command on, warnings are printable
    assert not OBEYED & set(warnings.formatwarning(HOSTILE, UserWarning, "file.py", 1))  # type: ignore[arg-type]  # text, as warn takes
    captured = capsys.readouterr()
    assert "owned" in captured.err or not captured.err


def test_styles_and_widths_stay(capsys: pytest.CaptureFixture[str]) -> None:
    console = TerminalConsole(force_terminal=True, color_system="standard", width=40)
    console.print("plain", style="red", end="")
    assert capsys.readouterr().out == "\x1b[31mplain\x1b[0m"
    console.print("[red]not markup[/red]", end="", highlight=False)
    assert capsys.readouterr().out == "[red]not markup[/red]"


def test_one_of_a_kind_is_singular() -> None:
    assert [counted(number, "problem") for number in (0, 1, 2)] == ["0 problems", "1 problem", "2 problems"]
