"""Finds the program in a completion: one file, or several named files."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from verifiers.completion.blocks import Block, code_blocks
from verifiers.completion.cut import cut
from verifiers.completion.words import THOUGHTS

ExtractionPolicy = Literal["defining_block", "last_block", "first_block", "longest_block", "raw"]
"""The block that is the program: each `*_block` takes the code block that it names, or the whole answer if there is no code
block. `defining_block` is the last block that defines a name that tests need, else the last block. `raw` always takes the whole
text.
"""

PYTHON = "python"
_SHELL = "bash"
_MAYBE_PYTHON = {"", "pycon"}
# Completions may be hostile, and are parsed in the caller's process: no pattern may backtrack more than a little.
_PATH = r"(?:\./)?((?:[A-Za-z_]\w*/)*[A-Za-z_]\w*\.py)"
_NAME_IN_INFO = re.compile(rf"(?:^|[\s:={{\"'])(?:[\w-]+[:=])?[\"']?{_PATH}[\"'}}]*(?:\s|$)")
_NAME_IN_COMMENT = re.compile(rf"^\s*#+[\s=-]*(?:file(?:name)?\s*[:=]\s*)?[`\"']?{_PATH}[`\"']?[\s=-]*$", re.IGNORECASE)
_NAME_BEFORE = re.compile(
    rf"^(?:[\s#>*+-]|\d+[.)])*+(?:file(?:name)?\s*+[:=]?\s*+)?[*`\"']*+{_PATH}[*`\"']*+\s*+:?\s*+[*`]*$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class ExtractedProgram:
    """A program as extracted from a completion."""

    text: str
    """The main file."""
    path: str = ""
    """The main file's path, if the completion gives one."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Further files by path."""
    language: str = PYTHON
    """The name of the program's language."""

    def __str__(self) -> str:
        if not self.others:
            return self.text
        files = {**self.others, self.path or "main": self.text}
        return "\n\n".join(f"# {path}\n{text}" for path, text in files.items())


def is_path(text: str) -> bool:
    """Whether a text names a Python file that can be imported from the program's folder."""
    return re.fullmatch(_PATH, text) is not None and not text.startswith("./")


def extract(
    completion: str,
    policy: str,
    main: str = "solution.py",
    names: Collection[str] = (),
    thoughts: tuple[str, ...] = THOUGHTS,
) -> ExtractedProgram | None:
    """Find the program in a completion; None if there is none.

    Python blocks that are named (```` ```python utils.py ````, a first line `# utils.py`, or a line `**utils.py**` before the
    block) are files; if several have the same name, the last counts. The main file is the block that the policy picks or, if
    that block has a name, the file named `main` or `main.py`. Other blocks without a name are dropped. The policy picks among
    the blocks that are labelled as Python or named; if none of them can be the main file, also among blocks without a label,
    such as a program's output. If there are no such blocks, it picks among interactive sessions; if there are none of these
    either, among all blocks. `completion.cut` and `completion.blocks` define the text that is read and its blocks.

    Args:
        completion: A model's answer.
        policy: An `ExtractionPolicy`.
        main: The path of the main file, if this file has a name; a package of the same name counts too.
        names: Names that the tests need, for `defining_block`.
        thoughts: Names of the tags of thoughts.
    """
    if policy == "raw":
        return ExtractedProgram(completion) if completion.strip() else None
    answer = cut(completion, thoughts=thoughts).text
    usual = (main, f"{main.removesuffix('.py')}/__init__.py", "main.py")
    blocks = _candidates(code_blocks(answer), usual)
    if not blocks:
        return ExtractedProgram(answer) if answer.strip() else None
    defining = [block for block in blocks if names and _defines(block.content, names)] or blocks
    picked = {
        "defining_block": defining[-1],
        "last_block": blocks[-1],
        "first_block": blocks[0],
        "longest_block": max(blocks, key=_length),
    }[policy]
    files = {path: block.content for block in blocks if (path := _path(block))}
    path = _path(picked)
    path = path and next((name for name in usual if name in files), path)
    text = files.pop(path) if path else picked.content
    return ExtractedProgram(text, path, files) if text.strip() else None


def extract_in(
    completion: str, policy: str, labels: Mapping[str, str], first: str, thoughts: tuple[str, ...] = THOUGHTS
) -> ExtractedProgram | None:
    """Find a program of one file in a completion, in one of several languages; None if there is none.

    Blocks labelled with one of the languages take precedence over unlabelled blocks, and unlabelled blocks over all others. A
    version at the end of a label, as in `c++17`, is ignored. Blocks of bash next to a program in another language are ignored
    too, since such a block shows how to run the program.

    Args:
        completion: A model's answer.
        policy: An `ExtractionPolicy`; `defining_block` means the last block.
        labels: The language of each label; `"python"` covers all labels of Python.
        first: The language of a program without a label.
        thoughts: Names of the tags of thoughts.
    """
    if policy == "raw":
        return ExtractedProgram(completion, language=first) if completion.strip() else None
    answer = cut(completion, thoughts=thoughts).text
    blocks = code_blocks(answer)
    found = [(block, _label(block, labels)) for block in blocks if block.content.strip()]
    labelled = [(block, labels[label]) for block, label in found if label in labels]
    candidates = (
        [(block, language) for block, language in labelled if language != _SHELL]
        or labelled
        or [(block, first) for block, label in found if not label]
        or [(block, first) for block, _ in found]
    )
    if not candidates:
        return ExtractedProgram(answer, language=first) if answer.strip() and not blocks else None
    longest = max(candidates, key=lambda candidate: _length(candidate[0]))
    block, language = {"first_block": candidates[0], "longest_block": longest}.get(policy, candidates[-1])
    return ExtractedProgram(block.content, language=language)


def _label(block: Block, known: Collection[str]) -> str:
    if block.is_python or block.language in known:
        return PYTHON if block.is_python else block.language
    return re.split(r"[-_]?\d", block.language, maxsplit=1)[0] or block.language


def _path(block: Block) -> str:
    """The path given for a block by its info string, its first line or the line before it; empty if there is none."""
    first = next(filter(str.strip, block.content.split("\n")), "")
    for pattern, text in ((_NAME_IN_INFO, block.info), (_NAME_IN_COMMENT, first), (_NAME_BEFORE, block.before)):
        if match := pattern.search(text):
            return match[1]
    return ""


def _length(block: Block) -> int:
    return len(block.content)


def _candidates(blocks: list[Block], main: Collection[str]) -> list[Block]:
    """The blocks that may be files of the program, among which a policy picks; `main` has the main file's possible paths."""
    blocks = [block for block in blocks if block.content.strip() or _path(block)] or blocks
    usable = [
        block
        for block in blocks
        if block.is_python or block.language in _MAYBE_PYTHON or _NAME_IN_INFO.search(block.info)
    ]
    programs = [block for block in usable if not block.is_session]
    labelled = [block for block in programs if block.is_python or _path(block)]
    has_main = any((path := _path(block)) == "" or path in main for block in labelled)
    return (labelled if has_main else programs or usable) or blocks


def continues(program: str, prefix: str, *names: str) -> bool:
    """Whether a program continues a prefix, which may be empty, rather than being complete.

    A program is complete if it defines one of the names, or the function or class that the prefix declares. A program that
    begins inside a block is not complete, whatever it defines later.
    """
    own = [name for name in {*names, announced(prefix)} if name] if prefix else []
    if not own:
        return False
    lines = (line for line in program.split("\n") if line.strip() and not line.lstrip().startswith("#"))
    if next(lines, "")[:1].isspace():
        return True
    return not _defines(program, own)


def continued(prefix: str, source: str) -> str:
    """The whole program that consists of a prefix and its continuation."""
    # A prompt may end with the indentation of the next line, which a completion continues or repeats.
    goes_on = prefix.endswith((" ", "\t")) and not prefix.rpartition("\n")[2].strip() and not source[:1].isspace()
    joint = "" if goes_on or not prefix or prefix.endswith("\n") or source.startswith("\n") else "\n"
    return prefix + joint + source


def _defines(program: str, names: Collection[str]) -> bool:
    """Whether a program defines one of the names at its top level."""
    own = "|".join(map(re.escape, sorted(names)))
    pattern = rf"^(?:(?:async[ \t]+)?def|class)[ \t]+(?:{own})\b|^(?:{own})[ \t]*(?::[^=\n]*)?="
    return re.search(pattern, program, re.MULTILINE) is not None


# Cached because programs come in groups that answer the same problem.
@functools.lru_cache(64)
def announced(prefix: str) -> str:
    """The name that a prompt's code declares: its last top-level function or class; empty if there is none."""
    names = re.findall(r"^(?:(?:async[ \t]+)?def|class)[ \t]+(\w+)", prefix, re.MULTILINE)
    return names[-1] if names else ""
