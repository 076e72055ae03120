"""`TokenStreams`: the transition. Only here are tokens appended, prompts checked, episodes ended and completions scored."""

from __future__ import annotations

import codecs
import contextlib
import copy
import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, ThreadPoolExecutor, wait as wait_for
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from rlvr_envs.dialogue import PlainDialogue, encode_parts, spell
from rlvr_envs.rules import Rules
from rlvr_envs.tokenizers import decode, utf8
from rlvr_envs.turns import EncodedReply, answer_turn, follow, judged_text
from rlvr_envs.types import (
    CheckedInteraction,
    Dataset,
    EndCondition,
    Ended,
    ProcessScorer,
    Transition,
    Turn,
)
from verifiers import (
    DataError,
    IllegalTokenError,
    InvalidArgumentError,
    Message,
    Outcome,
    Problem,
    PromptTooLongError,
    Verdict,
    Verifier,
    verify_batch,
)

DRAW = -1
"""A problem index that means: draw a problem with the stream's random generator."""
_ENCODED_PROMPTS = 4096


@runtime_checkable
class _RendersParts(Protocol):
    """Turns a problem into the text of its prompt, or into parts of the text. No token spans two parts."""

    def __call__(self, problem: Problem, /) -> str: ...

    def parts(self, problem: Problem) -> Sequence[str]: ...


@dataclass(frozen=True)
class StreamState:
    """The whole state of one stream between two transitions; picklable."""

    tokens: NDArray[np.int32]
    prompt_length: int
    turn_start: int
    limit: int
    inserted: int
    turns: tuple[Turn, ...]
    """The turns that have been answered."""
    stop_state: int
    live: bool
    problem_index: int
    generator: Mapping[str, Any]
    """The state of the stream's bit generator."""


@dataclass(frozen=True)
class _Awaited:
    """Episodes whose verdicts are being computed in a thread."""

    future: Future[tuple[list[Ended], float]]
    """The episodes, and how many seconds their verdicts took."""
    rows: list[int]
    terminated: list[bool]


@dataclass(frozen=True)
class _Asked:
    """A row whose latest turn is being answered in a thread."""

    future: Future[EncodedReply]
    row: int
    turns: tuple[Turn, ...]


@dataclass(slots=True)
class _Step:
    """A transition in progress: the requested tokens, and the results so far."""

    tokens: NDArray[np.int64]
    """The requested tokens i64[b n]."""
    counts: NDArray[np.int64] | None
    """i64[b], the number of valid tokens in each row; None if all tokens are valid."""
    active: NDArray[np.bool_]
    """bool[b], whether each row takes further tokens."""
    transition: Transition
    column: int = 0
    """Index of the current token among the n tokens."""
    stopped: dict[int, int] = field(default_factory=dict)
    """The column of the turn's last token, for each row whose turn has ended and needs an answer."""
    ending: dict[int, bool] = field(default_factory=dict)
    """For each row whose episode has ended: True if the episode stopped by itself, False if a limit ended it."""
    failed: dict[int, Verdict] = field(default_factory=dict)
    """The `VERIFIER_ERROR` of each ended row whose interaction failed."""
    closing: dict[int, tuple[Message, ...]] = field(default_factory=dict)
    """For each row whose episode a reply ended, the messages of that reply, for the verifier."""


def _is_count(value: object) -> bool:
    return isinstance(value, int | np.integer) and bool(value >= 1)


def _token_buffer(num_streams: int, buffer_tokens: int) -> NDArray[np.int32]:
    try:
        return np.zeros((num_streams, buffer_tokens), dtype=np.int32)
    except (
        MemoryError,
        ValueError,
        OverflowError,
    ) as error:  # NumPy raises the first if memory runs out, the second if it can't be addressed
        raise InvalidArgumentError(
            f"there is not enough memory for {num_streams} streams (num_envs) of up to {buffer_tokens} tokens each: choose "
            "fewer, or lower max_new_tokens, max_prompt_tokens or max_inserted_tokens"
        ) from error


class TokenStreams:
    """A number b of token streams with the same data set and rules.

    A stream is live from its reset until its episode ends. Transitions do not change a stream whose episode has ended.

    Args:
        dataset: The problems.
        rules: The rules of episodes.
        num_streams: b.

    Raises:
        InvalidArgumentError: If there is no problem, or the interaction does not support the first problem.
    """

    def __init__(self, dataset: Dataset, rules: Rules, num_streams: int) -> None:
        if not _is_count(num_streams):
            raise InvalidArgumentError(
                f"num_streams (num_envs) must be a whole number of at least 1, got {num_streams!r}"
            )
        if len(dataset) == 0:
            raise InvalidArgumentError("the data set is empty: an environment needs at least one problem")
        if isinstance(rules.interaction, CheckedInteraction):
            rules.interaction.check_problem(dataset[0])
        self.dataset = dataset
        self.rules = rules
        self.num_streams = num_streams
        self.vocab_size = rules.tokenizer.vocab_size
        self.buffer_tokens = rules.buffer_tokens
        self.tokens = _token_buffer(num_streams, self.buffer_tokens)
        self.length = np.zeros(num_streams, dtype=np.int32)
        self.live = np.zeros(num_streams, dtype=bool)
        self.started = False
        self.problem_index = np.full(num_streams, DRAW, dtype=np.int64)
        self.prompt_length = np.zeros(num_streams, dtype=np.int32)
        self._turn_start = np.zeros(num_streams, dtype=np.int32)
        # The length of the row at which the policy's budget is spent or its context is full.
        self._limit = np.zeros(num_streams, dtype=np.int32)
        self._inserted = np.zeros(num_streams, dtype=np.int32)
        self._turns: list[tuple[Turn, ...]] = [()] * num_streams
        self._stop_state = np.zeros(num_streams, dtype=np.int32)
        self._generators: list[np.random.Generator | None] = [None] * num_streams
        self._stop_tokens = rules.stop_tokens()
        self._stop_strings = rules.stop_strings()
        self._legal = self._new_legal_masks()
        self._prompts: dict[int, NDArray[np.int32]] = {}
        self.verification_seconds = 0.0
        """Wall time of all verdicts so far, in seconds, summed over calls. Calls in the background may overlap."""
        self._awaited: list[_Awaited] = []
        self._asked: list[_Asked] = []
        self._executor: ThreadPoolExecutor | None = None
        self._answering: ThreadPoolExecutor | None = None
        self._dialogue = rules.dialogue or PlainDialogue(rules.tokenizer)
        self._all_rows = np.arange(num_streams)
        asked = (rules.legal_actions, rules.process_scorer, rules.end_condition)
        self._only_appends = all(rule is None for rule in (*asked, self._stop_strings, rules.turn_tokens))
        # A transition must be undone if legal actions or the user's code raise in the middle of it.
        self._may_raise = any(rule is not None for rule in (*asked, rules.interaction))

    def again(self, num_streams: int, *, judged: bool = True) -> TokenStreams:
        """Make further streams with the same problems and rules, whose verdicts are never deferred.

        Args:
            num_streams: The number of further streams.
            judged: False to call no verifier when an episode ends.
        """
        verifier = self.rules.verifier if judged else None
        return TokenStreams(
            self.dataset, dataclasses.replace(self.rules, verification="sync", verifier=verifier), num_streams
        )

    # Starting episodes

    def reset(
        self,
        rows: Sequence[int],
        generators: Sequence[np.random.Generator | None],
        problems: Sequence[int],
        *,
        states: Sequence[StreamState | None] | None = None,
        drop_awaited: bool = False,
    ) -> None:
        """Start a new episode in some rows; on an error, no row is changed.

        Args:
            rows: The rows to reset.
            generators: The new random generator of each row; None keeps the old generator.
            problems: The index of each row's problem, or `DRAW`.
            states: The captured state from which each row continues, with the state's own problem; None to start at the prompt.
            drop_awaited: Discard the pending verdicts, as a reset of all rows does.

        Raises:
            InvalidArgumentError: If a problem's index is out of range, a row awaits its verdict, or a state does not fit or its
                episode has ended. PromptTooLongError: If a prompt does not fit.
        """
        waiting = sorted(set(rows) & set(self.pending_rows()))
        if waiting and not drop_awaited:
            raise InvalidArgumentError(f"rows {waiting} await their verdicts and can't be reset: call wait() first")
        chosen = [
            generator or self._generators[row] or _fresh() for row, generator in zip(rows, generators, strict=True)
        ]
        starts = [
            self._start_of(index, generator) if state is None else self._checked_start(state)
            for index, generator, state in zip(problems, chosen, states or [None] * len(rows), strict=True)
        ]
        if drop_awaited:
            self._drop_awaited()
        for row, generator, start in zip(rows, chosen, starts, strict=True):
            self._generators[row] = generator
            if isinstance(start, StreamState):
                self._overwrite(row, start)
            else:
                self._start(row, *start)
        self.started = self.started or len(rows) > 0

    def _drop_awaited(self) -> None:
        self._awaited.clear()
        self._asked.clear()

    def _start_of(self, index: object, generator: np.random.Generator) -> tuple[int, NDArray[np.int32]]:
        """The problem's index, drawn if `index` is `DRAW`, and the problem's prompt."""
        if not isinstance(index, int | np.integer) or not DRAW <= index < len(self.dataset):
            raise InvalidArgumentError(
                f"problem {index!r} does not exist: expected -1 (draw) or [0, {len(self.dataset)})"
            )
        chosen = int(generator.integers(len(self.dataset))) if index == DRAW else int(index)
        return chosen, self.prompt_tokens(chosen)

    def _checked_start(self, state: object) -> StreamState:
        if not isinstance(state, StreamState):
            raise InvalidArgumentError(
                f"an episode starts from a state that get_state gave, got {type(state).__name__} {state!r}"
            )
        self._check_state(state)
        if not state.live:
            raise InvalidArgumentError(
                "the episode of this state has ended, so that nothing can follow from it: capture states before the end"
            )
        return state

    def prompt_tokens(self, index: int) -> NDArray[np.int32]:
        """Encode the prompt of problem `index` as tokens i32[l].

        Raises:
            PromptTooLongError: If the prompt does not fit.
            DataError: If the prompt is empty.
        """
        if index not in self._prompts:
            tokens = self.encode_prompt(self.dataset[index])
            self._check_prompt(index, tokens)
            if len(self._prompts) >= _ENCODED_PROMPTS:
                self._prompts.clear()
            self._prompts[index] = tokens
        return self._prompts[index]

    def encode_prompt(self, problem: Problem) -> NDArray[np.int32]:
        """Encode the prompt of any problem, even one that is not in the data set, as tokens i32[l] of any length.

        Raises:
            DataError: If the prompt contains half of a surrogate pair.
        """
        if self.rules.opening is not None:
            return self._dialogue.open(self.rules.opening(problem))
        render = self.rules.render_prompt
        parts = render.parts(problem) if isinstance(render, _RendersParts) else [render(problem)]
        for part in parts:
            utf8(part, f"the prompt of problem {problem.id!r}")
        return encode_parts(self.rules.tokenizer, parts, start=True)

    def prompt_text(self, problem: Problem) -> str:
        """The text of any problem's prompt as the policy reads it, including tools; special tokens are written out."""
        if self.rules.opening is None:
            return self.rules.render_prompt(problem)
        return spell(self.rules.tokenizer, self.encode_prompt(problem).tolist())

    def _check_prompt(self, index: int, tokens: NDArray[np.int32]) -> None:
        if not len(tokens):
            raise empty_prompt(self.dataset[index])
        if len(tokens) > self.rules.max_prompt_tokens:
            raise PromptTooLongError(
                f"the prompt of problem {self.dataset[index].id!r} has {len(tokens)} tokens; expected 1 to "
                f"max_prompt_tokens={self.rules.max_prompt_tokens}. Prompts are never cut: raise max_prompt_tokens "
                f"to at least {len(tokens)}, shorten the prompt template, or leave the problem out of the data"
            )

    def _start(self, row: int, index: int, prompt: NDArray[np.int32]) -> None:
        self.tokens[row, : len(prompt)] = prompt
        self.tokens[row, len(prompt) :] = 0
        self.length[row] = self.prompt_length[row] = self._turn_start[row] = len(prompt)
        self._limit[row] = min(len(prompt) + self.rules.max_new_tokens, self.buffer_tokens)
        self._inserted[row] = self._stop_state[row] = 0
        self._turns[row] = ()
        self.problem_index[row] = index
        self.live[row] = True
        self._update_legal(row)

    # The transition

    def append_ordinary(self, token: int) -> bool:
        """Append one token to a single stream if the token has no further effect; otherwise do nothing and return False.

        This is a fast version of `advance` for the most common step. Stops, scores, limits and errors are left to `advance`.
        """
        if not (self._only_appends and self.live[0] and 0 <= token < self.vocab_size) or self._stop_tokens[token]:
            return False
        length = self.length[0]
        if length + 1 >= self._limit[0]:
            return False
        self.tokens[0, length] = token
        self.length[0] = length + 1
        return True

    def advance(self, tokens: NDArray[np.int64], counts: NDArray[np.int64] | None = None) -> Transition:
        """Append up to n tokens to each stream.

        A stream takes its tokens one after the other, and stops when its episode ends or the environment inserts tokens; the
        remaining tokens are not consumed. One call with n tokens equals n calls with one token, except that verdicts arrive
        together.

        Args:
            tokens: i64[b n]; rows that are not live are ignored.
            counts: i64[b], number of valid tokens in each row; None if all are valid.

        Raises:
            IllegalTokenError: If a token of a live row is outside the vocabulary, even a token that would not be consumed, or
                if a token is not legal after the tokens before it. No stream is changed then.
            ResetNeeded: Before the first reset.
        """
        if not self.started:
            raise ResetNeeded("call reset() before stepping: no stream has a problem yet")
        step = self._begin(tokens, counts)
        with self._undone_on_error() if self._may_raise else contextlib.nullcontext():
            self._apply(step)
        self._deliver(step)
        return step.transition

    def _begin(self, tokens: NDArray[np.int64], counts: NDArray[np.int64] | None) -> _Step:
        """Check the tokens of a transition."""
        active = self.live.copy() if counts is None else self.live & (counts > 0)
        step = _Step(tokens, counts, active, Transition.nothing(*tokens.shape))
        # As unsigned numbers, negative tokens are too large, so one comparison finds both kinds of error.
        wrong = tokens.view(np.uint64) >= self.vocab_size
        if np.count_nonzero(wrong):
            self._check_vocabulary(wrong, step)
        return step

    @contextlib.contextmanager
    def _undone_on_error(self, *, shared: bool = True) -> Iterator[None]:
        """Undo the changes of a block if it raises; with `shared`, also in the arrays that the parts of a mixture share."""
        arrays: list[NDArray[Any]] = [self._turn_start, self._limit, self._inserted, self._stop_state]
        if shared:
            arrays += [self.tokens, self.length, self.live, self.prompt_length]
            arrays += [] if self._legal is None else [self._legal]
        before, turns, asked = [array.copy() for array in arrays], list(self._turns), list(self._asked)
        try:
            yield
        except BaseException:
            for array, saved in zip(arrays, before, strict=True):
                array[...] = saved
            self._turns[:], self._asked = turns, asked
            raise

    def _apply(self, step: _Step) -> None:
        """Append the tokens of a transition, and request answers to the turns that end."""
        self._append_columns(step)
        self._answer_turns(step)

    def _append_columns(self, step: _Step) -> None:
        """Append one column after the other until no row takes tokens."""
        for column in range(step.tokens.shape[1]):
            step.column = column
            if column and step.counts is not None:
                step.active &= step.counts > column
            count = np.count_nonzero(step.active)
            if count == 0:
                break
            self._append(self._all_rows if count == self.num_streams else np.flatnonzero(step.active), step)

    def _append(self, rows: NDArray[np.int64], step: _Step) -> None:
        """Append the tokens of the step's column to some rows."""
        # For all rows, a slice is a much faster index.
        at = slice(None) if rows is self._all_rows else rows
        tokens = step.tokens[at, step.column]
        if self._legal is not None:
            self._check_legal(self._legal, rows, tokens)
        length = self.length[at]
        self.tokens[rows, length] = tokens
        length += 1
        self.length[at] = length
        step.transition.consumed[at] = step.column + 1  # these rows took every token up to this column
        if self.rules.process_scorer is not None:
            self._score_tokens(self.rules.process_scorer, rows, step)
        stopped = self._stop_tokens[tokens]
        if self._stop_strings is not None:
            states = self._stop_strings.advance(self._stop_state[at], tokens)
            self._stop_state[at] = states
            stopped |= states == self._stop_strings.matched
        if self.rules.turn_tokens is not None:
            stopped |= length - self._turn_start[at] >= self.rules.turn_tokens
        over = None
        if self.rules.end_condition is not None:
            over = self._are_over(self.rules.end_condition, rows)
            stopped |= over
        done = stopped | (length >= self._limit[at])
        if np.count_nonzero(done):
            self._stop_rows(rows[done], stopped[done], None if over is None else over[done], step)
        if self._legal is not None:
            for row in rows:
                self._update_legal(row)

    def _stop_rows(
        self, rows: NDArray[np.int64], stopped: NDArray[np.bool_], over: NDArray[np.bool_] | None, step: _Step
    ) -> None:
        """End the episodes of some rows. With an interaction, a row whose turn merely stopped waits for an answer instead."""
        step.active[rows] = False
        answered = stopped & (self.rules.interaction is not None)
        if over is not None:
            answered &= ~over
        for row, by_stop, goes_on in zip(rows.tolist(), stopped.tolist(), answered.tolist(), strict=True):
            if goes_on:
                step.stopped[row] = step.column
            else:
                step.ending[row] = by_stop
        self.live[list(step.ending)] = False

    # Turns and their answers

    def _answer_turns(self, step: _Step) -> None:
        """Request answers to the turns that ended, and append the answers unless they are deferred."""
        if not step.stopped:
            return
        asked = {row: (*self._turns[row], self._latest_turn(row)) for row in sorted(step.stopped)}
        if self.rules.verification == "deferred":
            futures = [self._answer_pool().submit(self._answer, row, turns) for row, turns in asked.items()]
            self._asked += [_Asked(future, *item) for future, item in zip(futures, asked.items(), strict=True)]
            self.live[list(asked)] = False
            return
        together = len(asked) > 1  # a single turn is answered without a thread
        answers = list((self._answer_pool().map if together else map)(self._answer, asked.keys(), asked.values()))
        for (row, turns), given in zip(asked.items(), answers, strict=True):
            self._settle_turn(row, turns, given, step.stopped[row], step)

    def _answer_pool(self) -> ThreadPoolExecutor:
        if self._answering is None:
            self._answering = ThreadPoolExecutor(self.rules.interaction_workers, thread_name_prefix="interaction")
        return self._answering

    def _latest_turn(self, row: int) -> Turn:
        tokens = self.tokens[row, self._turn_start[row] : self.length[row]].copy()
        parsed = self._dialogue.parse(tokens)
        return Turn(tokens, self.completion(row), parsed.calls, parsed.errors, context_tokens=int(self.length[row]))

    def _answer(self, row: int, turns: tuple[Turn, ...]) -> EncodedReply:
        return answer_turn(
            self.rules,
            self._dialogue,
            turns,
            self._problem(row),
            left=self._budget_left(turns),
            inserted=int(self._inserted[row]),
            in_view=int(self.length[row]),
            window=self.buffer_tokens,
            context=self.buffer_tokens,
        )

    def _settle_turn(self, row: int, turns: tuple[Turn, ...], given: EncodedReply, column: int, step: _Step) -> None:
        """Add a turn's reward, and append the answer or end the episode."""
        left = self._budget_left(turns)
        after = follow(self.rules, turns, given, left)
        step.transition.rewards[row, column] += after.reward
        if after.over:
            step.ending[row] = after.terminated
            step.closing[row] = after.closing
            if after.error is not None:
                step.failed[row] = after.error
        else:
            assert given.tokens is not None
            new_context = after.turns[-1].context is not None
            self._insert(row, given.tokens, left, new_context=new_context)
            self._turns[row] = after.turns
            step.transition.inserted[row] = len(given.tokens)
            step.transition.new_context[row] = new_context
        self.live[row] = row not in step.ending
        self._update_legal(row)

    def _budget_left(self, turns: Sequence[Turn]) -> int:
        """The number of tokens that the policy may still choose after these turns."""
        return self.rules.max_new_tokens - sum(len(turn.tokens) for turn in turns)

    def _insert(self, row: int, tokens: NDArray[np.int32], left: int, *, new_context: bool) -> None:
        """Append tokens i32[l], or begin a new context with them; the policy may choose `left` more tokens."""
        if new_context:
            self.tokens[row] = 0
            self.length[row] = 0
            self.prompt_length[row] = len(tokens)
        else:
            self._inserted[row] += len(tokens)
        end = int(self.length[row]) + len(tokens)
        self.tokens[row, self.length[row] : end] = tokens
        self.length[row] = self._turn_start[row] = end
        self._limit[row] = min(end + left, self.buffer_tokens)
        self._stop_state[row] = 0

    def _score_tokens(self, scorer: ProcessScorer, rows: NDArray[np.int64], step: _Step) -> None:
        for row in rows.tolist():
            problem = self._problem(row)
            seen = self.tokens[row, : self.length[row]]
            step.transition.rewards[row, step.column] = scorer(seen, int(self.prompt_length[row]), problem)

    # The end of an episode

    def _are_over(self, end_condition: EndCondition, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool[r], whether the end condition ends each row's episode."""
        over = np.zeros(len(rows), dtype=bool)
        for at, row in enumerate(rows.tolist()):
            problem = self._problem(row)
            seen = self.tokens[row, : self.length[row]]
            over[at] = end_condition(seen, int(self.prompt_length[row]), problem)
        return over

    def _problem(self, row: int) -> Problem:
        return self.dataset[int(self.problem_index[row])]

    def completion(self, row: int) -> str:
        """Decode the policy's own tokens of the latest turn, without the stop token or string."""
        tokens = self.tokens[row, self._turn_start[row] : self.length[row]]
        if len(tokens) and self._stop_tokens[tokens[-1]]:
            tokens = tokens[:-1]
        if self._stop_strings is None:
            return decode(self.rules.tokenizer, tokens)
        data = b"".join(map(self.rules.tokenizer.token_bytes, tokens.tolist()))
        return self._stop_strings.cut(data).decode("utf-8", errors="replace")

    def _judged_text(self, row: int, closing: tuple[Message, ...] = ()) -> str:
        """The latest turn's text, with the dialogue before it and the messages of the reply that ended the episode."""
        return judged_text(self._turns[row], Message("assistant", self.completion(row)), closing)

    def _finish(self, step: _Step) -> None:
        """Judge the episodes that ended, except episodes whose interaction failed."""
        for row, verdict in step.failed.items():
            broken = Ended(self._problem(row).id, self._judged_text(row), verdict)
            self._settle([row], [False], [broken], step.transition)
        rows = sorted(step.ending.keys() - step.failed.keys())
        problems = [self._problem(row) for row in rows]
        completions = [self._judged_text(row, step.closing.get(row, ())) for row in rows]
        terminated = [step.ending[row] for row in rows]
        if self.rules.verification == "sync" or self.rules.verifier is None:
            ended, seconds = _judge(self.rules.verifier, completions, problems)
            self.verification_seconds += seconds
            self._settle(rows, terminated, ended, step.transition)
            return
        if self._executor is None:
            workers = self.rules.verification_workers
            self._executor = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="verification")
        together = len(rows) if hasattr(self.rules.verifier, "verify_batch") else 1
        for first in range(0, len(rows), together):
            chunk = slice(first, first + together)
            future = self._executor.submit(_judge, self.rules.verifier, completions[chunk], problems[chunk])
            self._awaited.append(_Awaited(future, rows[chunk], terminated[chunk]))

    def _settle(self, rows: list[int], terminated: list[bool], ended: list[Ended], transition: Transition) -> None:
        last = np.maximum(transition.consumed[rows], 1) - 1
        for row, column, by_stop, end in zip(rows, last.tolist(), terminated, ended, strict=True):
            verdict = end.verdict
            if verdict is not None and verdict.token_scores:
                end = dataclasses.replace(end, token_scores=self._positions(row, verdict.token_scores))
            errored = verdict is not None and verdict.outcome is Outcome.VERIFIER_ERROR
            transition.rewards[row, column] += 0.0 if verdict is None else verdict.score
            transition.terminated[row] = by_stop and not errored
            transition.truncated[row] = not transition.terminated[row]
            transition.ended[row] = end

    def _positions(self, row: int, pairs: Sequence[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
        """Convert pairs (number of characters, amount) to (position of the token that completes the characters, amount)."""
        start, length = int(self._turn_start[row]), int(self.length[row])
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        pieces = map(self.rules.tokenizer.token_bytes, self.tokens[row, start:length].tolist())
        characters = np.cumsum([len(decoder.decode(piece)) for piece in pieces])
        # An incomplete character at the end counts as complete at the last token.
        at = np.minimum(np.searchsorted(characters, [end for end, _ in pairs]), length - start - 1)
        return tuple((start + int(position), float(amount)) for position, (_, amount) in zip(at, pairs, strict=True))

    # Deferred verification

    def pending_rows(self) -> list[int]:
        """The rows that wait for an answer to their turn, or for the verdict of their ended episode."""
        if not self._awaited and not self._asked:
            return []
        return [*(row for awaited in self._awaited for row in awaited.rows), *(asked.row for asked in self._asked)]

    def wait(self, *, every: bool = True) -> Transition:
        """Wait for all pending answers and verdicts, and deliver them; no tokens are consumed.

        Args:
            every: False to wait only until the first answer or verdict has arrived.
        """
        step = self._waiting_step()
        while futures := self._futures():
            wait_for(futures, return_when=ALL_COMPLETED if every else FIRST_COMPLETED)
            self._deliver(step)
            if not every:
                break
        return step.transition

    def delivered(self) -> Transition:
        """Deliver all answers and verdicts that have arrived, without waiting."""
        step = self._waiting_step()
        self._deliver(step)
        return step.transition

    def _waiting_step(self) -> _Step:
        rows = self.num_streams
        return _Step(np.zeros((rows, 1), dtype=np.int64), None, np.zeros(rows, dtype=bool), Transition.nothing(rows, 1))

    def _futures(self) -> list[Future[Any]]:
        """The pending answers and verdicts."""
        return [*(item.future for item in self._awaited), *(item.future for item in self._asked)]

    def _deliver(self, step: _Step) -> None:
        """Append the answers and add the verdicts that have arrived so far, and judge the episodes that have ended."""
        for asked in [entry for entry in self._asked if entry.future.done()]:
            given = asked.future.result()  # if this raises, the row stays pending and nothing is lost
            # An answer may arrive in the transition that requests it.
            column = max(int(step.transition.consumed[asked.row]), 1) - 1
            self._settle_turn(asked.row, asked.turns, given, column, step)
            self._asked.remove(asked)
        for awaited in [entry for entry in self._awaited if entry.future.done()]:
            ended, seconds = awaited.future.result()  # if this raises, the row stays pending, too
            self.verification_seconds += seconds
            self._settle(awaited.rows, awaited.terminated, ended, step.transition)
            self._awaited.remove(awaited)
        if step.ending:
            self._finish(step)
            step.ending.clear()
            step.failed.clear()
            step.closing.clear()

    def __getstate__(self) -> dict[str, Any]:
        """The state without threads, which start again when they are needed.

        Raises:
            InvalidArgumentError: If verdicts or answers to turns are pending, which can't be copied.
        """
        if self.pending_rows():
            raise InvalidArgumentError(
                "an environment that awaits answers can't be copied or pickled: call wait() first"
            )
        return {**self.__dict__, "_executor": None, "_answering": None}

    def close(self) -> None:
        """Let the threads finish the work that they have begun, and stop them."""
        for pool in (self._executor, self._answering):
            if pool is not None:
                pool.shutdown(wait=True, cancel_futures=True)
        self._executor = self._answering = None

    # Legal actions

    def legal_masks(self) -> NDArray[np.int8] | None:
        """The legal next tokens i8[b v]; None if all tokens are legal. A row that is not live has only ones."""
        return self._legal

    def _new_legal_masks(self) -> NDArray[np.int8] | None:
        if self.rules.legal_actions is None:
            return None
        return np.ones((self.num_streams, self.vocab_size), dtype=np.int8)

    def _update_legal(self, row: int) -> None:
        if self._legal is not None and self.rules.legal_actions is not None:
            prefix = self.tokens[row, : self.length[row]]
            live = self.live[row]
            self._legal[row] = self.rules.legal_actions(prefix, int(self.prompt_length[row])) if live else 1

    def _check_legal(self, masks: NDArray[np.int8], rows: NDArray[np.int64], tokens: NDArray[np.int64]) -> None:
        legal = masks[rows, tokens].astype(bool)
        if not legal.all():
            row, token = int(rows[~legal][0]), int(tokens[~legal][0])
            raise IllegalTokenError(
                f"token {token} of row {row} is not legal here: expected one of "
                f"{np.flatnonzero(masks[row])[:20].tolist()}; see info['action_mask']"
            )

    def _check_vocabulary(self, wrong: NDArray[np.bool_], step: _Step) -> None:
        wrong &= step.active[:, None]
        if step.counts is not None:
            wrong &= np.arange(step.tokens.shape[1]) < step.counts[:, None]
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise IllegalTokenError(
                f"token {step.tokens[row, column]} of row {row} is outside the vocabulary: expected [0, {self.vocab_size})"
            )

    # State

    def problem(self, row: int) -> Problem | None:
        """The problem of a row; None before the row's first reset."""
        return None if self.problem_index[row] == DRAW else self.dataset[int(self.problem_index[row])]

    def get_state(self, row: int) -> StreamState:
        """Capture one stream.

        Raises:
            InvalidArgumentError: If the row was never reset, or awaits its verdict.
        """
        generator = self._generators[row]
        if generator is None or row in self.pending_rows():
            raise InvalidArgumentError(f"row {row} has no state to capture: it was never reset or awaits its verdict")
        return StreamState(
            tokens=self.tokens[row, : self.length[row]].copy(),
            prompt_length=int(self.prompt_length[row]),
            turn_start=int(self._turn_start[row]),
            limit=int(self._limit[row]),
            inserted=int(self._inserted[row]),
            turns=self._turns[row],
            stop_state=int(self._stop_state[row]),
            live=bool(self.live[row]),
            problem_index=int(self.problem_index[row]),
            generator=copy.deepcopy(generator.bit_generator.state),
        )

    def set_state(self, row: int, state: StreamState) -> None:
        """Put one stream into a state that `get_state` captured in streams with the same data set and rules.

        Raises:
            InvalidArgumentError: If the state does not fit, or the row awaits its verdict.
        """
        self._check_state(state)
        self._overwrite(row, state)
        generator = np.random.Generator(np.random.PCG64())
        generator.bit_generator.state = copy.deepcopy(dict(state.generator))
        self._generators[row] = generator
        self.started = True

    def _check_state(self, state: StreamState) -> None:
        foreign = int(state.tokens.max(initial=0)) >= self.vocab_size
        longest = state.limit
        if self.rules.max_context_tokens is None and all(turn.context is None for turn in state.turns):
            longest += self.rules.max_inserted_tokens - state.inserted
        if foreign or longest > self.buffer_tokens or not 0 <= state.problem_index < len(self.dataset):
            raise InvalidArgumentError(
                f"the state has tokens up to {state.tokens.max(initial=0)}, of which there may be {longest} at the end, and "
                f"problem {state.problem_index}; this environment has {self.buffer_tokens} tokens of a vocabulary of "
                f"{self.vocab_size}, and {len(self.dataset)} problems"
            )

    def use_generator(self, row: int, generator: np.random.Generator) -> None:
        """Use this generator to draw the row's further problems."""
        self._generators[row] = generator

    def fork(self, row: int, into: Sequence[int]) -> None:
        """Copy one stream into other rows, which keep their own random generators for later draws."""
        state = self.get_state(row)
        for target in into:
            self._generators[target] = self._generators[target] or _fresh()
            self._overwrite(target, state)

    def _overwrite(self, row: int, state: StreamState) -> None:
        if row in self.pending_rows():
            raise InvalidArgumentError(f"row {row} awaits its verdict and can't be overwritten: call wait() first")
        self._start(row, state.problem_index, state.tokens)
        self.prompt_length[row] = state.prompt_length
        self._turn_start[row] = state.turn_start
        self._limit[row] = state.limit
        self._inserted[row] = state.inserted
        self._turns[row] = state.turns
        self._stop_state[row] = state.stop_state
        self.live[row] = state.live
        self._update_legal(row)


def empty_prompt(problem: Problem) -> DataError:
    """The error for a problem whose prompt has no tokens."""
    return DataError(
        f"the prompt of problem {problem.id!r} is empty: expected at least one token for the policy to continue. Write the "
        "question, leave the problem out, or use a prompt template with more than {problem}"
    )


def _fresh() -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence()))


def _judge(verifier: Verifier | None, completions: list[str], problems: list[Problem]) -> tuple[list[Ended], float]:
    """The ended episodes with their verdicts, and the seconds that the verdicts took."""
    started = time.perf_counter()
    verdicts: Sequence[Verdict | None]
    verdicts = [None] * len(problems) if verifier is None else verify_batch(verifier, completions, problems)
    # A verdict's cost includes times. The cost is dropped, since an environment's information must be deterministic.
    plain = [None if verdict is None else dataclasses.replace(verdict, cost={}) for verdict in verdicts]
    ended = [Ended(*fields) for fields in zip((p.id for p in problems), completions, plain, strict=True)]
    return ended, time.perf_counter() - started
