"""verl's agent loop for episodes of several turns, which `agents.adapters.verl.export` names in `agent.yaml`.

The environment receives and returns tokens, as in this package's own training. So training uses exactly the sampled tokens; the
environment's tokens between them have a mask of 0 in the response. Rewards are the same as for the same episode in this
package. A verifier that breaks raises an exception, since verl can't leave a sample out.
"""

from __future__ import annotations

import ast
import asyncio
import functools
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput
from verl.utils.profiler import simple_timer

import rlvr_envs
from agents.adapters.episodes import streams_of
from agents.adapters.verl import check_row, result_of
from agents.runs.verdicts import error_cause
from verifiers import InvalidArgumentError, Outcome, VerifierFailureError


class EpisodeLoop(AgentLoopBase):  # type: ignore[misc]  # verl has no types
    """Plays one episode.

    Args:
        env: As for `rlvr_envs.environment_class`.
        split: Split of the environment's data set.
        arguments: Arguments of the environment, as the text of a Python dictionary.
        **given: Arguments that verl passes to every agent loop.

    Raises:
        InvalidArgumentError: If verl's limits are too small for an episode, or not all tokens are legal in the environment.
    """

    def __init__(self, *, env: str, split: str, arguments: str, **given: Any) -> None:
        super().__init__(**given)
        self._env = env
        self._streams = _streams(env, split, arguments, self.tokenizer)
        rules = self._streams.rules
        if rules.legal_actions is not None:
            raise InvalidArgumentError(f"{env} limits which tokens are legal, and verl's engines can't limit tokens")
        most = rules.max_new_tokens + rules.max_inserted_tokens
        for name, limit, needed in (
            ("data.max_response_length", self.rollout_config.response_length, most),
            ("data.max_prompt_length", self.rollout_config.prompt_length, rules.max_prompt_tokens),
        ):
            if limit < needed:
                raise InvalidArgumentError(
                    f"an episode of {env} has up to {needed} such tokens: set {name} to that, or give the environment smaller "
                    f"limits (max_new_tokens, max_inserted_tokens, max_prompt_tokens); got {limit}"
                )

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        """Play the episode of a row.

        Raises:
            VerifierFailureError: If the verifier could not judge.
            InvalidArgumentError: If the environment begins a new context, or the engine samples nothing.
            DataError: If the row belongs to another problem.
        """
        env = rlvr_envs.TokenEnv(rlvr_envs.TokenStreams(self._streams.dataset, self._streams.rules, 1))
        about = row["extra_info"]
        check_row(about, self._env, env.streams.dataset[int(about["index"])])
        played = _Played(*env.reset(options={"problem": int(about["index"])}))
        while not played.over:
            with simple_timer("generate_sequences", played.metrics):
                sampled = await self._sample(env, played, sampling_params)
            with simple_timer("tool_calls", played.metrics):
                played.take(sampled, await asyncio.to_thread(env.step_many, sampled.token_ids))
        return played.output()

    async def _sample(self, env: rlvr_envs.TokenEnv, played: _Played, sampling_params: dict[str, Any]) -> Any:
        limits = {
            "max_tokens": env.streams.rules.max_new_tokens - sum(played.mask),
            "stop_token_ids": list(rlvr_envs.stop_tokens(env.tokenizer)),
        }
        sampled = await self.server_manager.generate(
            request_id=uuid4().hex,
            prompt_ids=played.prompt + played.response,
            sampling_params={**sampling_params, **limits},
        )
        if not sampled.token_ids:
            raise InvalidArgumentError("the engine sampled no token: give it a longer context, max_model_len")
        return sampled


class _Played:
    """An episode up to the current turn, in verl's fields."""

    def __init__(self, observation: rlvr_envs.Observation, info: dict[str, Any]) -> None:
        self.prompt: list[int] = observation["tokens"][: int(observation["length"][0])].tolist()
        self.response: list[int] = []
        self.mask: list[int] = []
        """1 for the model's tokens, 0 for the environment's tokens."""
        self.metrics: dict[str, Any] = {}
        self.over = False
        self._logprobs: list[float] = []
        self._score = 0.0
        self._turns = 1
        self._info = info

    def take(self, sampled: Any, step: tuple[rlvr_envs.Observation, float, bool, bool, dict[str, Any]]) -> None:
        """Add the sampled tokens and the environment's answer to the episode."""
        observation, reward, terminated, truncated, self._info = step
        if self._info.get("new_context"):
            raise InvalidArgumentError("the environment begins a new context, which verl has no place for")
        consumed, inserted = self._info["consumed"], self._info.get("inserted", 0)
        end = int(observation["length"][0])
        self.response += [*sampled.token_ids[:consumed], *observation["tokens"][end - inserted : end].tolist()]
        self.mask += [1] * consumed + [0] * inserted
        self._logprobs += [*(sampled.log_probs or [])[:consumed], *([0.0] * inserted)]
        self._score += reward
        self._turns += 1 + bool(inserted)
        self.over = terminated or truncated

    def output(self) -> AgentLoopOutput:
        """Return the judged episode."""
        verdict = self._info.get("verdict")
        if verdict is not None and verdict.outcome is Outcome.VERIFIER_ERROR:
            raise VerifierFailureError(
                f"an episode of problem {self._info['problem_id']!r} could not be judged, and verl can't leave it out: "
                f"{error_cause(verdict.detail)}"
            )
        told = {} if verdict is None else {**result_of(verdict), "score": self._score}
        return AgentLoopOutput(
            prompt_ids=self.prompt,
            response_ids=self.response,
            response_mask=self.mask,
            response_logprobs=self._logprobs if len(self._logprobs) == len(self.mask) else None,
            reward_score=self._score,
            num_turns=self._turns,
            metrics=self.metrics,
            extra_fields={"turn_scores": [], "tool_rewards": [], "reward_extra_info": told},
        )


@functools.lru_cache(maxsize=8)
def _streams(env: str, split: str, arguments: str, tokenizer: Any) -> rlvr_envs.TokenStreams:
    """The environment's streams, which are made once for all episodes of a worker."""
    return streams_of(env, split, tokenizer, ast.literal_eval(arguments))
