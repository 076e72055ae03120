"""Programs in other languages than Python that read standard input: compiled once, judged as programs of Python are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import gymnasium
import pytest

import rlvr_envs  # noqa: F401 - registers its environments
from tests.benchmark_rows import EVERY
from verifiers import MissingDependencyError, Outcome, Problem, SandboxUnavailableError, UnknownNameError
from verifiers.sandbox import Command, CommandRunner, Limits
from verifiers.unit_tests import StdioCase, StdioTests, UnitTestVerifier, languages
from verifiers.unit_tests.languages import check_languages

CASES = tuple(StdioCase(f"{a} {b}\n", f"{a + b}\n") for a, b in ((3, 4), (-5, 5), (10**12, 1)))
SUM = {
    "c": '#include <stdio.h>\nint main() { long a, b; scanf("%ld %ld", &a, &b); printf("%ld\\n", a + b); }',
    "cpp": "#include <iostream>\nint main() { long a, b; std::cin >> a >> b; std::cout << a + b << std::endl; }",
    "java": """import java.util.*;
public class Adder {
    static class Pair { long a, b; }
    public static void main(String[] args) {
        Scanner in = new Scanner(System.in);
        Pair pair = new Pair(); pair.a = in.nextLong(); pair.b = in.nextLong();
        System.out.println(pair.a + pair.b);
    }
}""",
    "javascript": "const [a, b] = require('fs').readFileSync('/dev/stdin', 'utf8').split(' ').map(Number); console.log(a + b);",
    "go": 'package main\nimport "fmt"\nfunc main() { var a, b int; fmt.Scan(&a, &b); fmt.Println(a + b) }',
    "rust": """use std::io;
fn main() {
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    let sum: i64 = line.split_whitespace().map(|word| word.parse::<i64>().unwrap()).sum();
    println!("{}", sum);
}""",
    "bash": 'read -r a b\necho "$(echo $((a + b)) | cat)"',
}
ENDLESS = {
    "c": "int main() { for (;;); }",
    "java": "class Main { public static void main(String[] args) { while (true); } }",
    "javascript": "for (;;);",
    "bash": "while true; do :; done",
}


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(workers=1, timeout_s=10)
    yield verifier
    verifier.close()


def installed(*names: str) -> None:
    """Skip a test where one of the languages is not installed."""
    try:
        check_languages(names)
    except MissingDependencyError as error:
        pytest.skip(str(error))


def problem(*names: str, cases: tuple[StdioCase, ...] = CASES, timeout_s: float | None = None) -> Problem:
    return Problem("p", "", StdioTests(cases, languages=names, timeout_s=timeout_s))


def fenced(source: str, label: str = "") -> str:
    return f"```{label}\n{source}\n```"


@pytest.mark.parametrize("name", SUM)
def test_a_right_program_passes_and_a_wrong_one_fails(verifier: UnitTestVerifier, name: str) -> None:
    installed(name)
    right = verifier(f"Here:\n{fenced(SUM[name], languages.languages()[name].tags[-1])}", problem(name))
    assert (right.outcome, right.detail["passed"]) == (Outcome.CORRECT, 3), right.detail
    wrong = verifier(
        fenced(SUM[name].replace("+ b", "- b").replace("+ pair.b", "- pair.b").replace("sum()", "product()")),
        problem(name),
    )
    assert (wrong.outcome, wrong.detail["failure"]) == (Outcome.INCORRECT, "wrong_answer"), wrong.detail


@pytest.mark.parametrize(
    ("name", "source", "failure"),
    [
        *((name, "int main( {", "syntax_error") for name in SUM if name not in ("javascript", "bash")),
        ("rust", '#![crate_type = "lib"]\npub fn f() {}', "exit"),
        ("go", "package other\nfunc F() {}", "exit"),
    ],
)
def test_what_does_not_compile_or_compiles_to_no_program_is_wrong(
    verifier: UnitTestVerifier, name: str, source: str, failure: str
) -> None:
    installed(name)
    verdict = verifier(source, problem(name))
    assert (verdict.outcome, verdict.detail["failure"], verdict.detail["total"]) == (Outcome.INCORRECT, failure, 3)
    assert failure == "exit" or "main" in f"{verdict.detail}"


@pytest.mark.parametrize("name", ENDLESS)
def test_time_is_limited_by_the_languages_factor(verifier: UnitTestVerifier, name: str) -> None:
    installed(name)
    verdict = verifier(ENDLESS[name], problem(name, cases=CASES[:1], timeout_s=1))
    assert verdict.outcome is Outcome.TIMEOUT, verdict.detail
    factor = languages.languages()[name].time_factor
    assert factor <= verdict.cost["cpu_seconds"] < factor + 1


def test_the_label_of_the_block_says_the_language(verifier: UnitTestVerifier) -> None:
    installed("cpp", "bash")
    either = problem("python", "cpp", "bash")
    python = "print(sum(map(int, input().split())))"
    right = [fenced(SUM["cpp"], "C++"), fenced(SUM["bash"], "sh"), fenced(python, "py"), fenced(python), python]
    # The last labelled block counts, and other labels are none.
    right += [fenced(python, "python") + "\n" + fenced(SUM["cpp"], "cpp") + "\n" + fenced("7", "text")]
    right += [fenced(SUM["cpp"], label) for label in ("c++17", "CPP20", "cpp-23", "c++2a (GCC)")]
    # Beside a program, commands say how to run it.
    commands = fenced("g++ main.cpp && ./a.out", "bash")
    right += [
        fenced(SUM["cpp"], "cpp") + "\n" + commands,
        commands + "\n" + fenced(python, "python3") + "\n" + commands,
    ]
    wrong = [commands, fenced(SUM["cpp"], "python"), fenced(python, "cpp"), fenced(SUM["cpp"])]
    outcomes = [verifier(completion, either).outcome for completion in (*right, *wrong)]
    assert outcomes == [Outcome.CORRECT] * len(right) + [Outcome.INCORRECT] * len(wrong)


MAIN = """public static void main(String[] args) {
    var in = new java.util.Scanner(System.in); System.out.println(in.nextLong() + in.nextLong());
}"""
JAVA = {
    "no public class": "class Solution { MAIN }",
    "a comment": "/** A public class that adds { */ // public class Other {\nclass Solution { MAIN }",
    "a text": 'class Solution { String text = "} public class Other {"; MAIN }',
    "a block of text": 'class Solution { String text = """\n } public class "Other" { """; char sign = \'{\'; MAIN }',
    "another public class": "public class Other { } class Solution { MAIN }",
    "another main": "class Other { public static void main(String[] args) { } } public class Solution { MAIN }",
    "a nested main": "class Solution { static class Other { public static void main(String[] args) { } } MAIN }",
    "annotations": '@SuppressWarnings({"all"}) public final class Solution { @SuppressWarnings({"all"}) MAIN }',
    "an interface": "public interface Solution { MAIN }",
    "a name with a dollar sign": "package a.$b; public class Solution$1 { MAIN }",
}


@pytest.mark.parametrize("way", JAVA)
def test_the_class_of_java_that_has_a_main_is_run(verifier: UnitTestVerifier, way: str) -> None:
    installed("java")
    verdict = verifier(JAVA[way].replace("MAIN", MAIN), problem("java", cases=CASES[:1]))
    assert verdict.outcome is Outcome.CORRECT, verdict.detail


@pytest.mark.parametrize("source", ["public class {} {{ }}", "package {}; class Main {{ }}"])
@pytest.mark.parametrize("name", ["A" * 300, "é" * 200, ".".join("a" * 2000), ".".join(["a" * 200] * 19)])
def test_no_name_of_java_is_an_error(verifier: UnitTestVerifier, source: str, name: str) -> None:
    installed("java")
    assert verifier(source.format(name), problem("java", cases=CASES[:1])).outcome is Outcome.INCORRECT


def test_a_language_that_is_not_there_is_named(verifier: UnitTestVerifier, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownNameError, match="cpp"):
        verifier("", problem("c++"))
    monkeypatch.setenv("PATH", "")
    languages._home.cache_clear()
    with pytest.raises(MissingDependencyError, match=r"programs in C\+\+ need g\+\+.*apt-get install g\+\+"):
        verifier("", problem("cpp"))
    with pytest.raises(MissingDependencyError, match="javac"):
        UnitTestVerifier(languages="java")
    languages._home.cache_clear()


@pytest.mark.parametrize("deferred", [False, True])
def test_what_is_not_installed_is_named_before_anything_is_sampled(
    deferred: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    arguments: dict[str, object] = {"dataset": [problem("python"), replace(problem("java"), id="q")]}
    name = "rlvr/Text-v0"
    if deferred:
        name, arguments = "rlvr/CodeContestsJava-v0", {"data_dir": tmp_path}
        path = tmp_path / "codecontests_java" / "test.jsonl"
        path.parent.mkdir()
        path.write_text(json.dumps(EVERY["codecontests_java"].row))
        arguments |= {"split": "test"}
    monkeypatch.setenv("PATH", "")
    languages._home.cache_clear()
    with pytest.raises(MissingDependencyError, match="apt-get install default-jdk-headless"):
        gymnasium.make_vec(name, num_envs=2, verifier="unit_tests", **arguments)
    languages._home.cache_clear()


def test_what_the_system_does_not_isolate_is_named_before_anything_is_sampled(
    verifier: UnitTestVerifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed("cpp")

    def refuse(runner: CommandRunner, command: Command, limits: Limits) -> None:
        raise SandboxUnavailableError(f"no namespaces for {command.processes} processes")

    monkeypatch.setattr(CommandRunner, "__call__", refuse)
    monkeypatch.setattr("verifiers.unit_tests.languages._isolated", set())
    verifier.check_installed([Problem("", "", StdioTests(CASES))])
    with pytest.raises(SandboxUnavailableError, match="no namespaces for 64 processes"):
        verifier.check_installed([Problem("", "", StdioTests(CASES, languages=("python", "cpp")))])


def test_a_program_is_no_larger_than_64_mib(verifier: UnitTestVerifier) -> None:
    installed("c")
    small, large = (f"char data[{mib} << 20] = {{1}};\n{SUM['c']}" for mib in (32, 65))
    assert verifier(fenced(small, "c"), problem("c")).outcome is Outcome.CORRECT
    verdict = verifier(fenced(large, "c"), problem("c"))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "output_limit")


def test_a_script_that_the_folder_can_not_hold_is_wrong(verifier: UnitTestVerifier) -> None:
    verdict = verifier(fenced(f"{SUM['bash']} # {'x' * (17 << 20)}", "bash"), problem("bash"))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "output_limit")


HOSTILE = r"""
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
int main() {
    bool read = (bool)std::ifstream("/etc/passwd"), written = (bool)std::ofstream("/tmp/x") || (bool)std::ofstream("x");
    printf("%d %d %d %d %d\n", read, written, fork() >= 0, socket(AF_INET, SOCK_STREAM, 0) >= 0, system("true") == 0);
}
"""


def test_a_compiled_program_is_in_the_jail(verifier: UnitTestVerifier) -> None:
    installed("cpp")
    verdict = verifier(HOSTILE, problem("cpp", cases=(StdioCase("", "0 0 0 0 0"),)))
    assert verdict.outcome is Outcome.CORRECT, verdict.detail


@pytest.mark.parametrize("include", ["/etc/passwd", "/proc/self/environ", "/root/.bashrc", "../../etc/passwd"])
def test_a_compiler_reads_no_file_of_the_machine(verifier: UnitTestVerifier, include: str) -> None:
    installed("c")
    verdict = verifier(f'#include "{include}"\nint main() {{}}', problem("c"))
    assert verdict.detail["failure"] == "syntax_error"
    assert "No such file" in str(verdict.detail["stderr"]) or "ermission denied" in str(verdict.detail["stderr"])
