"""`Rules`: everything that determines an episode, apart from its problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from rlvr_envs.dialogue import Dialogue, ToolSchema
from rlvr_envs.stop_strings import StopStrings
from rlvr_envs.tokenizers import Tokenizer, stop_tokens, token_table, utf8
from rlvr_envs.types import EndCondition, FixedActions, Interaction, LegalActions, ProcessScorer
from verifiers import AtLeast, InvalidArgumentError, Message, Problem, Verifier, check_types

Verification = Literal["sync", "deferred"]


@dataclass(frozen=True)
class Rules:
    """Everything that determines an episode, apart from its problem.

    Raises:
        InvalidArgumentError: If a limit is not positive, a stop is neither text nor a token of the vocabulary, a fixed mask of
            legal tokens has the wrong length, or a function does not accept the arguments that the environment passes.
    """

    tokenizer: Tokenizer
    render_prompt: Callable[[Problem], str]
    """Turns a problem into the text of its prompt. An object with a method `parts`, such as a `PromptRenderer`, also returns
    the text in parts."""
    max_prompt_tokens: Annotated[int, AtLeast(1)]
    max_new_tokens: Annotated[int, AtLeast(1)]
    """Maximum number of the policy's own tokens, over all turns."""
    verifier: Verifier | None = None
    stop: Sequence[str | int] = ()
    """Stop strings and further stop tokens; the tokenizer's own stop tokens (`rlvr_envs.stop_tokens`) always stop."""
    end_token: int | None = None
    """The token that ends a turn given as text; None for the tokenizer's end token. In a chat, the chat template ends a turn
    with this token (`rlvr_envs.turn_end`)."""
    legal_actions: LegalActions | None = None
    process_scorer: ProcessScorer | None = None
    end_condition: EndCondition | None = None
    """Ends the episode, not only the turn, as soon as the condition holds."""
    interaction: Interaction | None = None
    max_inserted_tokens: Annotated[int, AtLeast(0)] = 0
    """Maximum number of tokens that the interaction may append over a whole episode. A longer reply is cut, and a mark shows
    the cut. The episode is truncated if not even the cut reply fits."""
    max_turns: Annotated[int | None, AtLeast(1)] = None
    """Number of the policy's turns after which an episode that would go on is truncated; None if unlimited."""
    max_context_tokens: Annotated[int | None, AtLeast(1)] = None
    """Maximum number of tokens in the policy's view, which is its observation; None for the longest possible episode. A turn
    that fills the view is truncated, unless the interaction begins a new context (`Reply.context`) first. An answer is cut so
    that the policy's next turn has room for `turn_tokens` or, by default, for a quarter of the context, but at most for half of
    the remaining context."""
    turn_tokens: Annotated[int | None, AtLeast(1)] = None
    """Number of the policy's tokens after which a turn ends without a stop and is answered; None if unlimited."""
    dialogue: Dialogue | None = None
    """How replies become tokens, and how tool calls are read; by default, in plain text."""
    opening: Callable[[Problem], tuple[Message, ...]] | None = None
    """Returns the opening messages of a dialogue that encodes the prompt itself, such as a dialogue that lists tools."""
    tools: Sequence[ToolSchema] = ()
    """The tools that the policy may call, in the form that servers expect. The interaction performs the calls."""
    interaction_workers: Annotated[int, AtLeast(1)] = 32
    """Number of threads that answer rows at the same time."""
    verification: Verification = "sync"
    verification_workers: Annotated[int, AtLeast(1)] = 16
    """Number of threads for deferred verdicts; the verifier must allow this number of concurrent calls. A verifier with
    `verify_batch` gets all episodes of a transition in one call. Any other verifier gets each episode in a separate call."""

    def __post_init__(self) -> None:
        check_types(self)
        for stop in self.stop:
            if not isinstance(stop, str | int | np.integer):
                raise InvalidArgumentError(f"a stop must be text or a token, got {type(stop).__name__} {stop!r}")
            if isinstance(stop, str):
                utf8(stop)
        if bool(self.interaction) != bool(self.max_inserted_tokens > 0):
            raise InvalidArgumentError("an interaction and max_inserted_tokens > 0 come together: give both or neither")
        if self.max_context_tokens is not None and self.max_context_tokens <= self.max_prompt_tokens:
            raise InvalidArgumentError(
                f"max_context_tokens must be more than max_prompt_tokens={self.max_prompt_tokens}, so that the policy can "
                f"answer any prompt; got {self.max_context_tokens}"
            )
        legal, vocab_size = self.legal_actions, self.tokenizer.vocab_size
        if isinstance(legal, FixedActions) and len(legal.mask) != vocab_size:
            raise InvalidArgumentError(
                f"the mask of legal tokens must have one entry for each of the {vocab_size} tokens, got {len(legal.mask)}"
            )

    @property
    def buffer_tokens(self) -> int:
        """The length of the token buffer of one stream."""
        longest = self.max_prompt_tokens + self.max_new_tokens + self.max_inserted_tokens
        return longest if self.max_context_tokens is None else min(longest, self.max_context_tokens)

    def stop_tokens(self) -> NDArray[np.bool_]:
        """The tokens that end a turn, as bool[vocab_size]."""
        named = [token for stop in self.stop if (token := self._token_of(stop)) is not None]
        return token_table(self.tokenizer, [self.turn_end, *stop_tokens(self.tokenizer), *named])

    @property
    def turn_end(self) -> int:
        """The token that ends a turn given as text."""
        return self.tokenizer.eos_token if self.end_token is None else self.end_token

    def _token_of(self, stop: str | int) -> int | None:
        """The token that a stop names: the stop itself, or the special token that it spells out.

        None for other text. Special tokens need this, since their bytes never appear in a turn.
        """
        return self.tokenizer.special_tokens.get(stop) if isinstance(stop, str) else stop

    def stop_strings(self) -> StopStrings | None:
        """The matcher for the strings that end a turn; None if there are no such strings."""
        strings = [stop for stop in self.stop if isinstance(stop, str) and self._token_of(stop) is None]
        return StopStrings(strings, self.tokenizer.token_bytes, self.tokenizer.vocab_size) if strings else None
