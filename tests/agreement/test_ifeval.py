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

from tests.agreement.tally import assert_documented, table
from tests.instructions import CASES
from verifiers.errors import InvalidArgumentError
from verifiers.ifeval import Instruction
from verifiers.ifeval.published import as_published

MUTANTS, TEXTS = 40, 150
WHY = {
    "change_case:capital_word_frequency": "in words with hyphens or apostrophes each part counts",
    "change_case:english_capital": "langdetect has to be sure of another language, and misreads capitals",
    "change_case:english_lowercase": "langdetect has to be sure of another language",
    "combination:repeat_prompt": "an answer has to follow the request, and white space does not count",
    "combination:two_responses": "seven asterisks are not six",
    "count:conjunctions": "`And` and `and,` are one conjunction",
    "count:keywords_multiple": "a keyword is a whole word",
    "count:numbers": "`1-2` are two numbers, `3.5` is one",
    "count:person_names": "a name is a whole word",
    "count:pronouns": "`he's` has a pronoun",
    "count:unique_word_count": "a word has a letter or a digit; hyphens separate words",
    "count:word_count_range": "`don't` is one word",
    "count:words_japanese": "a word has a letter or a digit, and dates are numbers",
    "custom:csv_city": "no field may be empty, and blank lines do not count",
    "custom:csv_quotes": "the names of the columns are fields, and in quotes too",
    "custom:csv_special_character": "a quote inside the quotes, and an underscore, aren't special characters",
    "custom:date_format_list": "dates exist, and Napoleon lived",
    "custom:european_capitals_sort": "Kyiv lies north of 45 degrees",
    "custom:mcq_count_length": "a question is numbered at will",
    "custom:reverse_newline": "all 54 countries are listed, and nothing else",
    "custom:sentence_alphabet": "sentences",
    "custom:word_reverse": "sentences",
    "detectable_content:number_placeholders": "`[]`, `[1]` and links aren't placeholders",
    "detectable_content:postscript": "a postscript begins a line, and has text",
    "detectable_format:constrained_response": "two of the options are not one",
    "detectable_format:json_format": "a text in quotes alone, or NaN, isn't JSON",
    "detectable_format:multiple_sections": "a section's mark begins a line; Roman numerals count",
    "detectable_format:number_bullet_lists": "a bullet has white space behind it; `**` and `---` aren't bullets",
    "detectable_format:number_highlighted_sections": "asterisks hug what they highlight, which counts once",
    "detectable_format:title": "angular brackets belong to one title",
    "format:emoji": "sentences; an emoji behind the final sign belongs to the sentence",
    "format:line_indent": "one line isn't stairs, and blank lines do not count",
    "format:list": "items are marked: twice, before text, and not inside words",
    "format:newline": "a word has a letter or a digit",
    "format:no_bullets_bullets": "a bullet has white space behind it; blank lines, and text below, may stand there",
    "format:no_whitespace": "a response without letters or digits follows nothing",
    "format:options": "the word `or` separates options, not the letters",
    "format:output_template": "the parts stand in order, nothing before them, and none is empty",
    "format:parentheses": "brackets count when they are closed",
    "format:quote_unquote": "each quotation needs words behind it; quotes are closed",
    "format:quotes": "an apostrophe isn't a quote, and quotes are closed",
    "format:sub-bullets": "there has to be a bullet; bold type and hyphens don't count",
    "format:thesis": "every section begins so, not just one",
    "format:title_case": "minor words may be small, but not the first",
    "keywords:existence": "a keyword is a whole word",
    "keywords:frequency": "a keyword is a whole word",
    "keywords:forbidden_words": "a phrase may be broken across lines",
    "keywords:letter_frequency": "any sign is counted, not replaced by a random letter",
    "language:response_language": "a text without a language is in none; the detector is seeded",
    "length_constraints:nth_paragraph_first_word": "a blank line may hold spaces, and a first word any sign around it",
    "length_constraints:number_paragraphs": "the divider stands alone: `******` and `***bold***` don't count",
    "length_constraints:number_sentences": "sentences",
    "length_constraints:number_words": "`don't` is one word",
    "punctuation:no_comma": "commas of other scripts are commas",
    "ratio:sentence_balance": "there has to be a sentence of each kind",
    "ratio:sentence_type": "there has to be a question",
    "ratio:sentence_words": "words may not be repeated",
    "repeat:repeat_change": "the first word differs, not just white space",
    "repeat:repeat_span": "the last index is included, as the instruction says",
    "sentence:alliteration_increment": "the longest run of a sentence counts, not the sum of all",
    "sentence:increment": "sentences",
    "sentence:keyword": "a keyword is a whole word; sentences",
    "startend:end_checker": "white space does not count",
    "startend:quotation": "curly quotes are double quotation marks, and empty quotes wrap nothing",
    "words:consonants": "a word has a letter or a digit",
    "words:keywords_specific_position": "punctuation marks aren't words; sentences",
    "words:last_first": "sentences",
    "words:no_consecutive": "a word has a letter or a digit",
    "words:odd_even_syllables": "a word has a letter or a digit",
    "words:palindrome": "ten different words of letters",
    "words:paragraph_last_first": "the first word is compared without punctuation, too",
    "words:prime_lengths": "signs of punctuation of any script do not count",
    "words:repeats": "signs of punctuation of any script do not count",
    "words:vowel": "a response without letters or digits follows nothing",
    "words:words_position": "punctuation marks aren't words",
}
"""Why we may say something else about an instruction; `sentences` stands for what the page says of them."""


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
