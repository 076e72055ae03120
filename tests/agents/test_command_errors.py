"""Broken input of every kind, to every option of every command and to the calls of Python that a user starts with.

What is fed is derived: the commands from their table, the options from the commands' own fields, the kinds of value from the
fields' types. Whatever comes in, an error is one line that names the option or the value, and never a report of a bug in
this package. A command ends where its work begins, and an option gets the kinds that its type tells apart.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import math
import os
import shlex
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import gymnasium
import huggingface_hub
import pytest
import tyro

import agents
import rlvr_envs
import verifiers
from agents import (
    AGENTS,
    CriticConfig,
    Learner,
    LearnerConfig,
    SupervisedConfig,
    VLLMConfig,
    agent_classes,
    load_policy,
    save_model,
    tiny_model,
)
from agents.commands import check_dataset
from agents.commands.main import BUG, CANNOT, COMMANDS as ENTRIES, REFUSED, _load, main
from agents.commands.train import AGENT_COMMANDS
from agents.commands.train_options import TrainOptions
from agents.commands.usage_errors import with_option_names
from agents.experiments.gradient_lab import GradientLab
from agents.policies.transformers.policy import CausalLMPolicy
from agents.preferences import reward_model
from agents.runs.evaluation_record import EvaluationRecord, Sample, sample_line
from rlvr_envs import ENVIRONMENTS, ByteTokenizer, CharTokenizer, environment_class
from rlvr_envs.envs.build import SETTINGS
from rlvr_envs.tasks import Sort
from tests.commands import Command
from verifiers import InvalidArgumentError, Outcome, RLVRError, Verdict
from verifiers.audit import audit

HUGE = str(10**18)
NUMBERS = ("abc", "", "-1", "0", HUGE, "nan", "inf")
TEXTS = ("", "abc", "\udcff", "\x1b]0;title\x07", "[/x]", ":", "-1", "no_such_module:Thing", "broken_module:Thing")
PATHS = ("no/such/file", "folder", "empty_file", "garbage_file", "unreadable_file", "folder/\udcff")
EVERY_KIND = tuple(dict.fromkeys((*NUMBERS, *TEXTS, *PATHS)))
REPORTS = ("verify", "check-dataset", "audit-verifier")
"""Commands whose exit code 1 may be a finding."""
SMALL = ("tokenizer=char", "max_new_tokens=4")
LINES: dict[str, dict[str, tuple[str, ...]]] = {
    "envs": {},
    "check-dataset": {"name": ("Sort",), "limit": ("1",)},
    "data": {"name": ("Sort",), "limit": ("1",)},
    "verify": {"completion": ("1",), "reference": ("1",)},
    "serve-verifier": {"port": ("0",)},
    "serve-env": {"env": ("Sort",), "port": ("0",)},
    "audit-verifier": {"name": ("exact",), "dataset": ("Sort",), "limit": ("1",)},
    "train": {"env": ("Sort",), "env_args": SMALL, "steps": ("1",), "run_folder": ("NEW",), "num_envs": ("2",)},
    "sft": {"env": ("Sort",), "env_args": SMALL, "steps": ("1",), "out": ("NEW",)},
    "train-rm": {"pairs": ("pairs.jsonl",), "model": ("model",), "out": ("NEW",)},
    "rlhf": {"env": ("Sort",), "env_args": SMALL, "out": ("NEW",)},
    "eval": {"env": ("Sort",), "model": ("model",), "problems": ("1",), "out": ("NEW",)},
    "play": {"env": ("Sort",), "model": ("model",)},
    "bench": {"suite": ("tiny",), "model": ("model",), "out": ("NEW",)},
    "grade": {"file": ("completions.jsonl",), "env": ("Sort",), "out": ("NEW",)},
    "rescore": {"folder": ("graded",)},
    "compare": {"runs": ("graded", "graded-2")},
    "view": {"folder": ("graded",), "log": ("NEW.eval",)},
    "watch": {"folders": ("graded",), "port": ("0",)},
    "show": {"folder": ("graded",), "problem": ("0",)},
    "plot": {"runs": ("trained",), "out": ("NEW",)},
    "contamination": {
        "train": ("Sort",),
        "evaluation": ("Sort",),
        "train_args": ("size=2",),
        "evaluation_args": ("size=2",),
    },
    "export": {"target": ("verl",), "env": ("Sort",), "folder": ("NEW",), "limit": ("1",)},
    "gradient-lab": {"batches": ("2",)},
    "demo": {"folder": ("NEW",)},
}
"""What each command needs to get as far as its work; NEW stands for a name that nothing has used."""
NEEDED = {"train dr-grpo": {"max_tokens": ("4",)}}
"""What an agent does not do without."""
_numbers = itertools.count()


@dataclass(frozen=True)
class Option:
    name: str
    annotation: Any
    positional: bool

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def bad_values(self) -> tuple[str, ...]:
        """The values that a reader of this type tells apart."""
        plain = {alternative for alternative in _alternatives(self.annotation) if alternative is not type(None)}
        if plain <= {int, float}:
            return NUMBERS
        if Path in plain:
            return PATHS
        if str in plain or any(get_origin(alternative) is tuple for alternative in plain):
            return (*TEXTS, *PATHS) if self.name in ("model", "dataset", "name", "env") else TEXTS
        return () if bool in plain else ("", "[/x]")  # a switch has no value, and anything else is a choice


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) is Annotated:
        return _alternatives(get_args(annotation)[0])
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def options_of(cls: Any, default: Any = dataclasses.MISSING) -> Iterator[Option]:
    hints = get_type_hints(cls, include_extras=True)
    for field in dataclasses.fields(cls):
        nested = [
            alternative for alternative in _alternatives(hints[field.name]) if dataclasses.is_dataclass(alternative)
        ]
        own = getattr(default, field.name, dataclasses.MISSING)
        if own is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
            with contextlib.suppress(InvalidArgumentError):  # of an agent that does not do without a setting
                own = field.default_factory()
        if nested and own is None:
            continue  # no options where there is nothing by default, as of a critic
        if nested:
            yield from options_of(nested[0], own)
        else:
            positional = tyro.conf.Positional in getattr(hints[field.name], "__metadata__", ())
            yield Option(field.name, hints[field.name], positional)


def command_class(command: str) -> Any:
    name, _, agent = command.partition(" ")
    target = _load(ENTRIES[name].home, "rlvr")
    return target.load(agent) if agent else target


def command_line(command: str, cls: Any, option: Option, value: str) -> list[str]:
    given = LINES[command.partition(" ")[0]] | NEEDED.get(command, {}) | {option.name: (value,)}
    words, positional = command.split(), list[str]()
    for option in options_of(cls):
        values = [word.replace("NEW", f"new-{next(_numbers)}") for word in given.get(option.name, ())]
        if option.positional:
            positional += values
        elif len(values) == 1:
            words.append(f"{option.flag}={values[0]}")
        elif values:
            words += [option.flag, *values]
    return [*words, "--", *positional] if positional else words


@pytest.fixture
def workplace(tmp_path: Path, local_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with a model and broken files of every kind, and no way to the hub."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    (tmp_path / "broken_module.py").write_text("raise RuntimeError('this module fails')\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty_file").touch()
    (tmp_path / "garbage_file").write_bytes(bytes(range(256)))
    (tmp_path / "unreadable_file").write_text("{}")
    (tmp_path / "unreadable_file").chmod(0)
    save_model(tmp_path / "model", small_model(257), ByteTokenizer())
    (tmp_path / "completions.jsonl").write_text('{"completion": "1"}\n')
    lines = [json.dumps({"prompt": f"{n}=", "chosen": "1", "rejected": "2"}) for n in range(3)]
    (tmp_path / "pairs.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "trained").mkdir()
    (tmp_path / "trained" / "config.json").write_text("{}")
    (tmp_path / "trained" / "metrics.jsonl").write_text('{"step": 1, "reward": 0.5}\n')
    for folder in ("graded", "graded-2"):
        with EvaluationRecord(tmp_path / folder, settings={"env": "rlvr/Sort-v0", "split": "test"}) as record:
            record.begin({})
            problem = Sort("test")[0]
            verdict = Verdict.of(Outcome.INCORRECT, "1")
            sample = Sample.judged(verdict, problem=0, problem_id=problem.id, sample=0, score=0.0)
            record.add(sample_line(sample, "1", verdict, problem))
    return tmp_path


def small_model(vocab_size: int) -> Any:
    return tiny_model(vocab_size, layers=1, hidden_size=8, heads=1, intermediate_size=8)


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """End a command where its work begins: what comes before has accepted its options."""

    def stop(*_: Any, **__: Any) -> None:
        raise SystemExit(0)

    for owner, name in (
        (CausalLMPolicy, "act"),
        (Learner, "step"),
        (reward_model, "backward"),
        (GradientLab, "draw"),
        (audit.Runner, "__enter__"),
        (check_dataset, "judge_golds"),
    ):
        monkeypatch.setattr(owner, name, stop)
    monkeypatch.setattr("uvicorn.Server.run", stop)
    monkeypatch.setattr("socketserver.BaseServer.serve_forever", stop)


def outcome(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str], str]:
    """The exit code, the lines of errors, and all of standard error."""
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    said = capsys.readouterr().err
    code: Any = stopped.value.code
    return code, [line for line in said.splitlines() if line.startswith("error: ")], said


def objection(command: str, option: Option, value: str, code: int, lines: list[str], said: str) -> str | None:
    """What is wrong with an answer to a broken value; None if nothing is."""
    if "Traceback" in said:
        return "a traceback"
    if code not in (0, CANNOT, REFUSED):
        return f"exit code {code}"
    if code == 0 or (not lines and command.partition(" ")[0] in REPORTS):
        return None
    if len(lines) != 1:
        return f"{len(lines)} lines of errors"
    if not lines[0].isprintable():
        return "what a terminal obeys"
    names = {option.flag, option.name, option.name.replace("_", " ")}
    names |= {value, repr(value), ascii(value)[1:-1], repr(os.fsencode(value)), f"rlvr/{value}-v0"}
    named = any(name and name.casefold() in lines[0].casefold() for name in names)
    return None if named else "neither the option nor the value"


COMMANDS = [name for name, entry in ENTRIES.items() if entry.subcommands is None] + ["data stats", "train ppo"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_a_command_refuses_what_is_broken_in_one_line(
    command: str, workplace: Path, no_work: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of training with one agent, whose settings get what is refused when it is read; the rest is driven below, from Python."""
    cls, of_training, wrong = command_class(command), {field.name for field in dataclasses.fields(TrainOptions)}, []
    for option in options_of(cls):
        all_of_them = command != "train ppo" or option.name in of_training
        for value in option.bad_values if all_of_them else option.bad_values[:2]:
            arguments = command_line(command, cls, option, value)
            code, lines, said = outcome(arguments, capsys)
            result = objection(command, option, value, code, lines, said)
            if result is not None:
                wrong.append(f"{result}: {arguments!r} -> {code} {lines or said[-300:]!r}")
    assert not wrong, "\n".join(wrong)


ODD = (
    3,
    -1,
    0,
    10**18,
    math.nan,
    "abc",
    "",
    "\ud800",
    [],
    [3],
    {},
    {3: 3},
    ("math", 3),
    b"x",
    Path("x"),
    print,
    object(),
)


def unforeseen(build: Callable[[], object], said: str) -> str | None:
    """The error of a call that is none of ours, None if there is no such error."""
    try:
        build()
    except RLVRError:
        return None
    except Exception as error:  # noqa: BLE001 - whatever it is, the test reports it
        return f"{said}: {type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize("name", AGENTS)
def test_every_setting_of_an_agent_refuses_what_is_broken(name: str) -> None:
    needed = {"dr-grpo": {"max_tokens": 4}, "pass-at-k": {"k": 2}}.get(name, {})
    configs: tuple[tuple[Any, dict[str, Any]], ...] = ((agent_classes(name)[1], needed),)
    others: tuple[Any, ...] = (LearnerConfig, CriticConfig, SupervisedConfig, VLLMConfig) if name == "grpo" else ()
    wrong = [
        unforeseen(partial(cls, **{**given, field.name: value}), f"{cls.__name__}({field.name}={value!r})")
        for cls, given in (*configs, *((cls, {}) for cls in others))
        for field in dataclasses.fields(cls)
        for value in ODD
    ]
    assert not any(wrong), "\n".join(filter(None, wrong))


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_every_argument_of_an_environment_refuses_what_is_broken(env_id: str, workplace: Path) -> None:
    monster = {"size", "verification_workers"}  # as many problems or threads as anybody likes, until they are asked for
    wrong = [
        unforeseen(partial(gymnasium.make, env_id, **{name: value}), f"{env_id} {name}={value!r}")
        for name in (*SETTINGS, *environment_class(env_id).task.data_options)
        for value in ODD
        if not (name in monster and value == 10**18)
    ]
    assert not any(wrong), "\n".join(filter(None, wrong))


@pytest.mark.parametrize("value", [*EVERY_KIND, 3, None, 1.5, [], {}, object(), b"x"])
def test_a_verifier_and_a_model_that_are_none_are_refused(value: Any, workplace: Path) -> None:
    with pytest.raises(RLVRError):
        verifiers.verify(value, "1", "1")
    with pytest.raises(RLVRError):
        load_policy(value)


def test_every_command_and_none_else_is_driven() -> None:
    assert set(LINES) == set(ENTRIES)


MESSAGES = {
    "verify 1 1 --args deadline_s=1 deadline_s=2": "'deadline_s' was given twice",
    "verify 1 1 --args deadline_s=1 --args workers=1": "--args is given twice",
    "verify 1 1 --verifier reward_model --args model=3": "a reward model must be the path of a folder",
    """verify 1 '{"asserts": [' --verifier unit_tests""": "as JSON the reference is invalid: Expecting",
    "verify 1 1 --verifier nowhere.toml": "nowhere",
    "verify 1": "missing: REFERENCE; see rlvr verify --help",
    "verify 1 2 3 4": "unexpected: 3, 4; see rlvr verify --help",
    "train grpo --env Sort --env-args split=test": "'split' has an option of its own: use --split",
    "train grpo --env os:getcwd --model model": "expected a gymnasium.Env",
    "train grpo --env json:loads --model model": "the environment 'json:loads' does not accept",
    """train grpo --env Sort --env-args "verifier=('math',3)" """: "a pair must be (name, arguments)",
    f"train grpo --env Sort --num-envs {HUGE}": "not enough memory",
    "train grpo --env Sort --kl-estimator k2": "--kl-estimator k2 has no effect, since",
    "train grpo --env Sort --gather rows": "--gather rows has no effect, since one process trains",
    "train grpo --env Sort --rank-timeout 5": "--rank-timeout 5.0 has no effect, since one process",
    "train grpo --env Sort --carried-groups 99": "from 0 to --problems-per-step 16, so that",
    "train grpo --env Sort --hidden 8": "Sort-v0 shows tokens, which a language model reads",
    "train grpo --env Sort --mix-by tokens": "--mix-by tokens has no effect, since there is one environment",
    "train grpo --env Addition --adaptive digits=1,2 --env-args digits=3": "chooses the values of 'digits', and --env-args",
    "train grpo --env Addition,Sort --env-args digits=1 --run-folder new": "Sort: the environment got an",
    "tran": "unknown command 'tran'. Did you mean 'train'?",
    "train grpo --env Sort --verifier-card nowhere": "which is no file",
    "train --env Sort": "usage: rlvr train AGENT [options]: expected first one of reinforce, ",
    "train gdpo --env CartPole-v1": "GDPO needs a score of several parts, which only",
    "train ppo --env CartPole-v7 --run-folder new": "CartPole-v1",
    "train ppo --env Pendulum-v1 --run-folder new": "numbered actions, Discrete(n), and this environment has Box",
    "train ppo --env CartPole-v1 --model gpt2": "leave out --model",
    "train ppo --env CartPole-v1 --verifier-card card.md": "leave out --verifier-card",
    "train ppo --env CartPole-v1 --split test": "--split chooses among ... CartPole-v1 shows vectors",
    "train grpo --env CartPole-v1 --engine vllm": "CartPole-v1 shows vectors ... leave out --engine",
    "train ppo --env CartPole-v1 --reward-model b": "CartPole-v1 shows vectors ... leave out --reward-model",
    "train ppo --env CartPole-v1 --env-args colour=1": "Gymnasium can't make 'CartPole-v1' ... colour",
    "train ppo --env CartPole-v1 --hidden 64 0": "--hidden must be at least 1, got 0",
    "train vineppo --env CartPole-v1 --steps 1": "error: vineppo starts ... such as ppo",
    "train dqn --env CartPole-v1 --lag 1": "lag must be 0",
    "train q-learning --env CartPole-v1": "shows vectors of 4 numbers: use an agent that ... dqn or ppo",
    "train sarsa --env Maze --out x": "unknown option --out. Did you mean --run-folder? See rlvr train sarsa",
    "eval --env Sort --model tiny": "name a model that one of them saved",
    "eval --env Sort --model model --env-args tokenizer=char --out new": "is not that of the model",
    "eval --env Sort --model wide_model --out new": "has 4000 tokens but the tokenizer",
    "eval --env Sort --model cut_model --out new": "no causal language model",
    "eval --env Sort --mdel x": "unknown option --mdel. Did you mean --model? See rlvr eval --help",
    "eval --env Sort --run-folder x": "unknown option --run-folder. Did you mean --out? See rlvr eval --help",
    "eval --env Sort --model model --guide oracle": "--guide and --guide-args belong to a search: give --search, too",
    "eval --problems 3": "missing: --env, --model; see rlvr eval --help",
    "eval --env Sort --model": "--model needs a value; see rlvr eval --help",
    "eval --env Sort --model m --price 1": "--price: expected FLOAT FLOAT, got '1'; see rlvr eval --help",
    "sft --env Sort --out o --schedule x": "--schedule: expected one of 'constant', 'linear', 'cosine', got 'x'",
    "bench --suite no/such.toml": "there is no file 'no/such.toml': expected a suite's path, or one of core",
    "bench --suite tiny": "the suite 'tiny' trains no agents: name models with --model",
    "bench --suite tiny --model a a": "a model is named twice",
    "bench --suite tiny --model a --resume": "--resume needs --out",
    "check-dataset GSM8K --args data_dir=3": "data_dir must be the path of a folder, got 3",
    "check-dataset GSM8K --args data_dir=nowhere": "nowhere",
    "check-dataset Text --args columns=3": "columns must map fields to names of columns",
    "audit-verifier math --dataset GSM8K --data-args data_dir=nowhere": "nowhere",
    "contamination GSM8K MATH500 --train-args data_dir=nowhere": "nowhere",
    "grade nofile --env Addition": "there is no file nofile of completions: name one in a format of docs/results.md",
    "grade . --env Sort": ". is a folder, no file of completions: name one in a format of",
    "export trl --env CartPole-v1 --folder x": "is one of Gymnasium's, without a data set",
    "play --env GridWorldState --model model": "for a language model: name GridWorld",
    "compare graded nowhere": "nowhere",
    "compare graded graded-2 --power 5%": "--power: expected numbers, such as 0.05, got '5%'; see rlvr compare",
    "show nowhere 0": "nowhere",
    "view nowhere": "nowhere",
    "plot nowhere": "nowhere",
    "plot graded": "graded",
    "plot trained --qq": "unknown option --qq; see rlvr plot --help",
    "plot": "a plot needs at least one run, got none",
}
"""What a command line is answered; " ... " stands for any text."""


@pytest.mark.parametrize("line", MESSAGES)
def test_a_mistake_on_the_command_line_is_one_line_with_exit_code_2(
    line: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also of a command whose exit code 1 is a finding."""
    if "_model" in line:
        damaged_models(workplace)
    code, lines, said = outcome(shlex.split(line), capsys)
    assert (code, len(lines)) == (REFUSED, 1), said
    assert all(part in lines[0] for part in MESSAGES[line].split(" ... ")), said
    assert "Traceback" not in said


def test_a_plot_is_written_under_the_name_that_was_typed(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    for name in ("one", "two.png", "v0.3"):
        assert outcome(["plot", "trained", "--out", name], capsys)[0] == 0
    written = {path.name for path in workplace.iterdir() if path.suffix in (".svg", ".png")}
    assert written == {"one.svg", "one.png", "two.svg", "two.png", "v0.3.svg", "v0.3.png"}


def damaged_models(folder: Path) -> None:
    small_model(257).save_pretrained(folder / "bare_model")
    save_model(folder / "wide_model", small_model(4000), ByteTokenizer())
    save_model(folder / "cut_model", small_model(257), ByteTokenizer())
    weights = folder / "cut_model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])


def test_errors_of_ones_own_verifier_name_it(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = """
import verifiers

def undecided(completion, problem):
    return float("nan")

@verifiers.factory
def made():
    raise OSError("the weights are elsewhere")
"""
    (workplace / "own_verifiers.py").write_text(own)
    code, [line], _ = outcome(["verify", "1", "1", "--verifier", "own_verifiers:undecided"], capsys)
    assert code == 2
    assert "own_verifiers.undecided returned nan" in line
    code, [line], _ = outcome(["verify", "1", "1", "--verifier", "own_verifiers:made"], capsys)
    assert code == CANNOT
    assert "own_verifiers.py:9 raised OSError: the weights are elsewhere" in line


def test_a_model_has_the_tokenizer_it_was_saved_with(workplace: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="is not that of the model"):
        load_policy(workplace / "model", tokenizer=CharTokenizer("ab"))
    damaged_models(workplace)
    _, tokenizer = load_policy(workplace / "bare_model", tokenizer="byte")
    assert isinstance(tokenizer, ByteTokenizer)


def test_what_nobody_foresaw_is_a_bug_of_ours_or_an_error_of_the_users(
    workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("agents.commands.main.parse_command", fail)
    code, [line], _ = outcome(["verify", "1", "1"], capsys)
    assert code == CANNOT  # raised by this file, which is none of the package's
    assert f"the code at {__file__}:" in line
    monkeypatch.setattr("agents.commands.main.parse_command", lambda *_: None)
    code, [line], said = outcome(["verify", "1", "1"], capsys)
    assert code == BUG
    assert all(part in line for part in ("this is a bug in rlvr-envs", "RLVR_TRACEBACK=1"))
    assert "Traceback" not in said
    monkeypatch.setenv("RLVR_TRACEBACK", "1")
    assert "Traceback" in outcome(["verify", "1", "1"], capsys)[2]


def test_the_version_is_said_everywhere(rlvr: Command) -> None:
    code, output, _ = rlvr("--version")
    assert code == 0
    assert output == f"rlvr-envs {verifiers.__version__}\n"
    assert verifiers.__version__ == rlvr_envs.__version__ == agents.__version__


def test_output_that_nobody_reads_or_that_does_not_fit_is_no_traceback() -> None:
    program = "from rlvr_envs.console import main; main()"
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([sys.executable, "-c", program, "envs"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == CANNOT
    assert done.stderr == "error: No space left on device\n"


@pytest.mark.parametrize(
    ("message", "typed", "shown"),
    [
        ("group_size must be at least 2", (), "--group-size must be at least 2"),
        ("seed must be at least 0", (), "--seed must be at least 0"),
        ("the seed must be 0, got epochs=2 for 3 epochs", (), "the seed must be 0, got --epochs 2 for 3 epochs"),
        ("set `reference_sync_every`, or scale='none'.", (), "set --reference-sync-every, or --scale none."),
        ("fast=False or fast=True: set engine to 'vllm'", (), "--no-fast or --fast: set --engine to 'vllm'"),
        ("config.group_size, runs/group_size and max_new_tokens", (), None),
        ("set learner=LearnerConfig()", (), None),
        ("max_tokens must be at least 1", ("--verifier-args", "max_tokens=0"), "max_tokens must be at least 1"),
        ("is called as f(epochs=1)", (), None),
        ("resume it (--resume, resume=True)", (), None),
        ("unknown verifier 'x'. Known: math, group_size.", (), None),
    ],
)
def test_errors_name_options_as_they_are_typed(message: str, typed: tuple[str, ...], shown: str | None) -> None:
    assert with_option_names(message, AGENT_COMMANDS.load("grpo"), typed) == (shown or message)
