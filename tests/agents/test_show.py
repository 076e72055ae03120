"""What the terminal shows of a recorded completion, and that no data steers it."""

from __future__ import annotations

import io
import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from agents.commands.main import main
from agents.commands.show import Show
from agents.console.counting import counted
from agents.console.printable import printable
from agents.console.progress import progress
from agents.console.step_text import StepText
from agents.console.terminal import TerminalConsole
from tests.commands import Command
from tests.recorded import ODD, row, run_of
from verifiers import DataError, InvalidArgumentError, UnknownNameError

TOKENS = {"token_texts": ["2", " is", " 4\x1b[2J"], "completion": "2 is 4"}


def shown(folder: Path, problem: str = "p0", *, terminal: bool = False, **options: Any) -> str:
    output = io.StringIO()
    console = TerminalConsole(file=output, force_terminal=terminal, color_system="truecolor" if terminal else None)
    assert Show(folder, problem, **options).run(console) == 0
    return output.getvalue()


def folder_with(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    return run_of(tmp_path / "run", rows).folder


def test_a_row_is_shown_with_its_verdict(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, row(truncated=True, detail={"reason": "no number", "unit": "m"}))
    assert shown(folder).splitlines() == [
        "── p0, sample 0 ──",
        f"problem 0, 3 tokens, truncated, seed {2**64 - 1}",
        "── prompt ──",
        "2+0=",
        "── completion ──",
        "four",
        "── verdict ──",
        "incorrect, score 0",
        "answer:    four",
        "reference: 4",
        "reason:    no number",
        'detail:    {"unit": "m"}',
    ]


def test_messages_columns_of_training_and_errors_are_shown(tmp_path: Path) -> None:
    prompt = [{"role": "system", "content": "Answer briefly."}, {"role": "user", "content": "2+2="}]
    columns: dict[str, Any] = {"step": 7, "advantage": -1.5, "reward": 0.0, "error": "the pool died", "prompt": prompt}
    columns |= {"outcome": "verifier_error", "score": None, "answer": None, "tokens": 0, "detail": None, "seed": 0}
    said = shown(folder_with(tmp_path, row(**columns)))
    assert "system: Answer briefly.\nuser: 2+2=\n" in said
    assert "── p0, sample 0 of step 7 ──\nproblem 0, advantage -1.5, reward 0.0\n" in said
    assert "verifier_error, no score\nanswer:    none\nreference: 4\nerror:     the pool died\n" in said


def test_a_row_without_prompt_reference_and_verdict_is_shown(tmp_path: Path) -> None:
    unjudged = row(prompt=None, reference=None, detail=None, outcome=None, answer=None)
    failed = {**unjudged, "score": None, "error": "status 400"}
    folder = folder_with(tmp_path, unjudged, {**failed, "problem": 1, "problem_id": "p1"})
    assert "no verifier, score 0\nanswer:    none\n" in shown(folder)
    assert "the request failed, no score\nanswer:    none\n" in shown(folder, "p1")


def test_a_problem_is_named_by_id_or_index_and_a_sample_by_its_number(tmp_path: Path, rlvr: Command) -> None:
    rows = [row(problem, sample, completion=f"c{problem}{sample}") for problem in (0, 1) for sample in (1, 2)]
    folder = folder_with(tmp_path, *rows, row(2, problem_id="0", completion="the id comes first"))
    assert "c01" in shown(folder)
    code, output, _ = rlvr("show", folder, "1", "--sample", "2")
    assert (code, "c12" in output) == (0, True)
    assert "the id comes first" in shown(folder, "0")
    with pytest.raises(InvalidArgumentError, match="--sample 0 is not recorded for 'p1', which has sample 1; sample 2"):
        shown(folder, "p1", sample=0)
    with pytest.raises(InvalidArgumentError, match=r"99 is not recorded: .* 3 problems, with the indices 0, 1, 2"):
        shown(folder, "99")
    with pytest.raises(UnknownNameError, match=r"unknown problem 'p11'.*'p1'"):
        shown(folder, "p11")


@pytest.mark.parametrize("text", ODD[1:4])
def test_nothing_in_a_row_steers_the_terminal(tmp_path: Path, text: str) -> None:
    fields = ("problem_id", "prompt", "completion", "reference", "answer", "error", "outcome")
    columns = dict.fromkeys(fields, text) | {"detail": {"reason": text, text: text}, "token_texts": [text]}
    folder = folder_with(tmp_path, row(**columns, log_probabilities=[-1.0]))
    own = r"\x1b\[(0|1|38;2;0;0;0;48;2;\d+;\d+;\d+)m"  # bold, and the color of a token
    for output in (shown(folder, "0"), re.sub(own, "", shown(folder, "0", terminal=True))):
        assert all(character.isprintable() or character == "\n" for character in output)


def test_tokens_have_the_colors_of_their_values(tmp_path: Path) -> None:
    values = {"token_advantages": [2.0, 0.0, -1.0], "log_probabilities": [0.0, -0.01, "-Infinity"]}
    folder = folder_with(tmp_path, row(**TOKENS, **values))
    by_advantage = shown(folder, terminal=True)
    assert "colored by advantage" in by_advantage
    green, faint_red = "\x1b[38;2;0;0;0;48;2;110;200;110m", "\x1b[38;2;0;0;0;48;2;248;182;182m"
    assert f"{green}2\x1b[0m is{faint_red} 4\\x1b[2J\x1b[0m" in by_advantage
    by_probability = shown(folder, terminal=True, color="log-probability")
    assert "2 is\x1b[38;2;0;0;0;48;2;240;110;110m 4\\x1b[2J\x1b[0m" in by_probability


def test_advantages_that_are_all_equal_are_not_the_default(tmp_path: Path) -> None:
    values = {"token_advantages": [1.0, 1.0, 1.0], "log_probabilities": [-1.0, -2.0, -3.0]}
    folder = folder_with(tmp_path, row(**TOKENS, **values), row(1, **TOKENS, token_advantages=[1.0, 1.0, 1.0]))
    said = shown(folder)
    assert "colored by log-probability" in said
    assert "2 is 4\\x1b[2J\n" in said
    assert "\x1b" not in said  # without a terminal there are no colors
    assert "colored by advantage" in shown(folder, "p1")
    with pytest.raises(InvalidArgumentError, match=r"--color log-probability is not possible: .* log_probabilities"):
        shown(folder, "p1", color="log-probability")


def test_completions_of_training_are_named_by_step(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"env": "Sort", "versions": {}}))
    rows = [row(0, sample, step=step, completion=f"at {step}, {sample}") for step in (1, 2) for sample in (5, 9)]
    (tmp_path / "rollouts.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in rows))
    assert "at 1, 5" in shown(tmp_path)
    assert "at 2, 5" in shown(tmp_path, step=2)
    assert "── p0, sample 9 of step 2 ──" in shown(tmp_path, sample=9, step=2)
    with pytest.raises(InvalidArgumentError, match=r"--sample 1 --step 2 is not .* sample 5 of step 1; .* 9 of step 2"):
        shown(tmp_path, sample=1, step=2)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"log_probabilities": [-1.0]}, "token_texts must be a text for each of 1 log_probabilities"),
        ({"log_probabilities": ["x"]}, "log_probabilities must be a list of numbers: could not convert"),
        ({"log_probabilities": 3}, "log_probabilities must be a list of numbers"),
        ({"log_probabilities": [-1.0], "token_texts": "2"}, "token_texts must be a text for each of 1"),
    ],
)
def test_tokens_that_do_not_fit_their_values_are_damage(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"p0: {message}"):
        shown(folder_with(tmp_path, row(**TOKENS | columns)))


# Hostile data


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
