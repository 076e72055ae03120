"""The interface of a policy that agents train, and policies on a language model, on vLLM, and on any torch module.

The module that defines a name is imported when the name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verifiers import lazy_face

if TYPE_CHECKING:
    from agents.policies.devices import policy_device as policy_device
    from agents.policies.torch_policy import TorchPolicy as TorchPolicy
    from agents.policies.transformers.byte_level import (
        copy_embeddings as copy_embeddings,
        hugging_face_bytes as hugging_face_bytes,
    )
    from agents.policies.transformers.loading import (
        load_model as load_model,
        load_policy as load_policy,
        load_tokenizer as load_tokenizer,
        save_model as save_model,
        tiny_model as tiny_model,
        whole_model_folder as whole_model_folder,
        writing_to as writing_to,
    )
    from agents.policies.transformers.policy import CausalLMPolicy as CausalLMPolicy

__getattr__, __dir__, __all__ = lazy_face(__name__)
