"""Twenty questions to find a thing. Each question names a property, and the answer is yes or no."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar, NamedTuple

from rlvr_envs.envs import TaskEnv, TaskSpec, procedural_task
from rlvr_envs.games import GameVerifier, Move, game_rules
from rlvr_envs.procedural.base import DIGITS, GeneratedProblem, ProblemShape, ProceduralDataset
from verifiers import Between, Problem

_TABLE = """
dog: animal legs fur tame
mouse: animal legs fur small
wolf: animal legs fur
bear: animal legs fur big
horse: animal legs fur tame big
cow: animal legs fur tame big food
bat: animal legs fur small flies
eagle: animal legs flies eggs
chicken: animal legs tame eggs food
duck: animal legs flies eggs water food
bee: animal legs flies eggs small tame
ant: animal legs eggs small
butterfly: animal legs flies eggs small
frog: animal legs eggs small water
crocodile: animal legs eggs big water
snake: animal eggs
whale: animal water big
salmon: animal water eggs food
turtle: animal legs eggs water
oak: plant big
rose: plant
daisy: plant small
apple: plant food small sweet
carrot: plant food small
pumpkin: plant food
bread: food
honey: food sweet
car: machine big wheels metal
train: machine big wheels metal electric
bicycle: wheels metal
aeroplane: machine big wheels metal flies
ship: machine big metal water
kite: flies
piano: music big
violin: music
flute: music metal
radio: machine electric music
phone: machine electric small
lamp: electric
clock: machine
key: metal small
sword: metal
anchor: metal water
shoe: worn
ring: worn metal small
glove: worn small
football: sport
skates: sport worn wheels
surfboard: sport water
table: legs
bridge: big
pencil: small
book:
"""
THINGS: Mapping[str, frozenset[str]] = MappingProxyType(
    {thing: frozenset(rest.split()) for thing, _, rest in (line.partition(":") for line in _TABLE.split("\n") if line)}
)
"""The things to guess, each with its properties."""
PROPERTIES = tuple(sorted(set().union(*THINGS.values())))
_WORD = re.compile(r"[a-z]+")
_UNCLEAR = "ask one thing"


class SecretThing(NamedTuple):
    """The thing to guess, and the number of questions."""

    thing: str
    questions: int


def play(reference: SecretThing, moves: Sequence[str]) -> Move:
    """Answer the last question, which names one property or one thing."""
    named = {word for word in _WORD.findall(moves[-1].lower()) if word in THINGS or word in PROPERTIES}
    if named == {reference.thing}:
        return Move("right", over=True, score=1.0)
    if len(moves) >= reference.questions:
        return Move("lost", over=True)
    if len(named) != 1:
        return Move(_UNCLEAR)
    (word,) = named
    return Move(f"{word} {'yes' if word in THINGS[reference.thing] else 'no'}")


@dataclass(frozen=True)
class TwentyQuestions(ProceduralDataset[str]):
    """Find the thing that somebody is thinking of.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems, each different; for the default see `ProceduralDataset`.
        questions: Number of questions, including guesses.
    """

    name: ClassVar[str] = "twenty_questions"
    verifier: ClassVar[tuple[str, Mapping[str, object]]] = (
        "rlvr_envs.tasks.twenty_questions:TwentyQuestionsVerifier",
        {},
    )

    hidden: ClassVar[bool] = True

    questions: Annotated[int, Between(1, 1_000)] = 20

    def _describe(self) -> ProblemShape:
        return ProblemShape(
            difficulty=f"{self.questions}-questions",
            max_prompt_bytes=len(self._prompt),
            max_answer_bytes=_LONGEST,
            prompt_alphabet=self._prompt + DIGITS + "\n" + string.ascii_lowercase,
            answer_alphabet=string.ascii_lowercase + " ?",
        )

    @property
    def _prompt(self) -> str:
        return f"{self.questions} questions, what is it? {' '.join(PROPERTIES)}:"

    @property
    def _space(self) -> int:
        return len(THINGS)

    def _at(self, code: int) -> str:
        return sorted(THINGS)[code]

    def in_words(self, problem: Problem) -> str:
        """The rules of the game in words, and its start."""
        return (
            f"I think of a thing. Find out which in at most {self.questions} turns. Each of your turns asks whether the thing "
            "has "
            'one property, which I answer with "yes" or "no", or names the thing. Name one property or one thing a turn, and '
            f"write that word alone. The properties are: {', '.join(PROPERTIES)}. What is your first question?"
        )

    def _task(self, content: str) -> GeneratedProblem:
        return GeneratedProblem(self._prompt, SecretThing(content, self.questions), content)


_LONGEST = max(map(len, (*THINGS, *PROPERTIES)))


class TwentyQuestionsVerifier(GameVerifier):
    """Correct if the thing was named in time."""

    def __init__(self) -> None:
        super().__init__(play)


def _room(dataset: TwentyQuestions) -> tuple[int, int]:
    longest = max(_LONGEST + len(" yes"), len(_UNCLEAR)) + len("\n\n")
    return dataset.questions * (_LONGEST + len("is it a ?") + 1), (dataset.questions - 1) * longest


class TwentyQuestionsEnv(TaskEnv):
    """Find the thing that somebody is thinking of, by questions with the answer yes or no.

    Spaces, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Each turn of the policy is a question or a guess. A question names one of the properties in the prompt (`animal`, `is it
    big?`), and the answer is the property with `yes` or `no`. A guess names a thing. If a turn names no property or thing, or
    more than one, the answer is `ask one thing`; this turn counts as a question, too. The answers come from the environment's
    own table (`rlvr_envs.tasks.twenty_questions.THINGS`), in which no two things have the same properties. The things of the
    train and test splits are disjoint. A player who knows the table and halves the remaining things needs at most 14 questions.

    | property | yes if it |
    |---|---|
    | `animal`, `plant`, `machine` | is one, or a part of one |
    | `big`, `small` | is bigger than a person, or fits in a hand |
    | `flies`, `water` | flies, or lives or is used in water |
    | `legs`, `fur`, `wheels` | has them |
    | `eggs` | lays them |
    | `tame` | is kept by people |
    | `food`, `sweet` | is eaten by people, or tastes sweet |
    | `metal` | is mostly made of it |
    | `electric` | needs electricity |
    | `music`, `sport` | is made for it |
    | `worn` | is worn |

    ## Starting State
    The number of questions, and the properties.

    ## Reward
    1 if the thing is named in time, else 0.

    ## Episode End
    Terminates when the thing is named or the questions are used up; truncates if `max_new_tokens` are used up first.

    ## Arguments
    All of `rlvr_envs.Settings`, `seed` and `size` of the data set, and for the difficulty `questions` (20). Defaults:
    `split="train"`, `max_new_tokens` and `max_inserted_tokens` as many as a game needs.
    """

    task: ClassVar[TaskSpec] = procedural_task(
        TwentyQuestions, sizes={"train": 48, "test": 5}, max_new_tokens=400, rules=game_rules(play, _room)
    )
