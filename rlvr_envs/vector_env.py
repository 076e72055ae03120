"""`TokenVectorEnv`: b token streams as a native Gymnasium vector environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from rlvr_envs.spaces import action_space, batched_action_space, observation_space
from rlvr_envs.streams import DRAW, StreamState, TokenStreams
from rlvr_envs.token_env import as_tokens, check_options
from rlvr_envs.tokenizers import Tokenizer
from rlvr_envs.types import Info, Observation, Transition
from verifiers import IllegalTokenError, InvalidArgumentError

StepResult = tuple[Observation, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Info]


class TokenVectorEnv(VectorEnv[Observation, NDArray[np.int64], NDArray[Any]]):
    """Many token streams that step together; each behaves as a `TokenEnv`.

    `terminated` and `truncated` are true only in the transition that ends a row's episode. After that the row does not change
    (reward 0, both False, `consumed` 0) until `reset(options={"reset_mask": mask})` starts a new episode in it.

    Observations, actions and information are the same as for `TokenEnv`, with a leading axis b. If only some rows have a piece
    of information, Gymnasium's mask `"_key"` tells which.

    Args:
        streams: The streams.
        copy: Whether to return copies of the observation buffers. Without copies, the next step changes the arrays of an
            observation.
        manifest: The settings that determine an episode, as plain data, for the records of a run.
    """

    autoreset_mode = AutoresetMode.DISABLED
    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc] # constant here
        "render_modes": [],
        "render_fps": 30,
        "autoreset_mode": autoreset_mode,
    }

    def __init__(self, streams: TokenStreams, *, copy: bool = True, manifest: Mapping[str, Any] | None = None) -> None:
        self.streams = streams
        self.manifest = dict(manifest or {})
        self.num_envs = streams.num_streams
        self.copy = copy
        self.single_observation_space = observation_space(streams)
        self.single_action_space = action_space(streams)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batched_action_space(streams)
        self._every_row = np.ones(self.num_envs, dtype=bool)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Start episodes in all rows, or in the rows of a mask.

        Args:
            seed: An int, from which a seed is spawned for each row; or a list with a seed for each row. With a list, row i
                behaves like a `TokenEnv` that is reset with `seed[i]`; None continues the row's generator.
            options: `{"problems": i64[b]}` chooses problems by index; -1 draws a problem. `{"reset_mask": bool[b]}` resets only
                the rows whose entry is True, ignoring the other rows' entries of `problems`, `states` and `seed`. `{"states":
                [...]}` gives each row None or a captured state from which to continue, with the state's own problem.

        Returns:
            The observation, and info with `problem_id` and `problem_index` of the rows that were reset.

        Raises:
            InvalidArgumentError: If an option has another shape or dtype, a problem's index is out of range, or a state does
                not fit or its episode has ended.
            PromptTooLongError: If a prompt does not fit.
        """
        check_options(options, {"problems", "reset_mask", "states"})
        mask = self._reset_mask((options or {}).get("reset_mask"))
        problems = self._problems((options or {}).get("problems"))
        states = self._states((options or {}).get("states"))
        generators = self._row_generators(seed)
        rows = np.flatnonzero(mask).tolist()
        drop = len(rows) == self.num_envs
        self.streams.reset(
            rows,
            [generators[row] for row in rows],
            [problems[row] for row in rows],
            states=[states[row] for row in rows],
            drop_awaited=drop,
        )
        return self._observation(), self._reset_info(mask)

    def step(self, actions: ArrayLike) -> StepResult:
        """Append one token to each live row: `step_many(actions[:, None], ones(b))`."""
        tokens = np.asarray(actions)
        if tokens.shape != (self.num_envs,) or tokens.dtype.kind not in "iu":
            raise IllegalTokenError(
                f"expected one integer token for each of {self.num_envs} rows, shape ({self.num_envs},), "
                f"got {tokens.dtype} of shape {tokens.shape}"
            )
        chunk = np.ascontiguousarray(tokens, dtype=np.int64)[:, None]
        return self._result(self.streams.advance(chunk))

    def step_many(self, tokens: ArrayLike, counts: ArrayLike) -> StepResult:
        """Append up to n tokens to each live row.

        Args:
            tokens: i64[b n].
            counts: i64[b], number of valid tokens in each row, from the left.

        Returns:
            The observation, the reward f64[b] (the left-to-right sum of `info["rewards"]`), terminated, truncated and info.

        Raises:
            IllegalTokenError: If a valid token is outside the vocabulary, a token that would be consumed is not legal, or
                shapes differ.
        """
        chunk, lengths = as_tokens(tokens, dims=2), as_tokens(counts, dims=1)
        if len(chunk) != self.num_envs or len(lengths) != self.num_envs:
            raise IllegalTokenError(
                f"expected {self.num_envs} rows, got tokens {chunk.shape} and counts {lengths.shape}"
            )
        if ((lengths < 0) | (lengths > chunk.shape[1])).any():
            raise IllegalTokenError(
                f"counts must be in [0, {chunk.shape[1]}], the width of tokens; got {lengths.tolist()}"
            )
        return self._result(self.streams.advance(chunk, lengths))

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer."""
        return self.streams.rules.tokenizer

    @property
    def num_problems(self) -> int:
        """Number of problems in the data set."""
        return len(self.streams.dataset)

    def wait(self, *, every: bool = True) -> StepResult:
        """Wait for all pending verdicts under `verification="deferred"`; no tokens are consumed.

        Args:
            every: False to wait only until the first verdict can be delivered.
        """
        return self._result(self.streams.wait(every=every))

    def get_state(self, row: int) -> StreamState:
        """Capture one row as a picklable value."""
        return self.streams.get_state(row)

    def set_state(self, row: int, state: StreamState) -> None:
        """Put one row into a captured state of an environment with the same data set and settings."""
        self.streams.set_state(row, state)

    def fork(self, row: int, into: Sequence[int]) -> None:
        """Copy one row into other rows, which draw later problems with their own generators."""
        self.streams.fork(row, into)

    @property
    def verification_seconds(self) -> float:
        """Wall time of all verdicts so far, in seconds, summed over calls. Calls in the background may overlap."""
        return self.streams.verification_seconds

    def close_extras(self, **kwargs: object) -> None:
        """Release the resources of verification."""
        self.streams.close()

    def _reset_mask(self, mask: object) -> NDArray[np.bool_]:
        if mask is None:
            return self._every_row
        array = np.asarray(mask)
        if array.shape != (self.num_envs,) or array.dtype != bool:
            raise InvalidArgumentError(
                f"options['reset_mask'] must be bool of shape ({self.num_envs},), got {array.dtype} of shape {array.shape}"
            )
        return array

    def _problems(self, problems: object) -> list[int]:
        if problems is None:
            return [DRAW] * self.num_envs
        array = np.asarray(problems)
        if array.shape != (self.num_envs,) or array.dtype.kind not in "iu":
            raise InvalidArgumentError(
                f"options['problems'] must be one integer for each of {self.num_envs} rows (-1 draws), "
                f"got {array.dtype} of shape {array.shape}"
            )
        return [int(index) for index in array]

    def _states(self, states: object) -> Sequence[StreamState | None]:
        if states is None:
            return [None] * self.num_envs
        if not isinstance(states, Sequence) or len(states) != self.num_envs:
            raise InvalidArgumentError(
                f"options['states'] must be a list with a state or None for each of {self.num_envs} rows, got {states!r}"
            )
        return states

    def _row_generators(self, seed: int | Sequence[int | None] | None) -> list[np.random.Generator | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int | np.integer):
            return [_generator(child) for child in np.random.SeedSequence(int(seed)).spawn(self.num_envs)]
        if len(seed) != self.num_envs:
            raise InvalidArgumentError(f"expected one seed for each of {self.num_envs} rows, got {len(seed)}")
        return [None if row_seed is None else _generator(np.random.SeedSequence(row_seed)) for row_seed in seed]

    def _observation(self) -> Observation:
        tokens, length = self.streams.tokens, self.streams.length[:, None]
        return {"tokens": tokens.copy(), "length": length.copy()} if self.copy else {"tokens": tokens, "length": length}

    def _reset_info(self, mask: NDArray[np.bool_]) -> Info:
        ids = np.array([problem.id if (problem := self.streams.problem(row)) else "" for row in range(self.num_envs)])
        info: Info = {"problem_id": ids.astype(object), "problem_index": self.streams.problem_index.copy()}
        info |= {f"_{key}": mask.copy() for key in info}
        return self._with_mask(info)

    def _with_mask(self, info: Info) -> Info:
        masks = self.streams.legal_masks()
        if masks is not None:
            info["action_mask"] = masks.copy() if self.copy else masks
            info["_action_mask"] = self._every_row.copy()
        return info

    def _result(self, transition: Transition) -> StepResult:
        every = self._every_row.copy() if self.copy else self._every_row
        info: Info = {
            "consumed": transition.consumed,
            "_consumed": every,
            "rewards": transition.rewards,
            "_rewards": every,
        }
        if np.count_nonzero(transition.inserted):
            info |= {"inserted": transition.inserted, "_inserted": transition.inserted > 0}
        if np.count_nonzero(transition.new_context):
            info |= {"new_context": transition.new_context, "_new_context": transition.new_context.copy()}
        pending = self.streams.pending_rows()
        if pending:
            info["pending"] = np.isin(np.arange(self.num_envs), pending)
            info["_pending"] = info["pending"].copy()
        if transition.ended:
            info |= self._ended_info(transition)
        return (
            self._observation(),
            transition.reward,
            transition.terminated,
            transition.truncated,
            self._with_mask(info),
        )

    def _ended_info(self, transition: Transition) -> Info:
        info: Info = {}
        rows = list(transition.ended)
        for key in ("problem_id", "completion", "verdict"):
            info |= self._of_rows(key, {row: getattr(transition.ended[row], key) for row in rows})
        scored = {row: ended.token_scores for row, ended in transition.ended.items() if ended.token_scores}
        return info | self._of_rows("token_scores", scored) if scored else info

    def _of_rows(self, key: str, values_by_row: Mapping[int, object]) -> Info:
        """Values of some rows as information of all rows, with Gymnasium's mask."""
        values = np.full(self.num_envs, None, dtype=object)
        mask = np.zeros(self.num_envs, dtype=bool)
        for row, value in values_by_row.items():
            values[row], mask[row] = value, True
        return {key: values, f"_{key}": mask}


def _generator(seed: np.random.SeedSequence) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))
