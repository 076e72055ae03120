"""Generated prompts with verifiable instructions of the 25 kinds of IFEval (Zhou et al. 2023, arXiv:2311.07911)."""

from __future__ import annotations

import functools
import importlib.util
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from rlvr_envs.envs import TaskEnv, TaskSpec
from rlvr_envs.procedural.base import GeneratedProblem, ProblemShape, ProceduralDataset
from rlvr_envs.procedural.instructions import (
    KINDS,
    LEAST_WORDS,
    NEED_LANGDETECT,
    TONES,
    TOPICS,
    WORDINGS,
    Draws,
    Given,
    compatible,
    longest_request,
)
from verifiers import Between, InvalidArgumentError, check_types, missing_dependency, unknown_name

_QUESTION = "detectable_format:constrained_response"
"""The kind of instruction that fits only questions."""
_PRESETS: Mapping[str, tuple[str, ...]] = {
    "basic": tuple(kind for kind in KINDS if kind not in NEED_LANGDETECT),
    "all": KINDS,
}
_LAYOUTS = (
    ("{request} {instructions}", " "),
    ("{request}\n\n{instructions}", " "),
    ("{request}\n\nKeep to this:\n- {instructions}", "\n- "),
    ("{request}\n\n{instructions}", "\n"),
)
"""The layouts of a prompt, each with the text between two instructions."""
_CHARACTERS = string.digits + string.ascii_letters + string.punctuation + " \n"
_CODES = 2**128
"""Number of codes, which is much larger than the number of prompts, so that each choice is nearly uniform."""


@dataclass(frozen=True)
class InstructionPrompt:
    """A request with its instructions."""

    prompt: str
    request: tuple[str, str]
    """The form and the subject of the request."""
    instructions: Mapping[str, Mapping[str, object]]
    """The parameters of each instruction, by the instruction's id."""


@dataclass(frozen=True)
class Instructions(ProceduralDataset[InstructionPrompt]):
    """Requests for texts, such as a postcard or a product description, with instructions for the text.

    A short response can follow all instructions of a prompt together. A request belongs to only one split, whatever its tone
    and instructions.

    Args:
        split: `"train"` or `"test"`.
        seed: Seed of the whole data set, at least 0.
        size: Number of problems, each different; for the default see `ProceduralDataset`.
        instructions: Maximum number of instructions of a prompt, from 1 to 3. Some kinds are compatible with few others.
        kinds: Kinds of instructions, as one text or a sequence of texts: an id of IFEval such as `"punctuation:no_comma"`, the
            part of ids before the colon, such as `"keywords"`, or a preset. `"basic"` has the 22 kinds that are judged without
            another package, and `"all"` has all 25. Three kinds need the package `langdetect`: the language of a response, and
            English in capitals or small letters.
        max_words: Largest number of words that an instruction may demand or set as a limit, from 40 to 1000. A word may take
            several tokens, especially in capitals and in languages other than English.

    Raises:
        UnknownNameError: If there is no such kind.
        MissingDependencyError: If a kind needs `langdetect` and this package is not installed.
    """

    name: ClassVar[str] = "instructions"
    verifier: ClassVar[tuple[str, Mapping[str, object]]] = ("ifeval", {})

    instructions: Annotated[int, Between(1, 3)] = 3
    kinds: str | Sequence[str] = "basic"
    max_words: Annotated[int, Between(LEAST_WORDS, 1_000)] = 100

    def __post_init__(self) -> None:
        check_types(self)
        names = (self.kinds,) if isinstance(self.kinds, str) else tuple(self.kinds)
        object.__setattr__(self, "kinds", names)
        if not names:
            raise InvalidArgumentError(
                "kinds must name one or more kinds of instructions, got none: leave it out for 'basic'"
            )
        if NEED_LANGDETECT.intersection(self._chosen) and importlib.util.find_spec("langdetect") is None:
            raise missing_dependency(
                "langdetect", "ifeval", f"rlvr/Instructions-v0 with kinds={names} (unlike kinds='basic')"
            )
        super().__post_init__()

    @functools.cached_property
    def _chosen(self) -> tuple[str, ...]:
        """The ids of the selected kinds, in the order of `KINDS`."""
        chosen = {kind for name in self.kinds for kind in _named(name)}
        return tuple(kind for kind in KINDS if kind in chosen)

    def _describe(self) -> ProblemShape:
        words = sorted((word for topic in TOPICS for word in topic.words), key=len)[-6:]
        given = Given(longest_request(), words, self.max_words)
        longest = max((wording.longest(given) for wording in WORDINGS if wording.kind in self._chosen), key=len)
        prompts = [
            layout.format(request=given.request, instructions=separator.join([longest] * self.instructions))
            for layout, separator in _LAYOUTS
        ]
        return ProblemShape(
            difficulty=f"{self.instructions}-{'+'.join(self.kinds)}-to-{self.max_words}-words",
            max_prompt_bytes=max(map(len, prompts)),
            max_answer_bytes=0,
            prompt_alphabet=_CHARACTERS,
            answer_alphabet=_CHARACTERS,
        )

    @property
    def _space(self) -> int:
        return _CODES

    def _at(self, code: int) -> InstructionPrompt:
        draws = Draws(code)
        kinds = self._draw_kinds(draws)
        topic = draws.choose(TOPICS)
        form = draws.choose(topic.questions if _QUESTION in kinds else topic.forms)
        request = form.format(subject=topic.subject, tone=draws.choose(TONES))
        given = Given(request, draws.shuffled(topic.words), self.max_words)
        spelled = draws.below(2) == 1
        sentences, instructions = [], {}
        for kind in kinds:
            wording = draws.choose([wording for wording in WORDINGS if wording.kind == kind])
            sentence, instructions[kind] = wording.draw(draws, given, spelled=spelled)
            sentences.append(sentence)
        layout, separator = draws.choose(_LAYOUTS)
        prompt = layout.format(request=request, instructions=separator.join(sentences))
        return InstructionPrompt(prompt, (form, topic.subject), instructions)

    def _draw_kinds(self, draws: Draws) -> list[str]:
        """Draw the kinds. The first may be any kind; each further kind must be compatible with all earlier kinds."""
        count = 1 + draws.below(self.instructions)
        chosen: list[str] = []
        left: Iterable[str] = self._chosen
        while len(chosen) < count and (left := [kind for kind in left if all(compatible(kind, one) for one in chosen)]):
            chosen.append(draws.choose(left))
        return chosen

    def _question(self, content: InstructionPrompt) -> str:
        return content.prompt

    @property
    def _least_questions(self) -> int:
        """Number of requests times number of different layouts.

        For a single instruction, the last layout equals the second layout.
        """
        asked = [topic.questions if self._chosen == (_QUESTION,) else topic.forms for topic in TOPICS]
        tones = 1 if self._chosen == (_QUESTION,) else len(TONES)
        return sum(map(len, asked)) * tones * (len(_LAYOUTS) - 1)

    def _key(self, content: InstructionPrompt) -> object:
        return content.request

    def _task(self, content: InstructionPrompt) -> GeneratedProblem:
        reference = {
            "instruction_id_list": list(content.instructions),
            "kwargs": list(content.instructions.values()),
        }
        return GeneratedProblem(content.prompt, reference, None)


def _named(name: str) -> tuple[str, ...]:
    """The kinds that a preset, a group or an id names."""
    groups = {kind.partition(":")[0] for kind in KINDS}
    if name not in (*_PRESETS, *groups, *KINDS):
        raise unknown_name("kind of instructions", name, (*_PRESETS, *sorted(groups), *KINDS))
    return _PRESETS.get(name) or tuple(kind for kind in KINDS if name in (kind, kind.partition(":")[0]))


class InstructionsEnv(TaskEnv):
    """Generated prompts with verifiable instructions.

    Spaces, episode end, information and version history are those of `rlvr_envs.TaskEnv`.

    ## Description
    Write a postcard, a product description, a poem and so on, and follow one to three instructions, such as "leave out commas"
    or "stay below 60 words". The kinds of instructions are IFEval's; the wording and the requests are different, so that the
    problems can be used for training. Problems are generated: nothing is downloaded, and the train and test splits are
    disjoint.

    ## Starting State
    The request and its instructions. The default prompt, `chat`, is one user message with only this text.

    ## Reward
    1 if the response follows all instructions in the strict sense, else 0. The response need not fulfil the request.
    `verifier=("ifeval", {"partial_credit": True})` gives the share of followed instructions.

    ## Arguments
    All of `rlvr_envs.Settings`, `seed` and `size` of the data set, and `instructions=3` (the maximum number in a prompt),
    `kinds="basic"` (`"all"` adds the three kinds that need `pip install 'rlvr-envs[ifeval]'`; ids such as
    `("punctuation:no_comma", "keywords")` restrict the kinds) and `max_words=100` (the largest number of words that an
    instruction may demand or set as a limit; a larger value needs a greater `max_new_tokens`). Defaults: `split="train"`,
    `max_new_tokens=256`, `verifier="ifeval"`.
    """

    task: ClassVar[TaskSpec] = TaskSpec(
        load=Instructions,
        sizes={"train": 10_000, "test": 1_000},
        source="generated",
        data_options=("seed", "size", "instructions", "kinds", "max_words"),
        verifier=Instructions.verifier,
        prompt="chat",
        max_new_tokens=256,
    )
