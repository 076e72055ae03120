"""Environments: problems, tokenizers, prompts and token-level Gymnasium environments. This package never imports torch.

Importing this package registers the ids `rlvr/...` with Gymnasium. The objects that the package exports are imported when they
are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlvr_envs._names import require_own

require_own("verifiers")
require_own("agents")

from rlvr_envs.registration import register_environments  # noqa: E402 - after the check above
from verifiers import __version__ as __version__, lazy_face  # noqa: E402

if TYPE_CHECKING:
    from rlvr_envs import dialogue as dialogue, exact as exact, tasks as tasks, worlds as worlds
    from rlvr_envs.data import Row as Row, read_rows as read_rows
    from rlvr_envs.envs import (
        OWN_VERIFIER as OWN_VERIFIER,
        CheckedTask as CheckedTask,
        PromptRenderer as PromptRenderer,
        Settings as Settings,
        StateEnv as StateEnv,
        TaskEnv as TaskEnv,
        TaskSpec as TaskSpec,
        check_task as check_task,
        question_in as question_in,
    )
    from rlvr_envs.finding import (
        environment_class as environment_class,
        find_environment as find_environment,
        state_environment as state_environment,
    )
    from rlvr_envs.message_env import MessageEnv as MessageEnv, MessageEpisode as MessageEpisode
    from rlvr_envs.mixed_streams import MixedDataset as MixedDataset
    from rlvr_envs.mixture import (
        MixtureEnv as MixtureEnv,
        mix as mix,
        part_arguments as part_arguments,
        with_levels as with_levels,
    )
    from rlvr_envs.prompts import (
        PRESETS as PRESETS,
        ChatPrompt as ChatPrompt,
        Exemplar as Exemplar,
        Prompt as Prompt,
        TextPrompt as TextPrompt,
        get_prompt as get_prompt,
    )
    from rlvr_envs.registration import (
        ENVIRONMENTS as ENVIRONMENTS,
        STATE_ENVIRONMENTS as STATE_ENVIRONMENTS,
        environment_id as environment_id,
        register_environments as register_environments,  # noqa: TC004 - so that `__all__` has it
        short_name as short_name,
    )
    from rlvr_envs.rules import Rules as Rules
    from rlvr_envs.streams import StreamState as StreamState, TokenStreams as TokenStreams
    from rlvr_envs.text_actions import TextActions as TextActions
    from rlvr_envs.token_env import TokenEnv as TokenEnv
    from rlvr_envs.tokenizers import (
        ByteTokenizer as ByteTokenizer,
        CharTokenizer as CharTokenizer,
        HuggingFaceTokenizer as HuggingFaceTokenizer,
        Tokenizer as Tokenizer,
        decode as decode,
        get_tokenizer as get_tokenizer,
        stop_tokens as stop_tokens,
        turn_end as turn_end,
    )
    from rlvr_envs.types import (
        CheckedInteraction as CheckedInteraction,
        Dataset as Dataset,
        EndCondition as EndCondition,
        Ended as Ended,
        FixedActions as FixedActions,
        Interaction as Interaction,
        LegalActions as LegalActions,
        Observation as Observation,
        ProcessScorer as ProcessScorer,
        Reply as Reply,
        TextCompletion as TextCompletion,
        ToolCall as ToolCall,
        Turn as Turn,
    )
    from rlvr_envs.vector_env import TokenVectorEnv as TokenVectorEnv

__distribution__ = "rlvr-envs"

__getattr__, __dir__, __all__ = lazy_face(__name__)

register_environments()
