"""Parts of pages that follow from the code: what stands between `<!-- KIND: NAME -->` and `<!-- end -->` in a page.

KIND is a function below, NAME an environment, an agent, a module, a command or a table of benchmarks. The parts are in the
repository, so that a page is whole wherever it is read; `tests/test_docs_pages.py` says which are out of date, and this file,
run as a script, writes them anew, and a page for a benchmark that has none. Everything follows from the code, so that two runs
are equal.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import importlib
import inspect
import json
import pprint
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import tyro

import rlvr_envs
from agents import TABULAR_AGENTS, agent_classes, tabular_classes
from agents.commands.command_line import option_texts
from agents.commands.main import COMMANDS as ENTRIES, _load
from agents.commands.train_options import TrainOptions
from rlvr_envs import PRESETS, ChatPrompt, tasks
from rlvr_envs.envs import question_in
from rlvr_envs.tasks.benchmarks import rows, source_of
from verifiers import Problem, bounds_of, verify
from verifiers.completion import move_in, words as completion_words
from verifiers.unit_tests import DeferredTests
from verifiers.unit_tests.datasets import IMPORTS

KINDS = "benchmarks|pages|environment|problems|row|method|module|settings|measured|options|words|prompts|asked|files"
START = rf"^<!-- ({KINDS}): (\S+) -->$"
MARKER = re.compile(rf"{START}.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
DOCS = Path(__file__).parents[1]
BENCHMARKS = DOCS.parent / "benchmarks" / "README.md"
CAPTIONS = {
    "mathematics": "Mathematics",
    "choice": "Multiple choice",
    "other": "Instructions, schemas, queries",
    "programs": "Programs",
}
"""What the tables of benchmarks are called."""
SHOWN = 3
"""Number of example problems."""


def benchmarks(name: str, before: str) -> str:
    """A table of the benchmarks of a kind."""
    lines = ["| id | problems | splits | judged by |", "|---|---|---|---|"]
    for env, row in rows(name).items():
        splits = ", ".join(f"`{split}` {size:,}" for split, size in row.sizes.items())
        lines.append(f"| `rlvr/{env}-v0` | {row.title.removesuffix('.')} | {splits} | `{row.verifier}` |")
    return "\n".join(lines)


def pages(name: str, before: str) -> str:
    """The pages of the benchmarks of a kind."""
    names = "\n".join(env.lower() for env in rows(name))
    return f"```{{toctree}}\n:caption: {CAPTIONS[name]}\n:maxdepth: 1\n\n{names}\n```"


def new_page(env: str) -> str:
    """The page of a benchmark that has none, with the row that the tests have of it."""
    sys.path.append(str(DOCS.parent))  # where the tests are, which are not installed
    from tests.benchmark_rows import EVERY

    source = source_of(env)
    config = f", configuration `{source.hub_config}`" if source.hub_config else ""
    case = EVERY[source.name]
    text = json.dumps(case.row, indent=2, ensure_ascii=False)
    without = "" if "gold_completion" in case.problem.metadata else " There is no gold completion."
    file = f"{source.name}/{source.splits[0]}.jsonl"
    return fill(_PAGE.format(env=env, data=f"`{source.hub_id}`{config}.{without}", file=file, text=text))


_PAGE = """# {env}

`rlvr/{env}-v0`

<!-- environment: {env} -->
<!-- end -->

## Data

The environment reads the columns of {data} A local file, `{file}`, has the same columns, one JSON object a line.
This row is made up:

```json
{text}
```

It becomes this problem, before the prompt's template is put around it:

<!-- row: {env} -->
<!-- end -->
"""


def environment(name: str, before: str) -> str:
    """The docstring of an environment's class, whose sections are Markdown."""
    return inspect.cleandoc(str(rlvr_envs.environment_class(name).__doc__))


def problems(name: str, before: str) -> str:
    """The first problems of the default split of generated ones, with their gold completions; of equal ones the first."""
    task = rlvr_envs.environment_class(name).task
    dataset = task.load(split=task.default_split)
    shown: dict[tuple[str, object], Any] = {}
    for index in range(min(SHOWN, len(dataset))):
        one = dataset[index]
        shown.setdefault((str(one.prompt), one.metadata.get("gold_completion", one.id)), one)
    text = "\n\n---\n\n".join(map(_problem, shown.values()))
    first = dataset[0]
    question = question_in(dataset, ChatPrompt())
    if question is None or (asked := question(first).prompt) == first.prompt:
        return text
    return f"{text}\n\n---\n\nThe first, as a chat is asked it:\n\n````text\n{asked}\n````"


def row(name: str, before: str) -> str:
    """What becomes of the row of a benchmark that is the last JSON block before the marker."""
    text = re.findall(r"^```json\n(.*?)^```", before, re.DOTALL | re.MULTILINE)[-1]
    task = rlvr_envs.environment_class(name).task
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / task.load.__self__.name / f"{task.default_split}.jsonl"
        path.parent.mkdir()
        path.write_text(json.dumps(json.loads(text)), encoding="utf-8")
        return _problem(task.load(split=task.default_split, data_dir=folder)[0])


def _problem(problem: Any) -> str:
    gold = problem.metadata.get("gold_completion")
    parts = {"Prompt": problem.prompt} | ({} if gold is None else {"Gold completion": gold})
    reference = problem.reference.load() if isinstance(problem.reference, DeferredTests) else problem.reference
    if not isinstance(reference, str):
        if getattr(reference, "prelude", "") == IMPORTS:
            reference = dataclasses.replace(reference, prelude="... IMPORTS of verifiers.unit_tests.datasets")
        parts["Reference"] = pprint.pformat(reference, width=100)
    elif reference != gold:
        parts["Reference"] = reference
    return "\n\n".join(f"{title}:\n\n````text\n{text.rstrip()}\n````" for title, text in parts.items())


def method(name: str, before: str) -> str:
    """The docstring of an agent's module: what it does, its source, where it departs from that."""
    return module(_classes(name)[0].__module__, before)


def module(name: str, before: str) -> str:
    """The docstring of a module."""
    text = inspect.cleandoc(str(importlib.import_module(name).__doc__))
    return re.sub(r"(?<=\S) \|\| (?=\S)", r" \|\| ", text)  # in a cell of a table it would be two ends


def _classes(name: str) -> tuple[type[Any], type[Any]]:
    return tabular_classes(name) if name in TABULAR_AGENTS else agent_classes(name)


def settings(name: str, before: str) -> str:
    """The settings that an agent adds to `AgentConfig` or `TabularConfig`, or has another default of."""
    config = _classes(name)[1]
    common, *_ = (cls for cls in config.__mro__ if cls.__name__ in ("AgentConfig", "TabularConfig"))
    defaults = {field.name: _default(field) for field in dataclasses.fields(common)}
    lines = ["| setting | default | meaning |", "|---|---|---|"]
    for field in dataclasses.fields(config):
        if defaults.get(field.name) != _default(field):
            lines.append(f"| `{field.name}` | `{_default(field)}` | {_meaning(config, field.name)} |")
    return "\n".join(lines)


def options(name: str, before: str) -> str:
    """The options of a command; of `train` those that all agents with a model share."""
    if name == "train":
        return _options_of(TrainOptions, name)
    entry = ENTRIES[name]
    target = _load(entry.home, "rlvr")
    if entry.subcommands is None:
        return _options_of(target, name)
    return "\n\n".join(_options_of(target.load(choice), f"{name} {choice}") for choice in target)


def _options_of(cls: type, name: str) -> str:
    lines = [f"`rlvr {name}`: {' '.join(inspect.cleandoc(str(cls.__doc__)).split())}", ""]
    lines += ["| option | default | meaning |", "|---|---|---|"]
    return "\n".join([*lines, *_option_rows(cls)])


def _option_rows(cls: type, defaults: object = None) -> Iterator[str]:
    """A row for each option, those of a config among them; the defaults are those of an instance, if one is given."""
    hints = get_type_hints(cls, include_extras=True)
    for field in dataclasses.fields(cls):
        value = field.default if defaults is None else getattr(defaults, field.name)
        if dataclasses.is_dataclass(hints[field.name]):
            given = field.default_factory() if value is dataclasses.MISSING else value
            yield from _option_rows(hints[field.name], given)
            continue
        extras = getattr(hints[field.name], "__metadata__", ())
        own = next((extra.metavar for extra in extras if getattr(extra, "metavar", None)), field.name.upper())
        option = own if tyro.conf.Positional in extras else f"--{field.name.replace('_', '-')}"
        yield f"| `{option}` | {_shown_default(value)} | {_meaning(cls, field.name)} |"


def _shown_default(value: object) -> str:
    """A default as on a command line; nothing where it is none."""
    if value is dataclasses.MISSING:
        return "required"
    if isinstance(value, bool):
        return "on" if value else "off"
    text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return "" if text in ("", "None") else f"`{text}`"


def _meaning(cls: type, name: str) -> str:
    """What is said of a field, with the bound of its numbers."""
    bounds = [str(bound) for setting, bound in bounds_of(cls) if setting == name and str(bound) != "finite"]
    extras = getattr(get_type_hints(cls, include_extras=True)[name], "__metadata__", ())
    shared = next((extra.help for extra in extras if getattr(extra, "help", None)), "")
    return " ".join([_texts(cls).get(name, shared), *(f"({bound})" for bound in bounds)])


def _texts(cls: type) -> dict[str, str]:
    """What is said of each field of a class and its bases, in one line, fit for a cell of a table."""
    return {name: " ".join(text.split()).replace("|", "\\|") for name, text in option_texts(cls).items()}


def _default(field: dataclasses.Field[Any]) -> str:
    value = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    if dataclasses.is_dataclass(value):
        changed = (setting for setting in dataclasses.fields(value) if getattr(value, setting.name) != setting.default)
        arguments = ", ".join(f"{setting.name}={getattr(value, setting.name)!r}" for setting in changed if setting.init)
        return f"{type(value).__name__}({arguments})"
    return repr(value.value if isinstance(value, enum.Enum) else value)


def measured(name: str, before: str) -> str:
    """An agent's rows of the tables in benchmarks/README.md, beside the checkpoint from which it started."""
    page = BENCHMARKS.read_text(encoding="utf-8")
    lines = ["| | addition | sort | gridworld |", "|---|---|---|---|"]
    for what in ("Reward of sampled completions", "Accuracy of greedy completions"):
        table = page.partition(f"{what}:\n\n")[2].partition("\n\n")[0]
        for first, label in (("the checkpoint", "at the start"), (f"`{name}`", "after training")):
            cells = re.search(rf"^\| {re.escape(first)} \|(.*)$", table, re.MULTILINE)
            assert cells is not None, name
            lines.append(f"| {what[0].lower()}{what[1:]}, {label} |{cells[1]}")
    return "\n".join(lines)


def prompts(name: str, before: str) -> str:
    """Every prompt that has a name, with its source and a problem as it puts it."""
    return "\n\n".join(_shown_prompt(prompt) for prompt in PRESETS.values())


def _shown_prompt(prompt: Any) -> str:
    shortened = dataclasses.replace(prompt, exemplars=prompt.exemplars[:1])
    left = len(prompt.exemplars) - 1
    more = f" One of its {left + 1} examples is shown." if left > 0 else ""
    if isinstance(prompt, ChatPrompt):
        kind, text = "A chat.", "\n\n".join(message.content for message in shortened.messages(_EXAMPLE))
    else:
        kind, text = "Text.", shortened.render(_EXAMPLE)
    stop = ", ".join(f"`{json.dumps(string)}`" for string in prompt.stop)
    says = f" It stops before {stop}." if stop and not isinstance(prompt, ChatPrompt) else ""
    asked = f" The answer is asked for as `{json.dumps(prompt.answer_format)[1:-1]}`." if prompt.answer_format else ""
    return f"### `{prompt.name}`\n\n{kind} {prompt.source}{more}{says}{asked}\n\n````text\n{text}\n````"


_EXAMPLE = Problem("example", "What is 6 * 7?", "42")


def asked(name: str, before: str) -> str:
    """The prompts and verifiers of every environment, as text and as a chat."""
    lines = ["| environment | prompt | of a chat | verifier | of a chat |", "|---|---|---|---|---|"]
    rows: dict[tuple[str, ...], list[str]] = {}
    for env_id in rlvr_envs.ENVIRONMENTS:
        short = env_id.removeprefix("rlvr/").removesuffix("-v0")
        task = rlvr_envs.environment_class(env_id).task
        cells = (
            _name_of(task.prompt),
            task.prompt_for(None, chat=True).name,
            _call(*task.verifier),
            _call(*(task.chat_verifier or task.verifier)),
        )
        rows.setdefault(cells, []).append(f"`{short}`")
    for (prompt, chat, verifier, reader), names in rows.items():
        own = ["" if chat == prompt else f"`{chat}`", f"`{verifier}`", "" if reader == verifier else f"`{reader}`"]
        lines.append(f"| {', '.join(names)} | `{prompt}` | {' | '.join(own)} |")
    return "\n".join(lines)


def _name_of(prompt: Any) -> str:
    return str(getattr(prompt, "name", prompt))


def _call(name: str, arguments: Any) -> str:
    """A verifier with its arguments; that of an environment alone by the name of its class."""
    given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"{name.rpartition(':')[2]}({given})" if given else name.rpartition(":")[2]


def words(name: str, before: str) -> str:
    """The tables of words by which answers are found, each with its example and what the verifiers find in that."""
    lines = ["| phrases | meaning | example | found |", "|---|---|---|---|"]
    for table in completion_words.ALL.values():
        phrases = ", ".join(f"`{phrase}`" for phrase in table.phrases).replace("|", "\\|")
        example = table.example.replace("\n", "\\n")
        lines.append(f"| {phrases} | {table.means} | `{example}` | {found(table)} |")
    return "\n".join(lines)


def files(name: str, before: str) -> str:
    """The files of a package, folder by folder, each with the first sentence of its docstring and its public definitions."""
    root = DOCS.parent / name
    folders = sorted({path.parent for path in root.rglob("*.py")})
    return "\n\n".join(_folder(folder, sorted(folder.glob("*.py"))) for folder in folders)


def _folder(folder: Path, paths: list[Path]) -> str:
    lines = [f"### `{folder.relative_to(DOCS.parent)}`", "", "| file | subject | defines |", "|---|---|---|"]
    for path in paths:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        subject = " ".join((ast.get_docstring(tree) or "").partition("\n\n")[0].split()).replace("|", "\\|")
        if path.name == "__init__.py":
            lines[1] = f"\n{subject}\n"
        else:
            shown = ", ".join(f"`{name}`" for name in _defined(tree) if not name.startswith("_"))
            lines.append(f"| `{path.name}` | {subject} | {shown} |")
    return "\n".join(lines if len(lines) > 4 else lines[:2]).rstrip()


def _defined(tree: ast.Module) -> Iterator[str]:
    """The functions, classes and constants of a module."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def found(table: completion_words.Cues) -> str:
    """What is found in a table's example: by `choice` if it has a letter, else by `math` unless the table is for others."""
    if table is completion_words.MOVES:
        return f"`{move_in(table.example)}`"
    name, reference = ("choice", "C") if re.search(r"\bC\b", table.example) else ("math", "42")
    if table is completion_words.NAMING:
        name, reference = "exact", "abc"
    verdict = verify(name, table.example, reference, **({"marked": True} if name == "exact" else {}))
    return f"`{verdict.answer}`" if verdict.outcome == "correct" else str(verdict.outcome)


def fill(text: str) -> str:
    """A page with its generated parts as they are today."""

    def part(match: re.Match[str]) -> str:
        start = match[0].partition("\n")[0]
        return f"{start}\n\n{globals()[match[1]](match[2], text[: match.start()])}\n\n<!-- end -->"

    return MARKER.sub(part, text)


def main() -> None:
    """Write the pages that are missing, and the parts of all pages anew."""
    for env in tasks.BENCHMARKS:
        path = DOCS / "environments" / f"{env.lower()}.md"
        if not path.is_file():
            path.write_text(new_page(env), encoding="utf-8")
            print(f"{path.relative_to(DOCS)} is new: say there what its columns mean")
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (filled := fill(text)) != text:
            page.write_text(filled, encoding="utf-8")
            print(f"{page.relative_to(DOCS)} is up to date again")


if __name__ == "__main__":
    main()
