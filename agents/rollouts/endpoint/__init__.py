"""Whole completions from a server that speaks OpenAI's protocol: requests, and verdicts on the answers.

`client` sends requests and reads answers; `sampling` turns problems into requests, and answers into samples. Both are imported
when their names are first used.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from verifiers import lazy_face

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from agents.rollouts.endpoint.client import Endpoint as Endpoint
    from agents.rollouts.endpoint.sampling import endpoint_env as endpoint_env, sample_endpoint as sample_endpoint


def is_endpoint(policy: object) -> TypeIs[Endpoint]:
    """Whether a policy is an `Endpoint`, without loading the client: before it is loaded, nothing is one."""
    client = sys.modules.get(f"{__name__}.client")
    return client is not None and isinstance(policy, client.Endpoint)


__getattr__, __dir__, __all__ = lazy_face(__name__)
