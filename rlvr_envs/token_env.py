"""`TokenEnv`: one token stream as a Gymnasium environment."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from numpy.typing import ArrayLike, NDArray

from rlvr_envs.spaces import action_space, observation_space
from rlvr_envs.streams import DRAW, StreamState, TokenStreams
from rlvr_envs.tokenizers import Tokenizer, decode
from rlvr_envs.types import Info, Observation, Transition
from verifiers import IllegalTokenError, InvalidArgumentError, unknown_name


class TokenEnv(gymnasium.Env[Observation, np.int64]):
    """An environment in which the policy continues a prompt token by token, and a verifier scores the finished completion.

    ## Description
    The state consists of the prompt's tokens and all later tokens: the environment is Markov. A step appends one token.

    ## Action Space
    `Discrete(vocab_size)`: a token id. If only fixed tokens are legal, the space holds and samples only these.

    ## Observation Space
    `Dict(tokens=Box(0, vocab_size - 1, (l,), int32), length=Box(0, l, (1,), int32))`: the first `length[0]` entries of `tokens`
    are the prompt and everything that followed it; the other entries are 0.

    ## Starting State
    A problem's prompt, drawn uniformly from the data set, or chosen with `reset(options={"problem": index})`; or any state
    that `get_state` has captured, with `reset(options={"state": state})`.

    ## Reward
    0 until the episode ends, then the verifier's score of the completion; NaN if the verifier failed. A process scorer adds a
    reward to every token.

    ## Episode End
    Terminates when a stop token or stop string is produced or the end condition holds; truncates when `max_new_tokens` tokens
    were produced without termination, or when the verifier failed.

    ## Information
    From `reset`: `problem_id`, `problem_index`. From `step`: `consumed`, `rewards` (f64[n], one for each consumed token),
    `inserted` if the environment appended tokens, and `new_context` if these tokens begin a new context (`Reply.context`) and
    are the whole observation. At the end of an episode: `problem_id`, `completion`, `verdict` and, if the verdict has any,
    `token_scores`. These are pairs (position in `tokens`, amount) that assign parts of the reward to earlier tokens; the reward
    of the last step is the sum of all parts. From both: `action_mask` (i8[v]) if legal tokens are restricted. `pending` is set
    while a deferred verdict is awaited.

    Args:
        streams: One stream.
        render_mode: `"ansi"` if `render()` should return the text so far; None otherwise.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 30}  # type: ignore[misc] # constant here

    def __init__(self, streams: TokenStreams, *, render_mode: str | None = None) -> None:
        if render_mode not in (None, "ansi"):
            raise unknown_name("render_mode", str(render_mode), ["ansi"])
        if streams.num_streams != 1:
            raise InvalidArgumentError(f"TokenEnv takes one stream, got {streams.num_streams}; use TokenVectorEnv")
        self.streams = streams
        self.render_mode = render_mode
        self.action_space: spaces.Space[np.int64] = action_space(streams)
        self.observation_space: spaces.Space[Any] = observation_space(streams)
        self._verdict_text = ""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Info]:
        """Start an episode.

        Args:
            seed: Seed of the generator that draws problems from now on.
            options: `{"problem": index}` chooses the problem; -1 draws it. `{"state": state}` instead continues from a captured
                state, with the state's own problem; this environment's generator draws further problems.

        Returns:
            The observation, and info with `problem_id` and `problem_index`.

        Raises:
            InvalidArgumentError: If the problem's index is out of range, an option is unknown, or a state does not fit or its
                episode has ended.
            PromptTooLongError: If the prompt does not fit.
        """
        super().reset(seed=seed)
        check_options(options, {"problem", "state"})
        given = options or {}
        self.streams.reset(
            [0], [self.np_random], [given.get("problem", DRAW)], states=[given.get("state")], drop_awaited=True
        )
        self._verdict_text = ""
        problem = self.streams.problem(0)
        info: Info = {"problem_id": problem.id if problem else "", "problem_index": int(self.streams.problem_index[0])}
        return self._observation(), self._with_mask(info)

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, Info]:
        """Append one token.

        Raises:
            ResetNeeded: Before the first reset and after the episode's end.
            IllegalTokenError: If the token is not an integer, is outside the vocabulary, or is not legal after the tokens so
                far.
        """
        try:
            token = operator.index(action)
        except TypeError:
            raise IllegalTokenError(
                f"an action must be one integer token in [0, {self.streams.vocab_size}), got {type(action).__name__} {action!r}"
            ) from None
        if self.streams.append_ordinary(token):
            return self._observation(), 0.0, False, False, {"consumed": 1, "rewards": np.zeros(1)}
        return self.step_many(np.array([token]))

    def step_many(self, tokens: ArrayLike) -> tuple[Observation, float, bool, bool, Info]:
        """Append tokens i64[n] one after the other. Tokens after the episode's end or after an insertion are not consumed.

        Raises:
            ResetNeeded: Before the first reset and after the episode's end.
            IllegalTokenError: If a token is outside the vocabulary, or a token that would be consumed is not legal.
        """
        chunk = as_tokens(tokens, dims=1)
        self._check_order()
        return self._result(self.streams.advance(chunk[None, :]))

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer."""
        return self.streams.rules.tokenizer

    @property
    def num_problems(self) -> int:
        """Number of problems in the data set."""
        return len(self.streams.dataset)

    def wait(self) -> tuple[Observation, float, bool, bool, Info]:
        """Wait for the verdict of an episode under `verification="deferred"`; no token is consumed."""
        return self._result(self.streams.wait())

    def get_state(self) -> StreamState:
        """Capture the episode, and the random generator that draws problems, as a picklable value."""
        return self.streams.get_state(0)

    def set_state(self, state: StreamState) -> Observation:
        """Go back to a captured state of an environment with the same data set and settings."""
        self.streams.set_state(0, state)
        self.np_random.bit_generator.state = dict(state.generator)
        self.streams.use_generator(0, self.np_random)
        self._verdict_text = ""
        return self._observation()

    def render(self) -> str | None:
        """Return as text the prompt and everything that followed it and, at the end of the episode, the verdict."""
        if self.render_mode is None:
            return None
        tokens = self.streams.tokens[0, : self.streams.length[0]]
        return decode(self.streams.rules.tokenizer, tokens) + self._verdict_text

    def close(self) -> None:
        """Release the resources of verification."""
        self.streams.close()

    def _check_order(self) -> None:
        if not self.streams.started:
            raise ResetNeeded("call reset() before step(): there is no episode yet")
        if not self.streams.live[0] and not self.streams.pending_rows():
            raise ResetNeeded("the episode has ended: call reset() before the next step()")

    def _observation(self) -> Observation:
        return {"tokens": self.streams.tokens[0].copy(), "length": self.streams.length.copy()}

    def _with_mask(self, info: Info) -> Info:
        masks = self.streams.legal_masks()
        if masks is not None:
            info["action_mask"] = masks[0].copy()
        return info

    def _result(self, transition: Transition) -> tuple[Observation, float, bool, bool, Info]:
        consumed = int(transition.consumed[0])
        info: Info = {"consumed": consumed, "rewards": transition.rewards[0, : max(consumed, 1)]}
        if transition.inserted[0]:
            info["inserted"] = int(transition.inserted[0])
        if transition.new_context[0]:
            info["new_context"] = True
        if self.streams.pending_rows():
            info["pending"] = True
        if 0 in transition.ended:
            ended = transition.ended[0]
            info |= {"problem_id": ended.problem_id, "completion": ended.completion, "verdict": ended.verdict}
            if ended.token_scores:
                info["token_scores"] = ended.token_scores
            self._verdict_text = f"\n[{ended.verdict.outcome}: {ended.verdict.score:g}]" if ended.verdict else ""
        flags = bool(transition.terminated[0]), bool(transition.truncated[0])
        return self._observation(), float(transition.reward[0]), *flags, self._with_mask(info)


def check_options(options: dict[str, Any] | None, known: set[str]) -> None:
    """Check that all options of `reset` are known.

    Raises:
        UnknownNameError: If an option is unknown; the message names the option and the nearest known option.
    """
    for name in options or ():
        if name not in known:
            raise unknown_name("reset option", str(name), known)


def as_tokens(tokens: ArrayLike, *, dims: int) -> NDArray[np.int64]:
    """Read tokens as i64 with `dims` axes.

    Raises:
        IllegalTokenError: If the tokens are not integers, or do not have `dims` axes.
    """
    array = np.asarray(tokens)
    if array.ndim != dims or array.dtype.kind not in "iu":
        shape: Sequence[str] = ("n",) if dims == 1 else ("b", "n")
        raise IllegalTokenError(
            f"expected integer tokens with axes ({', '.join(shape)}), got {array.dtype} of shape {array.shape}"
        )
    return np.ascontiguousarray(array, dtype=np.int64)
