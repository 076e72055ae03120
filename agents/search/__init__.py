"""Search: give one answer after trying several completions, or a tree of completions.

A search chooses among its tries by a guide. Most guides know no more than the policy: the policy's own probabilities, a vote of
the answers, or a reward model. The guide `"oracle"` is the verifier that scores the result in the end. Like pass@k, its results
show what could be found, and are not an accuracy.

For example, `agents.evaluate(env, policy, search=BestOfN(16, "majority"))` evaluates the results of a search.

The classes of this package are imported when they are first used, so that an evaluation without a search needs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verifiers import lazy_face

if TYPE_CHECKING:
    from agents.rollouts.search import Search as Search, SearchResult as SearchResult
    from agents.search.beam import Beam as Beam
    from agents.search.best_of_n import BestOfN as BestOfN
    from agents.search.mcts import MCTS as MCTS

__getattr__, __dir__, __all__ = lazy_face(__name__)
