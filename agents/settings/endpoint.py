"""Settings of a server that samples completions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from verifiers import Above, AtLeast, HTTPAddress, InvalidArgumentError, check_types, redacted

Route = Literal["chat", "completions"]
ToolForm = Literal["protocol", "text"]


@dataclass(frozen=True)
class EndpointConfig:
    """Settings of the server, and of the requests to it.

    Raises:
        InvalidArgumentError: If a setting has the wrong type, or is out of range.
        UnknownNameError: If there is no such route; the message suggests the nearest route.
    """

    base_url: Annotated[str, HTTPAddress("http://localhost:8000/v1")]
    """Address of the server's API, such as http://localhost:8000/v1."""
    model: str
    """The model's name on the server."""
    api_key: str | None = field(default=None, repr=False)
    """Key of the server; None for a server without a key. On a command line write env:NAME, where NAME is the environment
    variable that contains the key."""
    route: Route = "chat"
    """Kind of request. "chat" sends messages, which the server renders with the model's template; "completions" sends the
    prompt as text."""
    tools: ToolForm = "protocol"
    """How an environment's tools are described and called. "protocol" uses the fields `tools` and `tool_calls`, which the
    server must support; "text" writes descriptions and calls into the text of messages. The route "completions" supports only
    "text"."""
    concurrency: Annotated[int, AtLeast(1)] = 64
    """Maximum number of simultaneous requests."""
    timeout_s: Annotated[float, Above(0, infinite=True)] = 600.0
    """Seconds after which a request without a complete answer counts as failed."""
    retries: Annotated[int, AtLeast(0)] = 5
    """Maximum number of further attempts after a failed request."""
    backoff_s: Annotated[float, AtLeast(0)] = 1.0
    """Seconds before the second attempt. The wait doubles with each further attempt, up to a minute, unless the server names a
    time."""
    price: Annotated[tuple[float, float] | None, AtLeast(0)] = None
    """The server's price of a million prompt tokens and its price of a million sampled tokens, for computing the cost of
    samples. None if the server is free."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of each request, such as top_p. The value None omits a field that the server does not accept, such as
    seed."""

    def __post_init__(self) -> None:
        check_types(self)
        if not self.model:
            raise InvalidArgumentError("model must be the name of a model that the server knows, got ''")

    def cost(self, prompt_tokens: int, tokens: int) -> float | None:
        """The cost of these numbers of prompt tokens and sampled tokens; None without a price."""
        return None if self.price is None else (prompt_tokens * self.price[0] + tokens * self.price[1]) / 1e6

    @property
    def manifest(self) -> dict[str, Any]:
        """The settings that determine the completions, without secrets."""
        tools = {} if self.tools == "protocol" else {"tools": self.tools}
        return {"base_url": redacted(self.base_url), "route": self.route, **tools, "body": redacted(dict(self.body))}
