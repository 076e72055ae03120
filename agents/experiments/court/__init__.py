"""The estimators' court compares the expected gradient of any estimator with the exact gradient of its claimed objective.

An estimator is a function that computes a loss or advantages from a batch. The worlds are so small that all episodes and all
batches can be enumerated. Nothing is sampled, so any difference is a bias. `judge` tries an estimator on every case. Each case
adds one complication to groups of equally long episodes: unequal lengths, tokens of the environment, several turns, truncation,
broken verifiers, stale samples, a KL term, micro-batches, or ranks. `rlvr gradient-lab --estimator module:function` prints the
findings.

The objects that this package exports are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from verifiers import lazy_face

if TYPE_CHECKING:
    from agents.experiments.court.cases import Case as Case, case as case, every_case as every_case
    from agents.experiments.court.findings import Finding as Finding, Judgement as Judgement, judge as judge
    from agents.experiments.court.own import load as load, of_agent as of_agent
    from agents.experiments.court.record import Estimator as Estimator, Record as Record
    from agents.experiments.court.trial import Comparison as Comparison, compare as compare

__getattr__, __dir__, __all__ = lazy_face(__name__)
