"""What the three packages are to each other and to the outside."""

from __future__ import annotations

import ast
import functools
import graphlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.version import Version

import agents
from agents.commands import main

ROOT = Path(__file__).parent.parent
MAY_IMPORT = {
    "verifiers": {"verifiers"},
    "rlvr_envs": {"verifiers", "rlvr_envs"},
    "agents": {"verifiers", "rlvr_envs", "agents"},
}
HEAVY = ("torch", "sympy", "transformers", "datasets", "vllm", "pyarrow", "pandas")


@functools.cache
def import_statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def imports_of(path: Path) -> list[tuple[str, int]]:
    imports: list[tuple[str, int]] = []
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            imports += [(alias.name, node.lineno) for alias in node.names]
        elif node.module:
            imports.append((node.module, node.lineno))
    return imports


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_go_one_way_and_across_packages_through_the_public_face(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        for name, line in imports_of(path):
            top = name.partition(".")[0]
            if top in MAY_IMPORT:
                assert top in MAY_IMPORT[package], f"{path}:{line} imports {name}"
                public = name in MAY_IMPORT or name in (
                    "verifiers.sandbox",
                    "verifiers.unit_tests",
                    "verifiers.math",
                    "verifiers.countdown",
                    "verifiers.audit",
                    "verifiers.completion",
                    "verifiers.ifeval",
                    "verifiers.reasoning_gym",
                    "verifiers.sql",
                    "verifiers.devices",
                    "verifiers.http",
                    "verifiers.hub",
                    "verifiers.reward_model",
                    "verifiers.statistics",
                    "verifiers.confidence_sequences",
                    "rlvr_envs.dialogue",
                    "rlvr_envs.games",
                    "rlvr_envs.gguf_files",
                    "rlvr_envs.testing",
                    "rlvr_envs.text_games",
                )
                assert top == package or public, f"{path}:{line} reaches into {name}"


ROOMS = (
    *("settings", "seeding", "types", "deferred", "interrupts", "loopback"),
    *("batch", "advantages", "truncation", "losses", "kl", "importance", "turns"),
    *("console", "runs", "rollouts", "distributed", "tables", "policies", "learn"),
    *("preferences", "algorithms", "registry", "search", "self_play", "experiments", "testing"),
    *("adapters", "serving", "watching", "suites", "commands"),
)
"""The rooms of `agents` from the ground up: each imports only from itself and from those before it."""
MAY_GO = (
    *("tables", "preferences", "search", "self_play", "experiments", "testing"),
    *("adapters", "serving", "watching", "suites"),
)
"""Rooms that only the registry and the commands, or none, import: each can be deleted with them."""


def names_imported(path: Path) -> list[tuple[str, int]]:
    """What `from module import name` may import as a module."""
    return [
        (f"{node.module}.{alias.name}", node.lineno)
        for node in import_statements(path)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]


def test_the_rooms_of_agents_stand_one_on_another() -> None:
    paths = [path for path in (ROOT / "agents").glob("*") if path.suffix == ".py" or (path / "__init__.py").exists()]
    assert {path.stem for path in paths} - {"__init__", "__main__"} == set(ROOMS)
    for path in (ROOT / "agents").rglob("*.py"):
        own = path.relative_to(ROOT / "agents").parts[0].removesuffix(".py")
        if own.startswith("__"):
            continue
        for name, line in (*imports_of(path), *names_imported(path)):
            package, _, rest = name.partition(".")
            room = rest.partition(".")[0]
            if package == "agents" and room in ROOMS:
                assert ROOMS.index(room) <= ROOMS.index(own), f"{path}:{line} imports {name}, which stands above"
                kept = room not in MAY_GO or own in (room, "registry", "commands", *MAY_GO)
                assert kept or (room, own) == ("preferences", "algorithms"), f"{path}:{line} needs {name}"


TASKS = "rlvr_envs.tasks"
COMMANDS = "agents.commands"
OPTIONAL = {
    "verifiers.judge": (),
    "verifiers.process_reward_model": (),
    "verifiers.proofs": (),
    "verifiers.ray_tasks": (),
    "verifiers.reasoning_gym": (TASKS,),
    "rlvr_envs.games": (TASKS, COMMANDS, "rlvr_envs.text_games"),
    "rlvr_envs.text_games": (TASKS, COMMANDS),
    "rlvr_envs.tools.mcp": ("rlvr_envs.tools",),
    "rlvr_envs.tools.search": ("rlvr_envs.tools",),
    "agents.adapters": ("agents.serving", COMMANDS),
    "agents.serving": (COMMANDS,),
}
"""Rooms that can be deleted with their tests and their lines in tables, and the rooms that may import them."""


@pytest.mark.parametrize("room", OPTIONAL)
def test_the_core_imports_no_optional_room(room: str) -> None:
    inside = (room, *OPTIONAL[room])
    for package in MAY_IMPORT:
        for path in (ROOT / package).rglob("*.py"):
            own = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if not any(f"{own}.".startswith(f"{one}.") for one in inside):
                for name, line in (*imports_of(path), *names_imported(path)):
                    assert not f"{name}.".startswith(f"{room}."), f"{path}:{line} needs {name}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Those that only type checkers read count; a face, which loads names when they are used, does not."""
    paths = [path for package in MAY_IMPORT for path in (ROOT / package).rglob("*.py") if path.name != "__init__.py"]
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in paths}

    def imported(path: Path) -> set[str]:
        nodes = [node for node in import_statements(path) if isinstance(node, ast.ImportFrom)]
        return {
            name for node in nodes for name in (node.module, *(f"{node.module}.{one.name}" for one in node.names))
        } & {*modules}

    graphlib.TopologicalSorter({name: imported(path) - {name} for name, path in modules.items()}).prepare()


@pytest.mark.parametrize("room", ["data", "prompts", "procedural", "worlds", "envs"])
def test_what_environments_share_knows_none_of_them(room: str) -> None:
    for path in (ROOT / "rlvr_envs" / room).rglob("*.py"):
        for name, line in imports_of(path):
            above = name == "rlvr_envs" or name.startswith(
                ("rlvr_envs.tasks", "rlvr_envs.registration", "rlvr_envs.finding")
            )
            assert not above, f"{path}:{line} imports {name}"


def loaded(code: str) -> set[str]:
    """The modules that are loaded once code has run in a new process."""
    code = f"import json, sys\n{code}\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    ("face", "own"),
    {
        "rlvr_envs": {"rlvr_envs", "rlvr_envs._names", "rlvr_envs.registration", "rlvr_envs.tasks"},
        "agents": {"agents", "agents.registry"},
        "agents.search": {"agents", "agents.registry", "agents.search"},
        "verifiers.proofs": {"verifiers.proofs"},
        "verifiers.completion": {"verifiers.completion"},
    }.items(),
)
def test_a_face_loads_what_it_names_when_it_is_used(face: str, own: set[str]) -> None:
    package, _, room = face.partition(".")
    within = f"{package}.{room}" if package == "verifiers" else package
    assert {name for name in loaded(f"import {face}") if f"{name}.".startswith(f"{within}.")} == own


LIGHT = ("agents.settings.agent", "agents.tables.q_learning", "agents.distributed.ranks", "agents.losses")


@pytest.mark.parametrize("module", [*MAY_IMPORT, *LIGHT])
def test_packages_tables_ranks_and_settings_load_nothing_heavy(module: str) -> None:
    heavy = HEAVY if module in MAY_IMPORT else ("torch", "transformers")
    assert loaded(f"import {module}").isdisjoint(heavy)


def test_help_loads_no_torch() -> None:
    code = (
        "import contextlib, io\nfrom agents.commands.main import main\n"
        f"for name in [*{[*main.COMMANDS]!r}, 'train q-learning', 'train grpo', 'train dqn']:\n"
        "    sys.argv = ['rlvr', *name.split(), '--help']\n"
        "    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "        main()\n"
        "    assert 'torch' not in sys.modules, name\n"
    )
    assert "agents.commands.compare" in loaded(code)


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_the_public_names_exist_and_are_sorted(package: str) -> None:
    if package == "agents":
        pytest.importorskip("torch")
    module = __import__(package)
    assert module.__distribution__ == "rlvr-envs"
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_agents_are_public_by_their_classes_and_configs() -> None:
    tables = (agents.AGENTS, agents.VALUE_AGENTS, agents.TABULAR_AGENTS)
    entries = [entry for table in tables for entry in table.values()]
    assert {name for entry in entries for name in (entry.class_name, entry.config_name)} <= {*agents.__all__}


@pytest.mark.parametrize("name", ["verifiers", "agents"])
def test_a_foreign_package_of_the_same_name_is_named_with_the_remedy(name: str, tmp_path: Path) -> None:
    foreign = tmp_path / name
    foreign.mkdir()
    (foreign / "__init__.py").write_text("raise SystemExit('foreign code ran')\n", encoding="utf-8")
    code = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; import rlvr_envs"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"ImportError: the package '{name}' found at {foreign / '__init__.py'}" in done.stderr
    assert "virtual environment of its own" in done.stderr
    assert "foreign code ran" not in done.stderr


def test_what_is_missing_is_named_by_the_error_that_needs_it() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import verifiers, rlvr_envs, gymnasium, agents\n"
        "env = gymnasium.make('rlvr/Addition-v0'); env.reset(seed=0); env.step(3)\n"
        "assert verifiers.verify('numeric', '4', '4').score == 1\n"
        "agents.GRPO; agents.load_policy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingDependencyError: agents.load_policy needs the package 'torch'" in done.stderr
    assert "pip install 'rlvr-envs[train]'" in done.stderr


def test_the_wheel_holds_the_three_packages_and_runs_elsewhere(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    target = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run(install, check=True, capture_output=True, timeout=300)
    packages = {path.name for path in target.iterdir() if path.is_dir() and path.name not in ("bin", "__pycache__")}
    assert {name for name in packages if not name.endswith(".dist-info")} == set(MAY_IMPORT)
    assert all((target / package / "py.typed").is_file() for package in MAY_IMPORT)
    assert (target / "agents" / "suites" / "core.toml").is_file()
    tables = {path.name for path in (ROOT / "rlvr_envs" / "tasks").glob("*.toml")}
    assert tables == {path.name for path in (target / "rlvr_envs" / "tasks").glob("*.toml")}
    code = (
        f"import sys; sys.path.insert(0, {str(target)!r})\n"
        "import gymnasium, rlvr_envs, verifiers\n"
        f"assert verifiers.__file__.startswith({str(target)!r})\n"
        "env = gymnasium.make('rlvr/Text-v0'); env.reset(seed=0); env.step(256)\n"
        "print(verifiers.verify('math', '\\\\boxed{7}', '7').outcome)\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.strip() == "correct", done.stderr


def requirements(*groups: list[str]) -> dict[str, str]:
    """The lower bound, or the only version, of each direct dependency that is another distribution."""
    texts = [text for group in groups for text in group if not text.startswith("rlvr-envs")]
    return dict(re.split(">=|==", text) for text in texts)


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / "constraints" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return {left: right for left, _, right in (line.partition("==") for line in lines if not line.startswith("#"))}


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def test_the_lowest_versions_that_are_tested_are_the_lower_bounds() -> None:
    bounds = requirements(PROJECT["dependencies"], *(EXTRAS[name] for name in ("train", "lora", "hub")))
    assert Version(bounds.pop("torch")) == Version(pins("base")["torch"])
    assert {name: Version(bound) for name, bound in bounds.items()} == {
        name: Version(version) for name, version in pins("lowest").items()
    }


def test_the_pinned_versions_are_within_the_bounds() -> None:
    pinned = pins("base") | {name: pins("loggers")[name] for name in ("wandb", "trackio")}
    pinned |= {name: pins(name)[name] for name in ("ray", "reasoning-gym")}
    pinned |= {name: pins("tools")[name] for name in ("bm25s", "mcp")}
    pinned |= {name: pins("text-games")[name] for name in ("textarena", "gem-llm")}
    for name, bound in requirements(PROJECT["dependencies"], *EXTRAS.values()).items():
        if name != "vllm":
            assert Version(pinned[name]) >= Version(bound), name


def test_every_extra_is_named_where_it_is_needed() -> None:
    """By an error that names it as the remedy, or by a page of the documentation."""
    texts = [path.read_text(encoding="utf-8") for package in MAY_IMPORT for path in (ROOT / package).rglob("*.py")]
    asked = {name for text in texts for name in re.findall(r'missing_dependency\([^()]+?, "([\w-]+)"', text)}
    documented = "".join(
        path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    )
    for name in EXTRAS.keys() - {"all", "dev"}:
        assert name in asked or f"rlvr-envs[{name}]" in documented, name
    assert asked <= EXTRAS.keys()
