"""`MixedStreams`: the streams of a mixture of several environments, called parts.

Each stream plays an episode of one part at a time. A row plays in the streams of its part, so an episode is the same as in the
part alone. All parts share the token buffers, which have the length of the longest part's buffer.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, wait as wait_for
from typing import Any, Literal, get_args

import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from rlvr_envs.envs import PromptRenderer
from rlvr_envs.rules import Rules
from rlvr_envs.streams import DRAW, StreamState, TokenStreams
from rlvr_envs.types import Dataset, FixedActions, Reply, Transition, Turn
from verifiers import InvalidArgumentError, Problem, Verdict, unknown_name, verify_batch

MixBy = Literal["problems", "tokens", "levels"]
"""Unit of a mixture's weights when an agent trains: the problems that are drawn, or the tokens that the policy samples. With
`levels`, the parts are levels of one task in order of difficulty, and training begins with the first level."""
PART = "environment"
"""Key of the part's name in the metadata of a mixture's problems."""


class MixedDataset:
    """The problems of all parts, one part after the other; each problem's id begins with the name of its part.

    Args:
        parts: The problems of each part, by the part's name.
        weights: The weight of each part.
        by: The unit of the weights.

    Raises:
        InvalidArgumentError: If there is no part, or the weights are not one positive number for each part.
    """

    def __init__(
        self, parts: Mapping[str, Dataset], weights: Sequence[float] | None = None, by: MixBy = "problems"
    ) -> None:
        self.parts, self.by = dict(parts), by
        self.names = tuple(self.parts)
        given = (1.0,) * len(parts) if weights is None else tuple(weights)
        if not parts or len(given) != len(parts) or not all(math.isfinite(one) and one > 0 for one in given):
            raise InvalidArgumentError(
                f"a mixture needs a positive weight for each of its parts {list(self.names)}, got {list(given)}"
            )
        if by not in get_args(MixBy):
            raise unknown_name("mix_by", str(by), get_args(MixBy))
        self.weights = tuple(weight / math.fsum(given) for weight in given)
        """The share of each part."""
        self.starts = tuple(itertools.accumulate((len(part) for part in parts.values()), initial=0))
        """Index of the first problem of each part, and finally the total number of problems."""

    def __len__(self) -> int:
        return self.starts[-1]

    def __getitem__(self, index: int, /) -> Problem:
        if not 0 <= index < len(self):
            raise IndexError(f"problem {index} does not exist: the mixture has {len(self)}")
        part, own = self.locate(index)
        problem, name = self.parts[self.names[part]][own], self.names[part]
        return dataclasses.replace(problem, id=f"{name}/{problem.id}", metadata={**problem.metadata, PART: name})

    def locate(self, index: int) -> tuple[int, int]:
        """The index of the environment that a problem belongs to, and the problem's index in that environment.

        Raises:
            InvalidArgumentError: If there is no such problem.
        """
        if not 0 <= index < len(self):
            raise InvalidArgumentError(f"problem {index} does not exist: the mixture has {len(self)}")
        part = bisect.bisect_right(self.starts, index) - 1
        return part, index - self.starts[part]

    def part_of(self, problem: Problem) -> str:
        """The name of a problem's part.

        Raises:
            InvalidArgumentError: If the problem is not in the mixture.
        """
        name = problem.metadata.get(PART)
        if name not in self.parts:
            raise InvalidArgumentError(
                f"problem {problem.id!r} is not in the mixture of {list(self.names)}: take it from the mixture's data set"
            )
        return str(name)


class _ByPart:
    """Rules of a mixture as functions of a problem; each function applies the rule of the problem's part."""

    def __init__(self, data: MixedDataset, rules: Mapping[str, Rules]) -> None:
        self._data, self._rules = data, rules

    def of(self, problem: Problem) -> Rules:
        return self._rules[self._data.part_of(problem)]


class _Prompts(_ByPart):
    def __call__(self, problem: Problem) -> str:
        return self.of(problem).render_prompt(problem)

    def asked(self, problem: Problem) -> Problem:
        render = self.of(problem).render_prompt
        return render.asked(problem) if isinstance(render, PromptRenderer) else problem


class _Verifiers(_ByPart):
    def __call__(self, completion: str, problem: Problem) -> Verdict:
        return self.verify_batch([completion], [problem])[0]

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        rows: dict[str, list[int]] = {}
        for row, problem in enumerate(problems):
            rows.setdefault(self._data.part_of(problem), []).append(row)
        verdicts: dict[int, Verdict] = {}
        for name, own in rows.items():
            verifier = self._rules[name].verifier
            assert verifier is not None
            asked = verify_batch(verifier, [completions[row] for row in own], [problems[row] for row in own])
            verdicts |= zip(own, asked, strict=True)
        return [verdicts[row] for row in range(len(problems))]


class _Interactions(_ByPart):
    def __call__(self, turns: Sequence[Turn], problem: Problem) -> Reply | None:
        interaction = self.of(problem).interaction
        return None if interaction is None else interaction(turns, problem)


class MixedStreams(TokenStreams):
    """The streams of a mixture of several environments, called parts. Each stream plays an episode of one part at a time.

    Args:
        parts: The streams of each part, the same number for every part; the mixture owns them from now on.
        weights: The weight of each part.
        by: The unit of the weights.

    Raises:
        InvalidArgumentError: If the parts can't be mixed because their tokenizers, legal tokens or numbers of streams differ.
    """

    def __init__(
        self, parts: Mapping[str, TokenStreams], weights: Sequence[float] | None = None, by: MixBy = "problems"
    ) -> None:
        self.dataset: MixedDataset = MixedDataset({name: part.dataset for name, part in parts.items()}, weights, by)
        self.parts = tuple(parts.values())
        _check_parts(parts)
        first = self.parts[0]
        self.rules = _merged(self.dataset, {name: part.rules for name, part in parts.items()})
        self.num_streams, self.vocab_size = first.num_streams, first.vocab_size
        self.buffer_tokens = max(part.buffer_tokens for part in self.parts)
        self.tokens = np.zeros((self.num_streams, self.buffer_tokens), dtype=np.int32)
        self.length, self.live, self.prompt_length = first.length, first.live, first.prompt_length
        self.problem_index = np.full(self.num_streams, DRAW, dtype=np.int64)
        self.started = False
        self._owner = np.full(self.num_streams, -1)  # the part that each row plays, -1 for none
        self._generators = first._generators
        self._legal = first._legal
        self._share()

    def _share(self) -> None:
        """Let the parts write into the same buffers; each part writes only its own rows."""
        for part in self.parts:
            part.tokens = self.tokens[:, : part.buffer_tokens]
            part.length, part.live, part.prompt_length = self.length, self.live, self.prompt_length
            part._generators, part._legal = self._generators, self._legal

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._share()

    def again(self, num_streams: int, *, judged: bool = True) -> MixedStreams:
        """See `TokenStreams.again`."""
        parts = (part.again(num_streams, judged=judged) for part in self.parts)
        data = self.dataset
        return MixedStreams(dict(zip(data.names, parts, strict=True)), data.weights, data.by)

    # Starting episodes

    def _drop_awaited(self) -> None:
        for part in self.parts:
            part._drop_awaited()

    def _start(self, row: int, index: int, prompt: NDArray[np.int32]) -> None:
        owner, own = self.dataset.locate(index)
        self.tokens[row] = 0
        self.parts[owner].reset([row], [self._generators[row]], [own])
        self._owner[row], self.problem_index[row] = owner, index

    def _start_of(self, index: object, generator: np.random.Generator) -> tuple[int, NDArray[np.int32]]:
        if isinstance(index, int | np.integer) and index == DRAW:
            part = int(generator.choice(len(self.parts), p=self.dataset.weights))
            index = self.dataset.starts[part] + int(generator.integers(len(self.parts[part].dataset)))
        if not isinstance(index, int | np.integer) or not 0 <= index < len(self.dataset):
            raise InvalidArgumentError(
                f"problem {index!r} does not exist: expected -1 (draw) or [0, {len(self.dataset)})"
            )
        return int(index), self.prompt_tokens(int(index))

    def _check_state(self, state: StreamState) -> None:
        owner, own = self.dataset.locate(state.problem_index)
        self.parts[owner]._check_state(dataclasses.replace(state, problem_index=own))

    def prompt_tokens(self, index: int) -> NDArray[np.int32]:
        """See `TokenStreams.prompt_tokens`."""
        owner, own = self.dataset.locate(index)
        return self.parts[owner].prompt_tokens(own)

    def encode_prompt(self, problem: Problem) -> NDArray[np.int32]:
        """See `TokenStreams.encode_prompt`; the problem must belong to the mixture."""
        return self._part_of(problem).encode_prompt(problem)

    def prompt_text(self, problem: Problem) -> str:
        """See `TokenStreams.prompt_text`; the problem must belong to the mixture."""
        return self._part_of(problem).prompt_text(problem)

    def _part_of(self, problem: Problem) -> TokenStreams:
        return self.parts[self.dataset.names.index(self.dataset.part_of(problem))]

    # The transition

    def append_ordinary(self, token: int) -> bool:
        """See `TokenStreams.append_ordinary`."""
        return self.started and self.parts[self._owner[0]].append_ordinary(token)

    def advance(self, tokens: NDArray[np.int64], counts: NDArray[np.int64] | None = None) -> Transition:
        """See `TokenStreams.advance`."""
        if not self.started:
            raise ResetNeeded("call reset() before stepping: no stream has a problem yet")
        every = np.full(self.num_streams, tokens.shape[1]) if counts is None else counts
        steps = [
            part._begin(tokens, np.where(self._owner == number, every, 0)) for number, part in enumerate(self.parts)
        ]
        with contextlib.ExitStack() as undone:
            if any(part._may_raise for part in self.parts):
                widest = max(self.parts, key=lambda part: part.buffer_tokens)  # all parts share the widest buffer
                for part in self.parts:
                    undone.enter_context(part._undone_on_error(shared=part is widest))
            for part, step in zip(self.parts, steps, strict=True):
                part._apply(step)
        for part, step in zip(self.parts, steps, strict=True):
            part._deliver(step)
        return self._together([step.transition for step in steps])

    def wait(self, *, every: bool = True) -> Transition:
        """See `TokenStreams.wait`."""
        futures = [future for part in self.parts for future in part._futures()]
        if futures:
            wait_for(futures, return_when=ALL_COMPLETED if every else FIRST_COMPLETED)
        # A part without finished verdicts delivers nothing.
        return self._together([part.wait(every=True) if every else part.delivered() for part in self.parts])

    def _together(self, transitions: Sequence[Transition]) -> Transition:
        merged, *others = transitions
        for number, transition in enumerate(transitions):
            for row, ended in transition.ended.items():
                transition.ended[row] = dataclasses.replace(
                    ended, problem_id=f"{self.dataset.names[number]}/{ended.problem_id}"
                )
        for other in others:
            merged.rewards += other.rewards
            merged.consumed += other.consumed
            merged.inserted += other.inserted
            merged.new_context |= other.new_context
            merged.terminated |= other.terminated
            merged.truncated |= other.truncated
            merged.ended |= other.ended
        return merged

    def completion(self, row: int) -> str:
        """See `TokenStreams.completion`."""
        text: str = self.parts[self._owner[row]].completion(row)
        return text

    def pending_rows(self) -> list[int]:
        """See `TokenStreams.pending_rows`."""
        return [row for part in self.parts for row in part.pending_rows()]

    @property
    def verification_seconds(self) -> float:  # type: ignore[override] # an attribute there
        """Wall time that the verdicts of all parts have taken so far."""
        return sum(part.verification_seconds for part in self.parts)

    def close(self) -> None:
        """Stop the threads of all parts."""
        for part in self.parts:
            part.close()

    # State

    def get_state(self, row: int) -> StreamState:
        """See `TokenStreams.get_state`."""
        if self._owner[row] < 0:
            raise InvalidArgumentError(f"row {row} has no state to capture: it was never reset")
        state: StreamState = self.parts[self._owner[row]].get_state(row)
        return dataclasses.replace(state, problem_index=int(self.problem_index[row]))

    def _overwrite(self, row: int, state: StreamState) -> None:
        if row in self.pending_rows():
            raise InvalidArgumentError(f"row {row} awaits its verdict and can't be overwritten: call wait() first")
        owner, own = self.dataset.locate(state.problem_index)
        self.tokens[row] = 0
        self.parts[owner]._overwrite(row, dataclasses.replace(state, problem_index=own))
        self._owner[row], self.problem_index[row] = owner, state.problem_index


def _check_parts(parts: Mapping[str, TokenStreams]) -> None:
    (name, first), *others = parts.items()
    legal = first.rules.legal_actions
    if legal is not None and not isinstance(legal, FixedActions):
        raise InvalidArgumentError(
            f"the legal tokens of {name} change within an episode, but the legal tokens of a mixture must be fixed: leave this "
            "part out, or leave out its limits on tokens"
        )
    for other, part in others:
        if part.rules.tokenizer.fingerprint != first.rules.tokenizer.fingerprint:
            raise InvalidArgumentError(
                f"{name} and {other} can't be mixed: their tokenizers differ. Give both the same one, such as "
                "tokenizer='byte' or that of the model"
            )
        mask = part.rules.legal_actions
        same = (
            np.array_equal(mask.mask, legal.mask)
            if isinstance(mask, FixedActions) and isinstance(legal, FixedActions)
            else mask is legal
        )
        if not same:
            raise InvalidArgumentError(
                f"{name} and {other} can't be mixed: their action spaces differ, since other tokens are legal"
            )
        if part.num_streams != first.num_streams:
            raise InvalidArgumentError(
                f"{name} and {other} can't be mixed: they have {first.num_streams} and {part.num_streams} rows; build both "
                "with the same num_envs"
            )


def _merged(data: MixedDataset, rules: Mapping[str, Rules]) -> Rules:
    """Rules of the mixture as a whole, for callers that read them; episodes follow the rules of their parts."""
    every = tuple(rules.values())
    talks = any(one.interaction is not None for one in every)
    ends = {one.turn_end for one in every}
    return dataclasses.replace(
        every[0],
        render_prompt=_Prompts(data, rules),
        verifier=_Verifiers(data, rules) if all(one.verifier is not None for one in every) else None,
        max_prompt_tokens=max(one.max_prompt_tokens for one in every),
        max_new_tokens=max(one.max_new_tokens for one in every),
        stop=tuple(dict.fromkeys([*(stop for one in every for stop in one.stop), *sorted(ends)])),
        end_token=every[0].turn_end if len(ends) == 1 else None,
        process_scorer=None,
        end_condition=None,
        interaction=_Interactions(data, rules) if talks else None,
        max_inserted_tokens=max(one.max_inserted_tokens for one in every),
        max_turns=None,
        max_context_tokens=None,
        turn_tokens=None,
        dialogue=None,
        opening=None,
        verification="deferred" if any(one.verification == "deferred" for one in every) else "sync",
    )
