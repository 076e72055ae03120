"""The class of every error that this distribution raises, in one tree; a message is written where its error is raised.

```
RLVRError
├── UnknownNameError (LookupError)         a name that no registry holds; the message offers the nearest
│   └── UnknownArgumentError (TypeError)   an unexpected keyword; the message offers the nearest
├── InvalidArgumentError (ValueError)      an argument of the right type and a wrong value
│   └── UnreadableReferenceError           a problem's reference is not in a form that the verifier can use
├── MissingDependencyError (ImportError)   an optional package is needed; the message gives the install command
├── VerifierContractError (TypeError)      a verifier returned something that is not a verdict
├── VerifierFailureError (RuntimeError)    a verifier broke on too many episodes for a run to go on
├── SandboxUnavailableError (RuntimeError) the system offers no isolation for untrusted programs
├── DataError (ValueError)                 a data row or file is not as declared; the message names file and line
├── MissingDataError (FileNotFoundError)   a data set, a run or a file is not there; the message says how to get it
├── PromptTooLongError (ValueError)        a prompt does not fit the observation's buffer
├── IllegalTokenError (ValueError)         a token outside the vocabulary or the legal actions
├── DivergedError (FloatingPointError)     a model's weights are no longer finite numbers
├── CheckpointError (RuntimeError)         a checkpoint is missing, damaged or of another run
├── EngineError (RuntimeError)             an inference engine died, or does not do what it was asked
│   └── EngineDiedError                    an engine died, or a server no longer answers; open requests are lost
└── RankError (RuntimeError)               a process of a run died, hangs, or differs from the others; the message names it
```

Each class is also a subclass of the standard type named beside it, so `except ValueError` works as expected. Each takes one
message argument, so that it can be pickled.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RLVRError(Exception):
    """Base of every error raised on purpose by this distribution."""


class UnknownNameError(RLVRError, LookupError):
    """A name that no registry holds."""


class UnknownArgumentError(UnknownNameError, TypeError):
    """An unexpected keyword."""


class InvalidArgumentError(RLVRError, ValueError):
    """An argument of the right type and a wrong value."""


class UnreadableReferenceError(InvalidArgumentError):
    """A problem's reference is not in a form that the verifier can use."""


class MissingDependencyError(RLVRError, ImportError):
    """An optional package is needed and is not installed."""


class VerifierContractError(RLVRError, TypeError):
    """A verifier returned something that is not a verdict."""


class VerifierFailureError(RLVRError, RuntimeError):
    """A verifier broke on too large a share of a training run's episodes."""


class SandboxUnavailableError(RLVRError, RuntimeError):
    """The system offers no isolation for untrusted programs."""


class DataError(RLVRError, ValueError):
    """A data row or file is not as declared."""


class MissingDataError(RLVRError, FileNotFoundError):
    """A data set was found neither locally nor on the hub, or a run or a file is not where it was looked for."""


class PromptTooLongError(RLVRError, ValueError):
    """A prompt does not fit the observation's buffer."""


class IllegalTokenError(RLVRError, ValueError):
    """A token outside the vocabulary or outside the legal actions."""


class DivergedError(RLVRError, FloatingPointError):
    """A model's weights are no longer finite numbers, so that its outputs are not finite."""


class CheckpointError(RLVRError, RuntimeError):
    """A checkpoint is missing, damaged or belongs to another run."""


class EngineError(RLVRError, RuntimeError):
    """An inference engine died, or does not do what it was asked."""


class EngineDiedError(EngineError):
    """An inference engine died, or a server no longer answers, so that its open requests are lost."""


class RankError(RLVRError, RuntimeError):
    """A process of a run with several processes died, hangs, or differs from the others."""


_MOST_NAMES = 40
"""Maximum number of names that an error lists: more than any registry here has, fewer than a module may have."""
_MOST_WITH_HINT = 8
"""Maximum number of names listed after a suggestion; a longer list would hide the suggestion."""


def unknown_name(kind: str, name: object, known: Iterable[str], most: int = _MOST_NAMES) -> UnknownNameError:
    """Build the error for a name that is not registered, offering the nearest known name.

    Args:
        kind: What the name was meant to name, for example `"verifier"`.
        name: The value that was given, which may be something other than text.
        known: Every valid name.
        most: Maximum number of names that the message lists.
    """
    return UnknownNameError(f"unknown {kind} {name!r}.{_nearest(name, known, most)}")


def unknown_argument(function: str, name: str, known: Iterable[str]) -> UnknownArgumentError:
    """Build the error for an unexpected keyword, in Python's own words, offering the nearest expected keyword.

    Args:
        function: What was called, such as `"rlvr/GSM8K-v0"`.
        name: The keyword that was given.
        known: Every expected keyword.
    """
    said = f"{function} got an unexpected keyword argument {name!r}."
    return UnknownArgumentError(said + _nearest(name, known, _MOST_NAMES))


def _nearest(name: object, known: Iterable[str], most: int) -> str:
    names = sorted(set(known))
    folded = {candidate.casefold(): candidate for candidate in names}
    typed = str(name).casefold()
    # Names with the same letters come first: difflib finds "gspo" as near to "gpro" as "grpo".
    swapped = [candidate for candidate in folded if sorted(candidate) == sorted(typed)]
    begun = [candidate for candidate in folded if typed and candidate.startswith(typed)]
    nearest = swapped or difflib.get_close_matches(typed, folded, n=1) or begun
    hint = f" Did you mean {folded[nearest[0]]!r}?" if nearest else ""
    most = min(most, _MOST_WITH_HINT) if nearest else most
    shown = ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
    return f"{hint} Known: {shown or 'none'}."


def with_article(noun: str) -> str:
    """A noun after its indefinite article, which is chosen by the noun's first letter."""
    return f"{'an' if noun[0] in 'aeiouAEIO' else 'a'} {noun}"


def missing_dependency(package: str, extra: str, purpose: str) -> MissingDependencyError:
    """Build the error for an optional package that is not installed.

    Args:
        package: The package as installed, for example `"torch"`.
        extra: The extra of this distribution that installs it, for example `"train"`.
        purpose: What needs the package, as a noun phrase.
    """
    return MissingDependencyError(
        f"{purpose} needs the package {package!r}, which is not installed. Install it with: pip install 'rlvr-envs[{extra}]'"
    )
