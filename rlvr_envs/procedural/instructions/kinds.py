"""The instructions: IFEval's 25 kinds in our own words, the values of their parameters, and which kinds are compatible.

The values are chosen so that a short response can follow any set of compatible instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rlvr_envs.procedural.instructions.requests import listed

T = TypeVar("T")

LEAST_WORDS = 40
"""The smallest upper limit on the number of words. With fewer words, all other instructions can be followed."""
_NUMBERS = listed("zero one two three four five six seven eight nine ten")


class Draws:
    """Choices that one number determines. The choices are the same on every version of Python."""

    def __init__(self, code: int) -> None:
        self._code = code

    def below(self, limit: int) -> int:
        """Choose a whole number from 0 to `limit - 1`."""
        self._code, number = divmod(self._code, limit)
        return number

    def choose(self, options: Sequence[T]) -> T:
        """Choose one of the options."""
        return options[self.below(len(options))]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """Return all options in a chosen order."""
        left = list(options)
        return [left.pop(self.below(len(left))) for _ in options]


@dataclass(frozen=True)
class Given:
    """The data that the values of a parameter may depend on."""

    request: str
    words: Sequence[str]
    """Six words of the topic."""
    max_words: int
    """The largest number of words that an instruction may demand or set as a limit."""


Options = Sequence[object] | Mapping[str, object]
"""Values of a parameter. The prompt contains the value itself or, for a mapping, the value's key."""


@dataclass(frozen=True)
class Wording:
    """The wording of one kind of instruction."""

    kind: str
    """The kind's id in the verifier `ifeval`."""
    phrasings: tuple[str, ...]
    """Sentences with slots for the parameters."""
    options: Mapping[str, Options | Callable[[Given], Options]]
    fixed: Mapping[str, object]
    """Parameters whose values are part of the sentences."""

    def draw(self, draws: Draws, given: Given, *, spelled: bool) -> tuple[str, dict[str, object]]:
        """Choose a sentence and values; return the sentence with the values filled in, and the parameters."""
        phrasing = draws.choose(self.phrasings)
        chosen = {name: draws.choose(pairs) for name, pairs in self._pairs(given)}
        said = {name: _said(text, spelled=spelled) for name, (text, _) in chosen.items()}
        return phrasing.format(**said), {**self.fixed, **{name: value for name, (_, value) in chosen.items()}}

    def longest(self, given: Given) -> str:
        """A text at least as long as the longest sentence for these words."""
        said = {
            name: max((_said(text, spelled=spelled) for text, _ in pairs for spelled in (False, True)), key=len)
            for name, pairs in self._pairs(given)
        }
        return max((phrasing.format(**said) for phrasing in self.phrasings), key=len)

    def _pairs(self, given: Given) -> Iterator[tuple[str, list[tuple[object, object]]]]:
        for name, options in self.options.items():
            values = options(given) if callable(options) else options
            yield name, list(values.items()) if isinstance(values, Mapping) else [(value, value) for value in values]


def _said(value: object, *, spelled: bool) -> str:
    """Write a value in a sentence. Small numbers may be spelled out, and words get quotation marks."""
    if isinstance(value, int):
        return _NUMBERS[value] if spelled and value < len(_NUMBERS) else str(value)
    if not isinstance(value, Sequence) or isinstance(value, str):
        return str(value)
    *others, last = (f'"{word}"' for word in value)
    return f"the words {', '.join(others)} and {last}" if others else f"the word {last}"


def _wording(
    kind: str,
    *phrasings: str,
    fixed: Mapping[str, object] | None = None,
    **options: Options | Callable[[Given], Options],
) -> Wording:
    return Wording(kind, phrasings, options, fixed or {})


WORDINGS = (
    _wording(
        "keywords:existence",
        "Work {keywords} into your text.",
        "Somewhere in it must be {keywords}.",
        "Be sure to mention {keywords}.",
        "I want to read {keywords} in there.",
        keywords=lambda given: [given.words[:count] for count in (1, 2, 3)],
    ),
    _wording(
        "keywords:frequency",
        'Use the word "{keyword}" {frequency} times or more.',
        'The word "{keyword}" has to occur at least {frequency} times.',
        'Say "{keyword}" no less than {frequency} times.',
        fixed={"relation": "at least"},
        keyword=lambda given: given.words[3:4],
        frequency=(2, 3, 4),
    ),
    _wording(
        "keywords:frequency",
        'Use the word "{keyword}" fewer than {frequency} times.',
        'Let the word "{keyword}" occur less than {frequency} times.',
        fixed={"relation": "less than"},
        keyword=lambda given: given.words[3:4],
        frequency=(2, 3, 4),
    ),
    _wording(
        "keywords:forbidden_words",
        "Do without {forbidden_words}.",
        "Avoid {forbidden_words} altogether.",
        "Never use {forbidden_words}.",
        "I do not want to see {forbidden_words} anywhere in it.",
        forbidden_words=lambda given: [given.words[4:5], given.words[4:6]],
    ),
    _wording(
        "keywords:letter_frequency",
        'The letter "{letter}" (small or capital) should occur at least {let_frequency} times.',
        'Use the letter "{letter}" {let_frequency} times or more.',
        fixed={"let_relation": "at least"},
        letter="bfgkmpvwy",
        let_frequency=range(3, 8),
    ),
    _wording(
        "keywords:letter_frequency",
        'The letter "{letter}" (small or capital) should occur fewer than {let_frequency} times.',
        'Use the letter "{letter}" less than {let_frequency} times.',
        fixed={"let_relation": "less than"},
        letter="jkqvxz",
        let_frequency=range(3, 8),
    ),
    _wording(
        "language:response_language",
        "Write all of it in {language} and use no other language.",
        "Your answer has to be entirely in {language}.",
        "The reader understands only {language}, so write in that language.",
        language={
            "Spanish": "es",
            "French": "fr",
            "German": "de",
            "Italian": "it",
            "Portuguese": "pt",
            "Dutch": "nl",
            "Polish": "pl",
            "Swedish": "sv",
            "Russian": "ru",
        },
    ),
    _wording(
        "change_case:english_capital",
        "Write in English and in capital letters only.",
        "Every letter of your English text must be a capital.",
        "Keep the caps lock on: English, without any small letter.",
    ),
    _wording(
        "change_case:english_lowercase",
        "Write in English and in small letters only.",
        "Your English text must not contain one capital letter.",
        "Do not capitalize anything, not even names; the text is to be in English.",
    ),
    _wording(
        "change_case:capital_word_frequency",
        "Put at least {capital_frequency} words entirely in capitals, LIKE this one.",
        "Shout: {capital_frequency} or more words should be in capital letters from end to end.",
        fixed={"capital_relation": "at least"},
        capital_frequency=range(2, 7),
    ),
    _wording(
        "change_case:capital_word_frequency",
        "Fewer than {capital_frequency} words may be entirely in capitals (I and A count).",
        "Write less than {capital_frequency} words in nothing but capital letters, counting I and A.",
        fixed={"capital_relation": "less than"},
        capital_frequency=range(5, 9),
    ),
    _wording(
        "punctuation:no_comma",
        "Do it without a single comma.",
        "Leave out commas.",
        "The text must be free of commas.",
        "My comma key is broken, so please use no commas either.",
    ),
    _wording(
        "length_constraints:number_words",
        "Write at least {num_words} words.",
        "It should be {num_words} words long or longer.",
        "Fill no less than {num_words} words.",
        fixed={"relation": "at least"},
        num_words=lambda given: range(30, given.max_words + 1, 5),
    ),
    _wording(
        "length_constraints:number_words",
        "Stay below {num_words} words.",
        "It has to be shorter than {num_words} words.",
        "Use fewer than {num_words} words in total.",
        fixed={"relation": "less than"},
        num_words=lambda given: range(LEAST_WORDS, given.max_words + 1, 5),
    ),
    _wording(
        "length_constraints:number_sentences",
        "Write at least {num_sentences} sentences.",
        "I expect {num_sentences} sentences or more.",
        "Make it no less than {num_sentences} sentences long.",
        fixed={"relation": "at least"},
        num_sentences=range(2, 7),
    ),
    _wording(
        "length_constraints:number_sentences",
        "Get by with fewer than {num_sentences} sentences.",
        "It must have less than {num_sentences} sentences.",
        fixed={"relation": "less than"},
        num_sentences=range(3, 9),
    ),
    _wording(
        "length_constraints:number_paragraphs",
        "Write exactly {num_paragraphs} paragraphs and put a line with *** between one and the next.",
        "Divide the text into {num_paragraphs} paragraphs by the Markdown divider ***.",
        num_paragraphs=(2, 3, 4),
    ),
    _wording(
        "length_constraints:nth_paragraph_first_word",
        "Write exactly {num_paragraphs} paragraphs with a blank line between them; the {nth_paragraph} one opens with the word "
        '"{first_word}".',
        "Separate {num_paragraphs} paragraphs by blank lines (no more, no less), and let the {nth_paragraph} of them start "
        'with "{first_word}".',
        num_paragraphs=(2, 3),
        nth_paragraph={"first": 1, "second": 2},
        first_word=listed("meanwhile yesterday finally perhaps however nobody although sometimes"),
    ),
    _wording(
        "detectable_content:number_placeholders",
        "Leave at least {num_placeholders} gaps for the reader to fill in, each named in square brackets, like [date].",
        "Put {num_placeholders} or more placeholders such as [city] into it, in square brackets.",
        num_placeholders=(2, 3, 4),
    ),
    _wording(
        "detectable_content:postscript",
        "Close with a postscript on a new line that begins with {postscript_marker}",
        "Add an afterthought at the end, on a line that starts with {postscript_marker}",
        postscript_marker=("P.S.", "P.P.S."),
    ),
    _wording(
        "detectable_format:number_bullet_lists",
        "Include exactly {num_bullets} bullet points, each on its own line behind a * or a hyphen.",
        "Somewhere there should be a Markdown list of {num_bullets} bullets; no other bullet may occur.",
        num_bullets=(2, 3, 4),
    ),
    _wording(
        "detectable_format:constrained_response",
        'Say "My answer is yes." if you think so, "My answer is no." if you do not, and otherwise "My answer is maybe."',
        'Say "My answer is X." and put maybe, no or yes in place of the X.',
        'Tell me "My answer is no." or the same sentence with yes or maybe in place of no.',
    ),
    _wording(
        "detectable_format:number_highlighted_sections",
        "Emphasize at least {num_highlights} phrases by asterisks, *like these words*.",
        "Set {num_highlights} or more expressions in Markdown italics, between single asterisks (*so*).",
        num_highlights=(2, 3, 4),
    ),
    _wording(
        "detectable_format:multiple_sections",
        "Split it into {num_sections} parts with the headings {section_spliter} 1, {section_spliter} 2 and so on.",
        "Give it {num_sections} headings of the form {section_spliter} X, where X counts up from 1, and text under each.",
        section_spliter=("Section", "Part", "Chapter"),
        num_sections=(2, 3),
    ),
    _wording(
        "detectable_format:json_format",
        "Respond with one JSON object and nothing else.",
        "A program will parse your answer, so all of it must be valid JSON: an object with fields of your choice.",
        "Put everything into a JSON object, without a word outside of it.",
    ),
    _wording(
        "detectable_format:title",
        "Give it a title and set that between << and >>.",
        "Start with a heading in double angle brackets, like <<heading>>.",
        "It also needs a name, written <<like this>>.",
    ),
    _wording(
        "combination:two_responses",
        "Write two different versions, with a line of six asterisks (******) between them.",
        "I would like to choose between two different answers: separate them by ****** and by nothing else.",
    ),
    _wording(
        "combination:repeat_prompt",
        "Begin by copying the first sentence of this message word for word, and only then do what it says.",
        "Before anything else, say my first sentence again without any change; your answer follows after it.",
        prompt_to_repeat=lambda given: (given.request,),
    ),
    _wording(
        "startend:end_checker",
        'Let "{end_phrase}" be the very last words.',
        'Your text must end with exactly this: "{end_phrase}"',
        'Conclude with the sentence "{end_phrase}" and write nothing behind it.',
        end_phrase=(
            "That is the whole story.",
            "Now it is your turn.",
            "Thanks for staying until the end.",
            "Nothing more needs to be said.",
            "We will see about the rest.",
            "Until next time!",
            "What would you do?",
        ),
    ),
    _wording(
        "startend:quotation",
        "Enclose the entire text in double quotation marks.",
        'Put a " at the very beginning and another " at the very end.',
        "Everything you write should stand inside one pair of double quotes.",
    ),
)

KINDS = tuple(dict.fromkeys(wording.kind for wording in WORDINGS))
"""The ids of IFEval's 25 kinds in the verifier `ifeval`."""
NEED_LANGDETECT = frozenset(
    ("language:response_language", "change_case:english_capital", "change_case:english_lowercase")
)
"""The kinds that can only be judged with the package `langdetect`."""


def _table(text: str) -> Mapping[str, frozenset[str]]:
    rows = (line.partition(": ") for line in text.strip().splitlines())
    return {name: frozenset(others.split()) for name, _, others in rows}


# Names are the parts of ids after the colon. The first table lists kinds that contradict each other, are ambiguous together
# (does a title count as a paragraph?), or need the same place. For example, a text in capitals alone can't contain a given word
# that has small letters.
_APART = _table("""
english_capital: english_lowercase capital_word_frequency response_language multiple_sections postscript end_checker
english_lowercase: capital_word_frequency response_language multiple_sections postscript end_checker
response_language: existence frequency forbidden_words letter_frequency multiple_sections end_checker nth_paragraph_first_word
letter_frequency: existence frequency
number_words: number_sentences
number_sentences: number_paragraphs nth_paragraph_first_word number_bullet_lists multiple_sections
number_paragraphs: nth_paragraph_first_word multiple_sections
nth_paragraph_first_word: title postscript number_bullet_lists multiple_sections
title: quotation
end_checker: postscript quotation
""")
# The second table lists kinds that leave little room for other kinds, each with all kinds that it allows.
_ONLY_WITH = _table("""
constrained_response:\x20
json_format: existence frequency forbidden_words number_words
two_responses: existence forbidden_words no_comma response_language english_capital english_lowercase
repeat_prompt: existence no_comma title postscript number_placeholders number_bullet_lists number_highlighted_sections
""")


def compatible(kind: str, other: str) -> bool:
    """Whether one response can follow two instructions with any parameters, and both keep their meaning together."""
    names = [identifier.partition(":")[2] for identifier in (kind, other)]
    return kind != other and all(
        one not in _APART.get(two, ()) and (two not in _ONLY_WITH or one in _ONLY_WITH[two])
        for one, two in (names, names[::-1])
    )
