"""IFBench: instructions that are tasks of their own, with one kind of right answer."""

from __future__ import annotations

import csv
import datetime
import io
import re
import unicodedata
from itertools import pairwise

from verifiers.ifeval.catalogue import instruction
from verifiers.ifeval.text import lines, listed, sentences, tokens

_MULTIPLES = ["14", "21", "28", "35", "42", "49"]
_QUESTION = re.compile(r"^[^\w\n]*Question(?:\s*\d+)?\s*[.):;-]?\W*", re.MULTILINE)
_OPTION = re.compile(r"\W*[A-Ea-e][.):]\s*\S")
_QUESTIONS, _OPTIONS = 4, 5
_LIFETIME = (datetime.date(1769, 8, 15), datetime.date(1821, 5, 5))

# Each country of Africa with the names that it goes by, as `_plain` writes them.
_AFRICA = listed(
    "algeria,angola,benin,botswana,burkina faso,burundi,cabo verde/cape verde,cameroon,central african republic,chad,"
    "comoros,congo/republic of the congo/congo republic/congo republic of the/congo brazzaville/republic of congo,"
    "democratic republic of the congo/congo democratic republic of the/dr congo/drc/congo kinshasa,"
    "djibouti,egypt,equatorial guinea,eritrea,eswatini/swaziland,ethiopia,gabon,gambia/the gambia/gambia the,ghana,"
    "guinea,guinea bissau,ivory coast/cote d ivoire/cote divoire,kenya,lesotho,liberia,libya,madagascar,malawi,mali,"
    "mauritania,mauritius,morocco,mozambique,namibia,niger,nigeria,rwanda,sao tome and principe,senegal,seychelles,"
    "sierra leone,somalia,south africa,south sudan,sudan,tanzania,togo,tunisia,uganda,zambia,zimbabwe",
    separator=",",
)
_COUNTRY = {name: number for number, names in enumerate(_AFRICA) for name in names.split("/")}

# The capitals north of 45 degrees, from north to south.
_CAPITALS = listed(
    "reykjavik,helsinki,oslo,tallinn,stockholm,riga,moscow,copenhagen,vilnius,minsk,dublin,berlin,amsterdam,warsaw,"
    "london,brussels,kyiv/kiev,prague,luxembourg/luxembourg city,paris,vienna,bratislava,budapest,vaduz,chisinau,"
    "bern/berne,ljubljana,zagreb",
    separator=",",
)


def _plain(name: str) -> str:
    """A name in lower case without accents, its words separated by single spaces."""
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return " ".join(re.findall("[a-z]+", letters.lower()))


@instruction("custom:multiples")
def _multiples(response: str) -> bool:
    return re.findall(r"\d+", response) == _MULTIPLES


@instruction("custom:mcq_count_length")
def _questions(response: str) -> bool:
    before, *questions = _QUESTION.split(response)
    if before.strip() or len(questions) != _QUESTIONS:
        return False
    options = [sum(map(bool, map(_OPTION.match, lines(question)))) for question in questions]
    lengths = [len(_asked(question)) for question in questions]
    return set(options) == {_OPTIONS} and all(earlier < later for earlier, later in pairwise(lengths))


def _asked(question: str) -> str:
    """The text before the first option of a question."""
    asked: list[str] = []
    for line in lines(question):
        if _OPTION.match(line):
            break
        asked.append(line.strip())
    return " ".join(asked)


@instruction("custom:reverse_newline")
def _africa(response: str) -> bool:
    names = [name for line in lines(response) if (name := _plain(line))]
    numbers = [_COUNTRY.get(name) for name in names]
    first = next((position for position, number in enumerate(numbers) if number is not None), 0)
    listed = names[first:]
    complete = None not in numbers[first:] and sorted(map(_number, listed)) == list(range(len(_AFRICA)))
    return complete and listed == sorted(listed, reverse=True)


def _number(name: str) -> int:
    return _COUNTRY[name]


@instruction("custom:word_reverse")
def _backward_words(response: str) -> bool:
    backward = " ".join(token.lower() for token in reversed(tokens(response)))
    return len(sentences(response)) == 1 and re.search(r"\bbald eagle\b", backward) is not None


@instruction("custom:character_reverse")
def _backward_letters(response: str) -> bool:
    return "elgae dlab" in response.lower()


@instruction("custom:sentence_alphabet")
def _alphabet_story(response: str) -> bool:
    initials = [found[0][0].lower() if (found := tokens(sentence)) else "" for sentence in sentences(response)]
    return "".join(initials) == "abcdefghijklmnopqrstuvwxyz" and len(initials) == 26


@instruction("custom:european_capitals_sort")
def _capitals(response: str) -> bool:
    names = [_plain(name) for name in response.strip().rstrip(",").split(",")]
    return len(names) == len(_CAPITALS) and all(
        name in known.split("/") for name, known in zip(names, _CAPITALS, strict=True)
    )


@instruction("custom:csv_city")
def _cities(response: str) -> bool:
    rows = list(csv.reader(io.StringIO("\n".join(lines(response))), skipinitialspace=True))
    header = ["ID", "Country", "City", "Year", "Count"]
    return len(rows) == 8 and rows[0] == header and all(len(row) == len(header) and all(row) for row in rows)


@instruction("custom:csv_special_character")
def _special_character(response: str) -> bool:
    rows = [_fields(line.strip(), ",") for line in lines(response)]
    header = ["ProductID", "Category", "Brand", "Price", "Stock"]
    if len(rows) != 15 or [field.strip('"') for field in rows[0]] != header or any(len(row) != 5 for row in rows):
        return False
    return any(re.search(r'".*[^\w\s"].*"', field) for row in rows[1:] for field in row)


@instruction("custom:csv_quotes")
def _quoted_fields(response: str) -> bool:
    rows = [_fields(line.strip(), "\t") for line in lines(response)]
    header = ['"StudentID"', '"Subject"', '"Grade"', '"Semester"', '"Score"']
    quoted = all(len(row) == 5 and all(re.fullmatch('"(?:[^"]|"")*"', field) for field in row) for row in rows)
    return len(rows) == 4 and rows[0] == header and quoted


def _fields(line: str, delimiter: str) -> list[str]:
    """The fields of a line of CSV, with their quotes."""
    pattern = rf'((?:"(?:[^"]|"")*")|[^"{delimiter}]*)(?:{delimiter}|\Z)'
    fields, position = [], 0
    while position <= len(line):
        match = re.compile(rf"[ ]*+{pattern}").match(line, position)
        if match is None:
            return []
        fields.append(match[1].strip())
        if match.end() == len(line) and not match[0].endswith(delimiter):
            break
        position = match.end()
    return fields


@instruction("custom:date_format_list")
def _battles(response: str) -> bool:
    return all(map(_in_lifetime, response.strip().rstrip(",").split(",")))


def _in_lifetime(date: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", date.strip()):
        return False
    try:
        return _LIFETIME[0] <= datetime.date.fromisoformat(date.strip()) <= _LIFETIME[1]
    except ValueError:
        return False
