"""Common English words for word games."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar, NamedTuple

from rlvr_envs.procedural.base import ProceduralDataset
from verifiers import Between

_WORDS = """
able acid aunt back bake ball band barn bath bear bell bird blue boat bone book bowl bulb cage cake calm card cave city
clay club coat coin cold cook corn crab crow dark dawn deer desk dish door drum duck dust east edge face farm fast film
fire fish five flag foam folk fork frog gate gift girl goal goat gold hair half hand harp hawk help hill home hook horn
iron item jazz joke jump keen king kite knee lake lamb lamp leaf lend lily lion loaf loud luck mask meal milk mind mint
moon nail near nest nine note oven pace palm park pear pink pipe plum pond quay rain rice ring road roof rope rose sail
salt sand seal seed ship silk snow soap song star swan tail team tent tide tree tube twig vase very view walk wave well
west wind wing wolf wool yard year zero zone
about above actor adult agent alarm album alive among angle ankle apple april apron arena arrow atlas attic award bacon
badge basic basil beach beard beast bench berry birth black blade blame blank blend block board bonus boots brain brand
brave bread brick bride brief bring broom brown brush build bunch cabin cable camel canal candy cargo carol chain chair
chalk charm chart cheek chess chest chief child china choir clean clerk cliff climb clock cloth cloud clown coach coast
cocoa color comet coral couch count cover crane cream crown crust curve daily dairy dance depth diary dough dozen drain
dream dress drift drink eagle early earth eight elbow empty enjoy entry equal event exact extra fable fairy faith favor
feast fence fever field fifty final flame fleet flock flood floor flour fluid focus forge found frame fresh frost fruit
funny giant glass globe glove goose grace grain grand grape grass green group guard guest guide habit happy heart heavy
hedge honey horse hotel house human humor igloo image inbox index ivory jelly jewel joint judge juice kayak kiosk knife
label ladle large laser laugh layer lemon level light limit linen liver lobby local lucky lunch magic major maple march
match maybe medal melon mercy metal meter model money month moral motor mount mouse mouth movie music naval nerve never
night noble noise north novel nurse ocean olive onion opera orbit order other otter outer owner panda panel paper party
patch pause peace peach pearl pedal penny petal phone photo piano piece pilot pizza place plain plane plant plate point
polar porch pound power press price pride prize proof proud pulse puppy queen quick quiet quilt radar radio ranch rapid
raven reach ready reply rider ridge river robin robot rough round route royal rugby ruler salad sauce scale scarf scene
score scout sense serve seven shade shape share shark sharp sheep sheet shelf shell shirt shore short shout skate skill
skirt sleep slice slope small smart smile smoke snack snail snake solar solid sound south space spark spice spoon sport
squad stage stair stamp state steam steel stick stone stool store storm story stove straw sugar sunny sweet swing sword
table taste teach thank theme thick thief thing thumb tiger title toast today token tooth topic torch total tower track
trade trail train treat trick truck trust tulip uncle under union upper urban usual valid value vapor video villa vinyl
viola virus visit vital voice voter wagon waist watch water whale wheat wheel white whole width woman world wrist yacht
young youth zebra
almond anchor animal answer artist autumn badger bakery ballet bamboo banana barrel basket beaver bottle branch breeze
bridge bright bronze bubble bucket butter button camera candle canyon carpet carrot castle cattle cellar cheese cherry
circle circus clever coffee copper corner cotton cousin cradle crayon dancer desert dinner doctor dragon driver engine
father finger flower forest friend frozen future galaxy garden garlic ginger guitar hammer harbor hockey hunter island
jacket jungle kettle kitten ladder lesson letter lizard marble market meadow mirror monkey mother muscle museum napkin
nature needle nephew number office orange oyster palace parrot pebble pencil pepper person pillow planet pocket potato
puzzle rabbit ribbon rocket saddle salmon school season secret shadow silver singer sister spider spring square stable
street string summer sunset tablet temple throat ticket tomato travel tunnel turtle valley velvet violin walnut window
winter wizard yellow zipper
balloon bedroom bicycle blanket cabbage captain century chicken chimney compass cottage country dolphin drawing evening
factory feather fiction gallery giraffe grammar gravity harvest history holiday journey kingdom kitchen lantern leather
library lobster machine meeting monster morning mustard mystery officer orchard package painter pancake passage peacock
penguin picture pottery printer pumpkin rainbow sausage science seaside shelter station sunrise teacher theater thunder
traffic trumpet village volcano weather whisper
"""


def _by_length() -> Mapping[int, tuple[str, ...]]:
    words = sorted(set(_WORDS.split()))
    return MappingProxyType({n: tuple(word for word in words if len(word) == n) for n in sorted({*map(len, words)})})


WORDS = _by_length()
"""The words by number of letters, in alphabetical order. All letters are from a to z."""


class SecretWord(NamedTuple):
    """A word to guess, and the number of tries."""

    word: str
    tries: int


@dataclass(frozen=True)
class WordDataset(ProceduralDataset[str]):
    """Words to guess.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems, each different; for the default see `ProceduralDataset`.
        length: Number of letters of the word, from 4 to 7.
    """

    hidden: ClassVar[bool] = True

    length: Annotated[int, Between(min(WORDS), max(WORDS))] = 5

    @property
    def _space(self) -> int:
        return len(WORDS[self.length])

    def _at(self, code: int) -> str:
        return WORDS[self.length][code]
