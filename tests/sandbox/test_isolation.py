"""How much isolation is asked for, and what a system gives: systems are played by denying system calls."""

from __future__ import annotations

import json

import pytest

from tests.sandbox import load
from tests.sandbox.denying import DENY, run_in_a_new_process
from verifiers.sandbox.isolation.probe import isolation_problem

MODES = ("strict", "auto", "available", "none")
ASK = """
import json, verifiers
said = {}
for isolation in MODES:
    verifier = UnitTestVerifier(isolation=isolation, workers=1)
    try:
        verdict = verifier("import os\\ndef f(x): return 9", problem)
        said[isolation] = verdict.detail["isolation"] if verdict.score == 1 else str(verdict)
    except verifiers.SandboxUnavailableError as error: said[isolation] = str(error)
    verifier.close()
print(json.dumps(said))
"""
CONTAINER = (
    "deny('unshare', 'mount', 'umount2', 'pivot_root', 'mount_setattr', 'io_uring_setup', error=1)\ndeny('clone3')\n"
)
"""What a container's default filter does: namespaces and mounting are not permitted, and threads fall back to `clone`."""
NO_LANDLOCK = "deny('landlock_create_ruleset', 'landlock_add_rule', 'landlock_restrict_self', error={error})\n"
OLD = "deny('mount_setattr', 'close_range', 'faccessat2', 'io_uring_setup', 'clone3')\n" + NO_LANDLOCK.format(error=38)
"""What a kernel before 5.9 does not know."""
FULL, LANDLOCKED = "namespaces+landlock+seccomp", "landlock+seccomp"
SYSTEMS = {
    "everything": ("", (FULL, FULL, FULL, "none")),
    "a container": (CONTAINER, ("provides no namespaces", LANDLOCKED, LANDLOCKED, "none")),
    "a container of old": (
        CONTAINER + NO_LANDLOCK.format(error=1),
        ("provides no names", "neither landlock", "seccomp", "none"),
    ),
    "a kernel without landlock": (NO_LANDLOCK.format(error=38), *[("namespaces+seccomp",) * 3 + ("none",)]),
    "an old kernel": (OLD, ("provides no namespaces", "neither landlock nor namespaces", "seccomp", "none")),
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_a_system_gives(system: str) -> None:
    denied, expected = SYSTEMS[system]
    (line,) = run_in_a_new_process(f"{DENY}{denied}MODES = {MODES}{ASK}")
    said = json.loads(line)
    assert all(part in said[isolation] for isolation, part in zip(MODES, expected, strict=True)), said
    for isolation, text in said.items():
        assert " " in text or text == expected[MODES.index(isolation)]
        assert " " not in text or "isolation='available'" in text


NOTHING_BUT_A_FILTER = DENY + CONTAINER + NO_LANDLOCK.format(error=1)
TRY = """
import json
verifier = UnitTestVerifier(isolation="available", workers=1, packages=PACKAGES)
found = {}
for name, program in PROGRAMS.items():
    verdict = verifier(program, problem)
    found[name] = [verdict.score, verdict.detail["failure"], verdict.detail["isolation"]]
verifier.close()
print(json.dumps(found))
"""
DATA = load("sandbox/isolation")


@pytest.mark.parametrize(
    ("programs", "passes"), [(DATA["allowed"], True), (DATA["forbidden"], False)], ids=["allowed", "forbidden"]
)
def test_with_a_filter_alone_programs_open_no_file(programs: dict[str, str], passes: bool) -> None:
    source = f"{NOTHING_BUT_A_FILTER}PROGRAMS, PACKAGES = {programs!r}, {('numpy',) if passes else ()}\n{TRY}"
    (line,) = run_in_a_new_process(source)
    expected = [1, None, "seccomp"] if passes else [0, "forbidden", "seccomp"]
    assert json.loads(line) == dict.fromkeys(programs, expected)


def test_strict_is_not_content_with_landlock() -> None:
    hello = {"layers": ["landlock", "seccomp"], "missing": {"namespaces": "no"}, "escapes": []}
    assert "isolation='strict' requires" in str(isolation_problem(hello, "strict"))
    assert isolation_problem(hello, "auto") is None
    assert "fork" in str(isolation_problem({**hello, "escapes": ["fork"]}, "available"))
    assert "no seccomp filter" in str(isolation_problem({**hello, "layers": ["landlock"]}, "available"))
