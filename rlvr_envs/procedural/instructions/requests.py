"""The requests: the kind of text, its tone and its topic.

Each request is one sentence without a comma, so that an answer can repeat it under any instruction. Instructions demand or
forbid a topic's words, so the topic's requests do not contain them as separate words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


def listed(text: str) -> tuple[str, ...]:
    """Split a text into its words."""
    return tuple(text.split())


TONES = listed("friendly playful cheerful calm warm witty lively thoughtful straightforward serious")


@dataclass(frozen=True)
class Topic:
    """The subject of a request."""

    subject: str
    words: tuple[str, ...]
    """Six words that a text on the subject is likely to use."""
    forms: tuple[str, ...]
    """Requests with the slots `{tone}` and `{subject}`."""
    questions: tuple[str, ...]
    """Questions with the slot `{subject}` and the possible answers yes, no and maybe."""


def _topics(table: str, forms: tuple[str, ...], questions: tuple[str, ...]) -> Iterator[Topic]:
    for line in table.strip().splitlines():
        subject, _, words = line.partition(": ")
        yield Topic(subject, listed(words), forms, questions)


_PASTIME_FORMS = (
    "Write a {tone} note to a cousin who would like to start {subject}.",
    "Give a {tone} explanation of {subject} to somebody who has never tried it.",
    "Write a {tone} poem about {subject}.",
    "Write a {tone} advertisement for an evening class on {subject}.",
    "Make a {tone} plan for a first month of {subject}.",
    "Write a {tone} diary entry about a first attempt at {subject}.",
    "Write a {tone} speech in praise of {subject}.",
    "Tell a {tone} story about two sisters who quarrel over {subject}.",
    "Write a {tone} e-mail that asks a local club for help with {subject}.",
    "Give {tone} advice on mistakes that people make when {subject}.",
    "Write a {tone} conversation between a grandfather and his grandson about {subject}.",
    "Write a {tone} review of an imaginary book on {subject}.",
    "Write the {tone} opening of a radio program about {subject}.",
    "Write a {tone} toast to a colleague who is known for {subject}.",
)
_PASTIME_QUESTIONS = (
    "Is {subject} a good pastime for a busy student?",
    "Can somebody with little money take up {subject}?",
    "Could a child of ten learn {subject} in one summer?",
)
_PASTIMES = """
growing tomatoes on a balcony: water sun soil seeds ripe patience
keeping bees on a flat roof: honey hive bloom veil smoke queen
baking sourdough bread: flour starter oven crust dough salt
restoring old bicycles: chain rust wrench brake paint wheel
watching birds at dawn: binoculars feathers silence nest robin morning
learning to juggle: rhythm hands practice toss balance drop
folding paper animals: crease crane corner square patient wing
brewing ginger beer: bottle sugar yeast bubbles spice fizz
playing chess in the park: knight opponent bench pawn strategy clock
knitting winter socks: yarn needle heel stitch wool pattern
mending torn clothes: thread patch button fabric hem scissors
swimming in cold lakes: breath shiver towel courage shore wave
collecting fossils on the beach: hammer shell ancient cliff tide stone
writing letters by hand: ink envelope stamp paper address pen
photographing insects: lens focus petal beetle tripod light
making cheese at home: milk rind curd cellar mold texture
learning sign language: gesture fingers deaf fluent hands expression
dancing the tango: partner step embrace music floor tempo
sketching strangers on trains: pencil window shadow notebook face journey
hiking with a donkey: trail hooves stubborn saddle valley carrot
building ship models: glue mast sail tweezers deck plank
cooking for a large family: pot onions leftovers appetite soup table
repairing wristwatches: gear spring tweezers crystal seconds tiny
singing in a choir: voice alto breath harmony conductor concert
stargazing from a rooftop: telescope planet moon darkness comet galaxy
training a rescue dog: leash treat trust bark reward patience
keeping a dream journal: sleep pillow memory night symbol wake
roasting coffee beans: aroma crack smoke flavor roast cup
foraging for mushrooms: basket forest knife edible poisonous moss
playing the accordion: bellows keys melody folk squeeze waltz
pressing wild flowers: meadow album petals dry fragile blossom
fixing household leaks: pipe faucet bucket drip plumber seal
racing model rockets: launch engine parachute altitude countdown fins
carving wooden spoons: blade grain birch handle curve sand
running before breakfast: shoes mile sweat energy dawn stretch
volunteering at a food bank: hunger shelf donation dignity crates kindness
learning Latin: grammar verb ancient vocabulary translate Rome
making pottery: clay kiln glaze wheel bowl fingers
traveling by night train: berth ticket station border luggage conductor
growing bonsai trees: prune wire pot root miniature branch
"""

_THING_FORMS = (
    "Write a {tone} product description of {subject}.",
    "Write a {tone} customer review of {subject}.",
    "Write a {tone} letter of complaint to the maker of {subject}.",
    "Write a {tone} thank-you card for {subject} that arrived as a gift.",
    "Tell a {tone} story in which {subject} goes missing.",
    "Write a {tone} riddle whose answer is {subject}.",
    "Write {tone} instructions for using {subject} for the first time.",
    "Write a {tone} classified ad that offers {subject} for sale.",
    "Describe in a {tone} way how {subject} changes the life of a family.",
    "Write a {tone} text message to a friend who wants to borrow {subject}.",
    "Write a {tone} social media post about {subject}.",
    "Write a {tone} monologue spoken by {subject}.",
    "Write a {tone} reply to a customer who asks how to look after {subject}.",
    "Write a {tone} radio commercial for {subject}.",
)
_THING_QUESTIONS = (
    "Would {subject} please a retired teacher as a gift?",
    "Is {subject} worth repairing when it breaks?",
    "Should a young couple spend a week's wages on {subject}?",
)
_THINGS = """
a folding kayak: paddle river trunk lake float light
a solar lamp: battery sun evening switch glow charge
a secondhand piano: keys tune melody pedal wood concert
a cast iron pan: heat oil rust eggs heavy stove
a talking alarm clock: morning snooze voice button sleep loud
a pair of waterproof boots: mud puddle rain leather laces dry
a pocket dictionary: word page spelling language meaning translate
a robot vacuum cleaner: dust carpet corner battery floor noise
a hand-cranked radio: signal storm antenna news crank station
a bamboo toothbrush: plastic bristles teeth smile compost mint
a tiny greenhouse: seeds glass warmth herbs spring sprout
an electric cargo bicycle: battery hill groceries pedal helmet brake
a chess set made of glass: knight board fragile queen pawn shelf
a camping hammock: rope tree breeze nap forest knot
a noise-canceling headset: silence music office plane ear comfort
a cuckoo clock: bird hour wall pendulum wood tick
a leather notebook: page ink pen thoughts pocket binding
a raincoat for dogs: puddle paws wet tail hood walk
a sewing machine: thread needle fabric pedal hem stitch
a smart bird feeder: camera seeds sparrow garden squirrel wings
a wooden sled: snow hill winter rope speed mittens
a travel mug: coffee lid spill commute sip steam
a typewriter from the attic: ribbon keys ink dust paper carriage
a globe with a lamp inside: ocean country light desk map continent
a homemade quilt: patch winter blanket cotton color needle
a telescope for beginners: moon planet lens tripod stars night
a bread machine: flour yeast crust kitchen loaf smell
a magnetic spice rack: pepper kitchen jar fridge cinnamon label
a pocket umbrella: storm wind drop dry street fold
a self-watering flower pot: root leaf soil balcony vacation bloom
a board game about pirates: treasure dice island captain map crew
a pedal car: race wheel garage paint driver horn
a ceramic teapot: leaves pour steam cup handle guest
an inflatable sofa: air guest patch pump party comfort
a portable projector: movie wall screen cable popcorn light
a set of juggling pins: practice circus toss catch hands balance
a wind-up music box: melody dancer spring lid tiny key
a walking stick with a compass: trail north hiker path forest grip
a water filter bottle: stream thirst clean hiker plastic drink
an heirloom rocking chair: porch wood creak cushion memory evening
"""

_PLACE_FORMS = (
    "Write a {tone} postcard from {subject}.",
    "Write a {tone} guidebook entry on {subject}.",
    "Write a {tone} invitation to {subject}.",
    "Write a {tone} news report about {subject}.",
    "Tell a {tone} story that takes place at {subject}.",
    "Write a {tone} speech for the opening of {subject}.",
    "Make a {tone} plan for a class trip to {subject}.",
    "Write a {tone} letter that asks the mayor for support of {subject}.",
    "Write a {tone} poem about {subject}.",
    "Write a {tone} diary entry of a helper at {subject}.",
    "Write a {tone} message that persuades a shy friend to come along to {subject}.",
    "Give a {tone} description of the sounds and smells of {subject}.",
    "Write {tone} tips for parents who take small children to {subject}.",
    "Write a {tone} song about {subject}.",
)
_PLACE_QUESTIONS = (
    "Is {subject} worth a visit on a rainy day?",
    "Would a shy person enjoy {subject}?",
    "Should a town spend public money on {subject}?",
)
_PLACES = """
a night market by the river: lantern noodles crowd stall boat spice
a library with a cat: shelf purr silence novel whiskers reader
a lighthouse turned into a museum: stairs lamp keeper storm view ship
a village fair: carousel pie ribbon music goat prize
an open-air cinema: blanket screen stars popcorn night film
a railway museum: engine steam whistle track platform coal
a kite festival: wind string sky tail color crowd
a botanical garden: fern orchid path bench greenhouse leaf
a repair workshop for neighbors: toaster screw solder tools broken volunteer
a floating bookshop: deck novel canal anchor page captain
a mountain hut: soup snow trail bunk view boots
a science fair: volcano magnet judge poster experiment prize
an underground concert hall: stage drum echo ticket singer crowd
a harvest dinner in a barn: pumpkin candle bread table cider straw
a skate park under a bridge: ramp helmet wheels graffiti trick concrete
a farm for retired horses: hay stable gallop mane apple meadow
a winter swimming contest: ice medal towel shiver sauna brave
a puppet theater: string curtain stage laughter wood voice
a tide pool: crab starfish rock salt wave shell
a street of bakeries: cake butter window queue oven sugar
a chess tournament: clock knight trophy silence queen rival
a flea market: bargain lamp coin vinyl dust seller
a treehouse hotel: ladder branch owl window forest sleep
a community garden: compost tomato bench spade harvest bee
a planetarium: star dome comet dark seat galaxy
a lantern parade: candle drum costume street glow night
a desert observatory: telescope sand dome silence sky astronomer
a ferry crossing: wave deck gull horn island wind
a pancake breakfast at the fire station: syrup hose engine butter siren helmet
a sculpture trail: bronze path forest shape artist map
a storytelling evening: fireside tale voice chair laughter legend
a marathon along the coast: runner medal shoes finish sea water
a hot spring: steam towel rock bath mineral relax
an ice cream factory: vanilla cone spoon freezer cherry flavor
a school for circus arts: trapeze juggler rope clown balance net
a bird sanctuary: nest heron feather marsh binoculars wing
a medieval castle: tower knight moat sword gate banner
a robot competition: sensor wheel battery judge code engineer
a vineyard at harvest time: grape basket barrel hill sunset cellar
a neighborhood block party: grill music table lemonade laughter chairs
"""

TOPICS = (
    *_topics(_PASTIMES, _PASTIME_FORMS, _PASTIME_QUESTIONS),
    *_topics(_THINGS, _THING_FORMS, _THING_QUESTIONS),
    *_topics(_PLACES, _PLACE_FORMS, _PLACE_QUESTIONS),
)


def longest_request() -> str:
    """A text at least as long as the longest request."""
    texts = [text for topic in TOPICS for text in (*topic.forms, *topic.questions)]
    slots = {"tone": max(TONES, key=len), "subject": max((topic.subject for topic in TOPICS), key=len)}
    return max((text.format(**slots) for text in texts), key=len)
