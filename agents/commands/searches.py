"""Makes the search that the options of `rlvr eval` select."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, cast

import verifiers
from agents.commands.common import named_arguments, verifier_arguments
from agents.rollouts.search import Search
from agents.search.guides import GUIDES, Guide, GuideName
from verifiers import InvalidArgumentError, Verifier, unknown_argument


def search_for(name: str | None, pairs: Sequence[str], guide: str | None, guide_pairs: Sequence[str]) -> Search | None:
    """The search that a command's options select; None without a search."""
    if name is None:
        return None
    from agents.search import MCTS, Beam, BestOfN

    cls: Any = {"best-of-n": BestOfN, "beam": Beam, "mcts": MCTS}[name]
    fields = {field.name: field for field in dataclasses.fields(cls)}
    settings = named_arguments(pairs, "a search")
    for setting in settings:
        if setting not in fields or setting == "guide":
            raise unknown_argument(f"the search {name}", setting, [known for known in fields if known != "guide"])
    required = {known for known, field in fields.items() if field.default is dataclasses.MISSING}
    for missing in sorted(required - settings.keys() - {"guide"}):
        raise InvalidArgumentError(f"--search {name} needs {missing}: give --search-args {missing}=NUMBER")
    if "guide" in required:
        settings["guide"] = _guide(name, guide, guide_pairs)
    elif guide is not None or guide_pairs:
        raise InvalidArgumentError(f"--search {name} takes no guide: it goes by the probabilities of the policy")
    search: Search = cls(**settings)
    return search


def _guide(name: str, guide: str | None, pairs: Sequence[str]) -> Guide:
    if guide is None:
        raise InvalidArgumentError(
            f"--search {name} chooses by a guide: give --guide {', '.join(GUIDES)}, or a verifier such as reward_model"
        )
    if guide not in GUIDES:
        verifier: Verifier = verifiers.make(guide, **verifier_arguments(pairs))
        return verifier
    if pairs:
        raise InvalidArgumentError(f"the guide {guide} takes no arguments, got {list(pairs)}")
    return cast("GuideName", guide)
