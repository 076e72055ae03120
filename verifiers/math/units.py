"""Units, currencies and counted nouns that may follow a number."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction

from verifiers.math.vocabulary import NO_NOUNS, NUMBER_WORDS, TENS

Dimension = tuple[tuple[str, int], ...]
_GENERAL = re.compile(r"units?(?:\^-?[0-9])?")


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit, as a factor of the base units of its dimension.

    A counted noun (`"students"`) has no dimension and is never compared.
    """

    dimension: Dimension = ()
    factor: Fraction = Fraction(1)
    label: str = ""
    noun: str = ""
    """Words after the unit of a measure: the `north` of `5 km north`."""

    @property
    def is_label(self) -> bool:
        """Whether this is a counted noun rather than a unit of measurement."""
        return not self.dimension

    @property
    def is_general(self) -> bool:
        """Whether this is just the word `units`, possibly with a power, which names neither a counted thing nor a measure."""
        return self.is_label and all(map(_GENERAL.fullmatch, self.label.partition(" of ")[0].split()))

    def power(self, exponent: int) -> Unit:
        """This unit raised to an integer power."""
        dimension = tuple((name, degree * exponent) for name, degree in self.dimension if degree * exponent)
        return Unit(dimension, self.factor**exponent, self.label, self.noun)

    def times(self, other: Unit) -> Unit:
        """The product of two units."""
        degrees = dict(self.dimension)
        for name, degree in other.dimension:
            degrees[name] = degrees.get(name, 0) + degree
        dimension = tuple(sorted((name, degree) for name, degree in degrees.items() if degree))
        noun = f"{self.noun} {other.noun}".strip()
        return Unit(dimension, self.factor * other.factor, f"{self.label} {other.label}".strip(), noun)


def _table() -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for dimension, factor, names in _UNITS:
        power = _POWERS_OF_LENGTH.get(dimension)
        for name in names.split():
            units[name] = Unit((("length", power),) if power else ((dimension, 1),), Fraction(factor), name)
    for name, dimension_, factor_ in _DERIVED:
        units[name] = Unit(dimension_, Fraction(factor_), name)
    for name in _WITH_MICRO:
        units[f"micro{name}"] = Unit(units[name].dimension, units[name].factor / 10**6, f"micro{name}")
    return units


# Dimension, size in the dimension's base unit, names (SI Brochure 9th edition; US customary units by NIST SP 811).
_UNITS = [
    ("length", "1", "m meter meters metre metres"),
    ("length", "1/100", "cm centimeter centimeters centimetre centimetres cms"),
    ("length", "1/1000", "mm millimeter millimeters millimetre millimetres"),
    ("length", "1000", "km kilometer kilometers kilometre kilometres kms"),
    ("length", "1/1000000000", "nm nanometer nanometers nanometre nanometres"),
    ("length", "0.0254", "in inch inches"),
    ("length", "0.3048", "ft foot feet"),
    ("length", "0.9144", "yd yard yards yds"),
    ("length", "1609.344", "mi mile miles"),
    ("mass", "1", "g gm gms gram grams gramme grammes"),
    ("mass", "1000", "kg kilogram kilograms kgs kilo kilos"),
    ("mass", "1/1000", "mg milligram milligrams"),
    ("mass", "1000000", "tonne tonnes"),
    ("mass", "453.59237", "lb lbs pound pounds"),
    ("mass", "28.349523125", "oz ounce ounces"),
    ("mass", "907184.74", "ton tons"),
    ("time", "1", "s sec secs second seconds"),
    ("time", "1/1000", "ms millisecond milliseconds"),
    ("time", "60", "min mins minute minutes"),
    ("time", "3600", "h hr hrs hour hours"),
    ("time", "86400", "day days"),
    ("time", "604800", "week weeks wk wks"),
    ("month", "1", "month months"),
    ("month", "12", "yr yrs year years"),
    ("volume", "0.001", "L l liter liters litre litres"),
    ("volume", "0.000001", "ml mL milliliter milliliters millilitre millilitres"),
    ("volume", "0.003785411784", "gal gallon gallons"),
    ("volume", "0.000946352946", "qt quart quarts"),
    ("volume", "0.000473176473", "pt pint pints"),
    ("volume", "0.0002365882365", "cup cups"),
    ("angle", "1", "deg degree degrees"),
    ("angle in radians", "1", "rad radian radians"),
    ("temperature in celsius", "1", "celsius °C"),
    ("temperature in fahrenheit", "1", "fahrenheit °F"),
    ("temperature in kelvin", "1", "K kelvin kelvins"),
    ("dollar", "1", "dollar dollars usd $"),
    ("dollar", "1/100", "cent cents ¢"),
    ("euro", "1", "euro euros eur €"),
    ("sterling", "1", "gbp £"),
    ("rupee", "1", "rupee rupees rs inr ₹"),
    ("yen", "1", "yen jpy ¥"),
    ("current", "1", "A amp amps ampere amperes"),
    ("frequency", "1", "Hz hertz"),
    ("frequency", "1000", "kHz"),
    ("energy", "1", "J joule joules"),
    ("energy", "1000", "kJ kilojoule kilojoules"),
    ("energy", "1.602176634e-19", "eV electronvolt electronvolts"),
    ("energy", "1/10000000", "erg ergs"),
    ("power", "1000000", "MW megawatt megawatts"),
    ("power", "1", "W watt watts"),
    ("power", "1000", "kW kilowatt kilowatts"),
    ("force", "1", "N newton newtons"),
    ("pressure", "1", "Pa pascal pascals"),
    ("potential", "1", "V volt volts"),
    ("charge", "1", "C coulomb coulombs"),
    ("magnetic flux density", "1", "T tesla teslas"),
    ("capacitance", "1", "F farad farads"),
    ("resistance", "1", "ohm ohms Omega"),
    ("amount", "1", "mol mole moles"),
    ("area", "4046.8564224", "acre acres"),
]
_POWERS_OF_LENGTH = {"area": 2, "volume": 3}
_SPEED: Dimension = (("length", 1), ("time", -1))
_DERIVED: list[tuple[str, Dimension, str]] = [
    ("mph", _SPEED, "0.44704"),
    ("kph", _SPEED, "5/18"),
    ("kmh", _SPEED, "5/18"),
    ("mpg", (("length", -2),), "1609344000000/3785411784"),
]
_WITH_MICRO = ["m", "s", "g", "L", "l", "F", "C", "A", "V", "W", "Pa", "mol"]
UNITS = _table()
CURRENCIES = frozenset((name, 1) for name in ("dollar", "euro", "sterling", "rupee", "yen"))
CURRENCY_SIGNS = "$€£¥₹¢"

# Letters that are units only if they are set as text; otherwise, they are symbols.
SINGLE_LETTER_UNITS = frozenset("mgshLNJKWV")
_DEGREE_WORDS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_AFTERWARDS = {"squared": 2, "cubed": 3}
MULTIPLES = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12}
_MAX_NOUN_WORDS = 5
# Numbers, parts and multiples in words, which change the value of the number before them.
_NUMERAL = re.compile(
    rf"^(?:{'|'.join((*NUMBER_WORDS, *TENS))}|fails|dozen)$"
    r"|illions?$|(?:teen|elf|even|tie|hundred|thousand|illion)ths?$|[a-z]upled$"
)


@dataclass(frozen=True, slots=True)
class UnitWord:
    """One word of a unit, with its exponent; `divides` is true after a slash or `per`."""

    word: str
    exponent: int = 1
    divides: bool = False


def read_unit(words: tuple[UnitWord, ...]) -> Unit | None:
    """Read the words after a number as a unit or a counted noun; None if they name neither."""
    if not words or words[0].word.lower() in _AFTERWARDS:
        return None
    if any(word.word.lower() in NO_NOUNS and word.word.lower() not in _AFTERWARDS for word in words):
        return None
    if any(_NUMERAL.search(word.word.lower()) for word in words):
        return None
    unit, last, degree = Unit(), Unit(), 1
    nouns: list[str] = []
    for entry in words:
        name = entry.word.lower()
        general = _GENERAL.fullmatch(name) is not None
        if name in _DEGREE_WORDS:
            degree = _DEGREE_WORDS[name]
        elif name in _AFTERWARDS:
            if nouns and nouns[-1].startswith("unit"):
                nouns[-1] += f"^{_AFTERWARDS[name]}"
            unit = unit.times(last.power(_AFTERWARDS[name] - 1))
        elif general and degree * entry.exponent != 1:
            nouns.append(f"{name}^{degree * entry.exponent}")
            degree = 1
        elif entry.word in UNITS or (len(name) > 2 and name in UNITS):  # only abbreviations are case-sensitive
            known = UNITS.get(entry.word) or UNITS[name]
            last = known.power(entry.exponent * degree * (-1 if entry.divides else 1))
            unit, degree = unit.times(last), 1
        else:
            nouns += [{2: "square", 3: "cubic"}[degree]] if degree > 1 else []  # "6 square tiles"
            nouns.append(name if entry.exponent == 1 else f"{name}^{entry.exponent}")
            degree = 1
    if len(nouns) > _MAX_NOUN_WORDS:
        return None
    noun = " ".join(nouns)
    return replace(unit, noun=noun) if unit.dimension else Unit(label=noun or "units")
