"""Instructions of IFEval: responses that follow an instruction by construction, and responses that narrowly fail it."""

from __future__ import annotations

import random
from collections.abc import Sequence

from verifiers.audit.subjects.tasks import Field, Task

_WORDS = (
    "the", "small", "old", "river", "bends", "around", "wet", "stones", "while", "birds", "rest", "near", "green", "hills",
)  # fmt: skip
"""Plain words, none of which is a keyword below."""


def _instructions(rng: random.Random) -> dict[str, tuple[str, dict[str, object], Sequence[str], Sequence[str]]]:
    """Instructions by id, each with its request, its kwargs, responses that follow it, and responses that don't."""
    n = rng.randint(3, 7)

    def words(count: int) -> str:
        return " ".join(rng.choice(_WORDS) for _ in range(count))

    def sentence(*more: str) -> str:
        return " ".join([words(4), *more, words(3)]).capitalize() + "."

    def sentences(count: int) -> str:
        return " ".join(sentence() for _ in range(count))

    def lines(mark: str, count: int) -> str:
        return "\n".join([sentence(), *(f"{mark} {words(3)}" for _ in range(count))])

    def parts(count: int, divider: str) -> str:
        return f"\n{divider}\n".join(sentence(str(number)) for number in range(count))

    def json_of(text: str) -> str:
        return f'{{"answer": "{text}", "numbers": [1, 2]}}'

    at_least, less = {"relation": "at least"}, {"relation": "less than"}
    some = sentences(2)
    return {
        "length_constraints:number_words": (
            f"Use at least {n} words.", {"num_words": n, **at_least}, (words(n), words(n + 9)), (words(n - 1), words(1)),
        ),
        "length_constraints:number_sentences": (
            f"Use less than {n} sentences.", {"num_sentences": n, **less}, (sentences(n - 1), sentences(1)),
            (sentences(n), sentences(n + 1)),
        ),
        "length_constraints:number_paragraphs": (
            f"Write {n} paragraphs, divided by ***.", {"num_paragraphs": n}, (parts(n, "\n***\n"), parts(n, "***")),
            (parts(n - 1, "***"), parts(n + 1, "***"), parts(n, "**")),
        ),
        "keywords:existence": (
            "Mention lantern and harbor.", {"keywords": ["lantern", "harbor"]},
            (sentence("harbor", "lantern"), f"{sentence('lantern')} Harbor {some}"), (sentence("lantern"), some),
        ),
        "keywords:frequency": (
            f"Use the word lantern at least {n} times.", {"keyword": "lantern", "frequency": n, **at_least},
            (sentence(*["lantern"] * n), " ".join(sentence("lantern") for _ in range(n + 1))),
            (sentence(*["lantern"] * (n - 1)), some),
        ),
        "keywords:forbidden_words": (
            "Do not use the words lantern and harbor.", {"forbidden_words": ["lantern", "harbor"]}, (some, words(9)),
            (sentence("lantern"), f"{some} Harbor!"),
        ),
        "punctuation:no_comma": (
            "Use no commas.", {}, (some, words(9)), (f"{some[:-1]}, {words(2)}.", f"{words(2)},{words(2)}"),
        ),
        "change_case:english_lowercase": (
            "Answer in English, in small letters.", {}, (some.lower(), sentences(3).lower()), (some, words(9) + " Home"),
        ),
        "change_case:english_capital": (
            "Answer in English, in capital letters.", {}, (some.upper(), sentences(3).upper()),
            (some, words(9).upper() + " home"),
        ),
        "detectable_format:number_bullet_lists": (
            f"Give exactly {n} bullet points.", {"num_bullets": n}, (lines("*", n), lines("-", n)),
            (lines("*", n - 1), lines("-", n + 1), some),
        ),
        "detectable_format:title": (
            "Give a title in double angular brackets.", {}, (f"<<{words(2)}>>\n\n{some}", f"{some}\n<<{words(1)}>>"),
            (some, f"<{words(2)}>\n\n{some}", f"<<>>\n{some}"),
        ),
        "detectable_format:json_format": (
            "Answer in JSON.", {}, (json_of(some), f"```json\n{json_of(words(3))}\n```"),
            (json_of(some)[:-1], json_of(some).replace('"', "'"), f"{some}\n{json_of(some)}"),
        ),
        "detectable_content:number_placeholders": (
            f"Use at least {n} placeholders in square brackets.", {"num_placeholders": n},
            (" ".join(f"[{word}]" for word in _WORDS[:n]), sentence(*(f"[{word}]" for word in _WORDS[: n + 1]))),
            (" ".join(f"[{word}]" for word in _WORDS[: n - 1]), f"({words(3)})"),
        ),
        "detectable_content:postscript": (
            "Add a postscript that begins with P.S.", {"postscript_marker": "P.S."},
            (f"{some}\n\nP.S. {words(3)}", f"{some}\nP.S. {sentence()}"), (some, f"{some}\n\nNote: {words(3)}"),
        ),
        "combination:two_responses": (
            "Give two different responses, divided by ******.", {}, (parts(2, "******"),),
            (parts(1, "******"), parts(3, "******"), parts(2, "*****"), f"{some}\n******\n{some}"),
        ),
        "startend:end_checker": (
            "End with the words: that is all.", {"end_phrase": "that is all."},
            (f"{some} That is all.", f"{some}\nthat is all."),
            (f"That is all. {some}", some, f"{some} That is all. {sentence()}"),
        ),
        "startend:quotation": (
            "Wrap the response in double quotation marks.", {}, (f'"{some}"', f'"{words(5)}"'),
            (some, f'"{some}', f'{some} "{words(3)}"', f"'{some}'"),
        ),
    }  # fmt: skip


def _draw(rng: random.Random) -> Task:
    drawn = _instructions(rng)
    identifier = rng.choice(list(drawn))
    asked, kwargs, right, wrong = drawn[identifier]
    reference = {"instruction_id_list": [identifier], "kwargs": [kwargs]}
    itself, *others = right
    right_by_family = {"itself": [itself], "another response": others or [itself]}
    return Task(identifier, f"Write about a river. {asked}", reference, right_by_family, {"least failure": wrong})


INSTRUCTIONS = Field(
    _draw, ("{answer}", "{answer}<|im_end|>", "\n{answer}\n"), no_answers=("", "\n", "<think>\nFirst, ")
)
