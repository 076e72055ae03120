"""SkyRL-gym: use a verifier as an environment of one turn.

```
skyrl_gym.register(id="rlvr-math", entry_point="agents.adapters.skyrl:VerifierEnv", kwargs={"verifier": "math"})
```

A row of the data has `env_class: "rlvr-math"` and `reward_spec: {"ground_truth": ...}`, which is the reference. SkyRL-gym can't
leave a sample out, so a verifier that breaks raises an exception, which stops the run.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import verifiers
from agents.adapters.problems import judged, prompt_of
from verifiers import InvalidArgumentError, Problem

if TYPE_CHECKING:
    VerifierEnv: type[Any]


def __getattr__(name: str) -> Any:
    # The class is made on request, since its base class is in SkyRL-gym.
    if name == "VerifierEnv":
        return _environment_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@functools.cache
def _environment_class() -> type[Any]:
    from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

    class VerifierEnv(BaseTextEnv):  # type: ignore[misc]
        """An environment of one turn, which judges the answer.

        Args:
            env_config: SkyRL's configuration of the environment; not used.
            extras: The row, with `reward_spec.ground_truth` and further keys. The row becomes the problem's metadata.
            verifier: As for `verifiers.make`.
            verifier_args: Arguments of the verifier.
        """

        def __init__(
            self,
            env_config: object = None,
            extras: Mapping[str, Any] | None = None,
            verifier: str = "math",
            verifier_args: Mapping[str, Any] | None = None,
        ) -> None:
            super().__init__()
            self._row = dict(extras or {})
            if "ground_truth" not in self._row.get("reward_spec", {}):
                raise InvalidArgumentError(
                    f"a row needs reward_spec.ground_truth, the reference; it has {sorted(self._row)}"
                )
            self._verifier = verifiers.make(verifier, **(verifier_args or {}))
            self._prompt: Any = ""

        def init(self, prompt: Any) -> tuple[Any, dict[str, Any]]:
            """Store the chat that asks the question."""
            self._prompt = prompt
            return prompt, {}

        def step(self, action: str) -> Any:
            """Judge the answer, which ends the episode.

            Raises:
                VerifierFailureError: If the verifier could not judge.
            """
            reference = self._row["reward_spec"]["ground_truth"]
            problem = Problem(str(self._row.get("id", "")), prompt_of(self._prompt), reference, self._row)
            verdict = judged(self._verifier, action, problem, "SkyRL-gym")
            details = {"outcome": verdict.outcome.value, "answer": verdict.answer}
            return BaseTextEnvStepOutput(observations=[], reward=verdict.score, done=True, metadata=details)

    return VerifierEnv
