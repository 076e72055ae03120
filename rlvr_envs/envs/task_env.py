"""`TaskEnv`: the environment of a `TaskSpec`, as one stream or as many streams at once."""

from __future__ import annotations

from typing import Any, ClassVar

from rlvr_envs.envs.build import build
from rlvr_envs.envs.spec import TaskSpec
from rlvr_envs.token_env import TokenEnv
from rlvr_envs.vector_env import TokenVectorEnv
from verifiers import InvalidArgumentError


class TaskEnv(TokenEnv):
    """An environment with a registered id.

    ## Action Space
    `Discrete(vocab_size)`: the id of the next token. If only fixed tokens are legal, the space holds and samples only these.

    ## Observation Space
    `Dict(tokens=Box(0, vocab_size - 1, (l,), int32), length=Box(0, l, (1,), int32))`: the first `length[0]` entries of `tokens`
    are the prompt and everything that followed it, and the other entries are 0. The length `l` is `max_prompt_tokens +
    max_new_tokens + max_inserted_tokens`, or `max_context_tokens` if this is less.

    ## Episode End
    Termination: a stop token (the tokenizer's end token) or a stop string was produced, or the end condition holds.
    Truncation: `max_new_tokens` tokens were produced without termination, or the verifier failed. Termination and truncation
    are never merged. To limit episodes, set `max_new_tokens` instead of `max_episode_steps` of `gym.make`: Gymnasium's
    `TimeLimit` cuts an episode off without a verdict and has no `step_many`.

    ## Information
    `reset` gives `problem_id` and `problem_index`. `step` gives `consumed` and `rewards` (one for each consumed token), and at
    the end `problem_id`, `completion` (the decoded text that was judged) and `verdict`. If legal tokens are restricted, both
    give `action_mask`.

    ## Version History
    v0: first version.
    """

    task: ClassVar[TaskSpec]

    def __init__(self, *, render_mode: str | None = None, **options: Any) -> None:
        streams, self.manifest = build(self.task, 1, options)
        super().__init__(streams, render_mode=render_mode)

    @classmethod
    def make_vec(cls, num_envs: int = 1, *, copy: bool = True, **options: Any) -> TokenVectorEnv:
        """Build `num_envs` streams as one native vector environment; see `TokenVectorEnv` for `copy`.

        Raises:
            InvalidArgumentError: If the class overrides methods that the vector environment does not call. For other errors,
                see `build`.
        """
        overridden = [
            name for name in ("__init__", "reset", "step") if getattr(cls, name) is not getattr(TaskEnv, name)
        ]
        if overridden:
            raise InvalidArgumentError(
                f"{cls.__name__} overrides {', '.join(overridden)}, which its vector environment does not call: put the "
                "difference into its TaskSpec (docs/plugging-in.md), or name a function that builds it, whose environments are "
                "then stepped one at a time"
            )
        streams, manifest = build(cls.task, num_envs, options)
        return TokenVectorEnv(streams, copy=copy, manifest=manifest)
