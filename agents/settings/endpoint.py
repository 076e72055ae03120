"""Settings of a server that samples completions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from verifiers import InvalidArgumentError, check_types, redacted

Route = Literal["chat", "completions"]
ToolForm = Literal["protocol", "text"]


@dataclass(frozen=True)
class EndpointConfig:
    """Settings of the server, and of the requests to it.

    Raises:
        InvalidArgumentError: If a setting has the wrong type, or is out of range.
        UnknownNameError: If there is no such route; the message suggests the nearest.
    """

    base_url: str
    """Address of the server's API, such as http://localhost:8000/v1."""
    model: str
    """Name of the model, as the server knows it."""
    api_key: str | None = field(default=None, repr=False)
    """Key of the server; None for a server without one. On a command line write env:NAME, where NAME is the variable that
    contains the key."""
    route: Route = "chat"
    """Kind of request: "chat" sends messages, which the server puts into its model's template; "completions" sends the prompt
    as text."""
    tools: ToolForm = "protocol"
    """How an environment's tools are described and called: "protocol" uses the fields `tools` and `tool_calls`, which the
    server has to support; "text" uses the messages themselves. The route "completions" only has text."""
    concurrency: int = 64
    """Number of requests that wait for an answer at once."""
    timeout_s: float = 600.0
    """Seconds after which an attempt without a complete answer has failed."""
    retries: int = 5
    """Number of further attempts after one that failed."""
    backoff_s: float = 1.0
    """Seconds before the second attempt; each further one waits twice as long, up to a minute, unless the server names a
    time."""
    price: tuple[float, float] | None = None
    """The server's price of a million tokens of prompts, and of a million sampled ones, from which the cost of samples is
    computed; None if it is free."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of each request, such as top_p; None leaves a field out that the server does not accept, such as seed."""

    def __post_init__(self) -> None:
        check_types(self)
        if not self.base_url.startswith(("http://", "https://")):
            raise InvalidArgumentError(
                f"base_url must begin with http:// or https://, such as http://localhost:8000/v1; got {self.base_url!r}"
            )
        if not self.model:
            raise InvalidArgumentError("model must be the name of a model that the server knows, got ''")
        for name, least in (("concurrency", 1), ("retries", 0)):
            if getattr(self, name) < least:
                raise InvalidArgumentError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.price is not None and not all(0 <= price < math.inf for price in self.price):
            raise InvalidArgumentError(f"price must be two amounts of at least 0, got {self.price}")
        if not (self.timeout_s > 0 and 0 <= self.backoff_s < math.inf):
            raise InvalidArgumentError(
                f"timeout_s must be greater than 0 and backoff_s at least 0, got {self.timeout_s} and {self.backoff_s}"
            )

    def cost(self, prompt_tokens: int, tokens: int) -> float | None:
        """The cost of some tokens of prompts and some sampled ones; None without a price."""
        return None if self.price is None else (prompt_tokens * self.price[0] + tokens * self.price[1]) / 1e6

    @property
    def manifest(self) -> dict[str, Any]:
        """The settings that determine the completions, without secrets."""
        tools = {} if self.tools == "protocol" else {"tools": self.tools}
        return {"base_url": redacted(self.base_url), "route": self.route, **tools, "body": redacted(dict(self.body))}
