"""Environments: problems, tokenizers, prompts and token-level Gymnasium environments; nothing here imports torch.

Importing this package registers the ids `rlvr/...` with Gymnasium.
"""

from rlvr_envs._names import require_own

require_own("verifiers")
require_own("agents")

import verifiers  # noqa: E402
from rlvr_envs import exact, tasks, worlds  # noqa: E402 - after the check above
from rlvr_envs.data import Row, read_rows  # noqa: E402
from rlvr_envs.envs import (  # noqa: E402
    OWN_VERIFIER,
    CheckedTask,
    PromptRenderer,
    Settings,
    StateEnv,
    TaskEnv,
    TaskSpec,
    check_task,
    question_in,
)
from rlvr_envs.prompts import PRESETS, ChatPrompt, Exemplar, Prompt, TextPrompt, get_prompt  # noqa: E402
from rlvr_envs.registration import (  # noqa: E402
    ENVIRONMENTS,
    STATE_ENVIRONMENTS,
    environment_class,
    environment_id,
    find_environment,
    register_environments,
    state_environment,
)
from rlvr_envs.streams import Rules, StreamState, TokenStreams  # noqa: E402
from rlvr_envs.text_actions import TextActions  # noqa: E402
from rlvr_envs.token_env import TokenEnv  # noqa: E402
from rlvr_envs.tokenizers import (  # noqa: E402
    ByteTokenizer,
    CharTokenizer,
    HuggingFaceTokenizer,
    Tokenizer,
    decode,
    get_tokenizer,
    stop_tokens,
    turn_end,
)
from rlvr_envs.types import (  # noqa: E402
    CheckedInteraction,
    Dataset,
    EndCondition,
    Ended,
    FixedActions,
    Interaction,
    LegalActions,
    Observation,
    ProcessScorer,
    Reply,
    ToolCall,
    Turn,
)
from rlvr_envs.vector_env import TokenVectorEnv  # noqa: E402

__distribution__ = "rlvr-envs"
__version__ = verifiers.__version__

register_environments()

__all__ = [
    "ENVIRONMENTS",
    "OWN_VERIFIER",
    "PRESETS",
    "STATE_ENVIRONMENTS",
    "ByteTokenizer",
    "CharTokenizer",
    "ChatPrompt",
    "CheckedInteraction",
    "CheckedTask",
    "Dataset",
    "EndCondition",
    "Ended",
    "Exemplar",
    "FixedActions",
    "HuggingFaceTokenizer",
    "Interaction",
    "LegalActions",
    "Observation",
    "ProcessScorer",
    "Prompt",
    "PromptRenderer",
    "Reply",
    "Row",
    "Rules",
    "Settings",
    "StateEnv",
    "StreamState",
    "TaskEnv",
    "TaskSpec",
    "TextActions",
    "TextPrompt",
    "TokenEnv",
    "TokenStreams",
    "TokenVectorEnv",
    "Tokenizer",
    "ToolCall",
    "Turn",
    "check_task",
    "decode",
    "environment_class",
    "environment_id",
    "exact",
    "find_environment",
    "get_prompt",
    "get_tokenizer",
    "question_in",
    "read_rows",
    "register_environments",
    "state_environment",
    "stop_tokens",
    "tasks",
    "turn_end",
    "worlds",
]
