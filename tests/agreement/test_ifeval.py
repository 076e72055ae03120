"""The instructions of IFEval and IFBench by `if-verifiable`, which keeps the published checkers, and by ours."""

from __future__ import annotations

import importlib
import logging
import os
import random
import re
import sysconfig
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("if_verifiable", reason="needs if-verifiable, in the environment of make test-agreement")

from tests.agreement.tally import PAGE, assert_documented, table
from tests.instructions import CASES
from verifiers.errors import InvalidArgumentError
from verifiers.ifeval import Instruction
from verifiers.ifeval.published import as_published

MUTANTS, TEXTS = 40, 150
WHY = dict(
    re.findall(r"^\| `([a-z_]+:[a-z_-]+)` \| (.+?) \| \d+ \| \d+ \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
)
"""Why we may say something else about an instruction, as the page says."""


@pytest.fixture(scope="module")
def checkers() -> dict[str, type]:
    """The published checkers by instruction; NLTK's data comes from a package, and nothing is downloaded."""
    folder = Path(sysconfig.get_paths()["purelib"]) / "llama_index" / "core" / "_static" / "nltk_cache"
    os.environ["NLTK_DATA"] = str(folder)
    importlib.import_module("langdetect").DetectorFactory.seed = 0
    logging.getLogger().setLevel(logging.CRITICAL)  # they log every text without a language
    nltk = importlib.import_module("nltk")
    nltk.download = lambda *args, **kwargs: False
    names = ("if_verifiable.ifbench.instructions_registry", "if_verifiable.ifeval.instructions_registry")
    registries = [importlib.import_module(name).INSTRUCTION_DICT for name in names]
    return {identifier: checker for registry in registries for identifier, checker in registry.items()}


def _mutants(text: str, draw: random.Random) -> Iterator[str]:
    """The text, and small changes of it."""
    yield text
    for _ in range(MUTANTS):
        start = draw.randrange(len(text) + 1)
        end = min(len(text), start + draw.randrange(1, 12))
        part = text[start:end]
        choices = (
            "",
            part * 2,
            part.upper(),
            part.lower(),
            f" {part}",
            f"{part}\n",
            f"*{part}*",
            f'"{part}"',
            f"{part}. ",
            f"{part},",
        )
        yield text[:start] + draw.choice(choices) + text[end:]


_WORDS = re.split(
    "[|]",
    "the|river|a|Anna|level|don't|well-known|42|3.5|and|but|story|War,|peace|(so|[far])|*bold*|\"said\"|'one'|Section|1|P.S.|"
    "yes|Dr.|Smith|e.g.|猫|\U0001f600|<<Joy>>|it|she|https://a.b/c|...|Why?|Never!|So.|{x}|-|*|***|\n|\n\n|\n* |\n- |\n# A\n",
)


def _texts(draw: random.Random) -> Iterator[str]:
    """Texts of words, signs and lines in any order."""
    for _ in range(TEXTS):
        yield " ".join(draw.choice(_WORDS) for _ in range(draw.randrange(1, 60))).strip() or "so"


def _theirs(checker: type, identifier: str, kwargs: dict[str, object], text: str) -> bool:
    random.seed(0)  # some draw a number in place of 0
    judge = checker(identifier)
    judge.build_description(**kwargs)
    try:
        return bool(judge.check_following(text))
    except (IndexError, ValueError):  # some raise where a text lacks what they look for
        return False


@pytest.fixture(scope="module")
def judged(checkers: dict[str, type]) -> list[tuple[Instruction, str, bool]]:
    """Texts with an instruction each, and whether the published checkers say that they follow it."""
    draw = random.Random(0)
    shared = list(_texts(draw))
    found = []
    for identifier, kwargs, good, bad in CASES:
        if identifier == "words:start_verb" or (identifier == "keywords:letter_frequency" and kwargs["letter"] == "#"):
            continue  # the tagger's data is in no package; the published checker counts a random letter
        instruction = Instruction(identifier, kwargs)
        texts = [*shared, *(mutant for text in [*good, *bad] if len(text) < 5000 for mutant in _mutants(text, draw))]
        for text in (text.strip() for text in texts if text.strip()):
            found.append((instruction, text, _theirs(checkers[identifier], identifier, dict(instruction.kwargs), text)))
    return found


def test_every_disagreement_is_of_a_kind_that_the_page_explains(judged: list[tuple[Instruction, str, bool]]) -> None:
    counts: dict[str, Counter[tuple[bool, bool]]] = {}
    for instruction, text, theirs in judged:
        counts.setdefault(instruction.id, Counter())[theirs, instruction.followed_by(text)] += 1
    apart = {name: found for name, found in sorted(counts.items()) if found[True, False] or found[False, True]}
    assert apart.keys() <= WHY.keys(), f"no reason is given for {sorted(apart.keys() - WHY.keys())}"
    total = sum(found.total() for found in counts.values())
    same = sum(found[True, True] + found[False, False] for found in counts.values())
    on_all = len(counts) - len(apart)
    assert_documented(
        f"{same:,} of {total:,} verdicts are the same, and on {on_all} of {len(counts)} instructions all are"
    )
    rows = [(f"`{name}`", WHY[name], found[True, False], found[False, True]) for name, found in apart.items()]
    assert_documented(table(("instruction", "why", "only they accept", "only we accept"), rows))


def test_with_the_preset_every_verdict_on_an_instruction_of_ifeval_is_the_published_one(
    judged: list[tuple[Instruction, str, bool]],
) -> None:
    apart, total, ids = [], 0, set()
    for instruction, text, theirs in judged:
        try:
            follows = as_published(instruction)
        except InvalidArgumentError:
            continue  # one of IFBench
        ids.add(instruction.id)
        total += 1
        if follows(text) != theirs:
            apart.append((instruction, text, theirs))
    assert not apart, f"{len(apart)} of {total} differ: {apart[:5]}"
    assert_documented(f'With `preset="published"` all of {total:,} verdicts on the {len(ids)} of IFEval are the same')
