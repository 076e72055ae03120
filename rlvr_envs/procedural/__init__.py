"""Problems made by programs: no download, any number of them, disjoint train and test splits.

A family is a file in `rlvr_envs.tasks`; the code shared by all of them, a verifier, and the texts of `Instructions` are here.
"""

from rlvr_envs.procedural.base import ProceduralDataset
from rlvr_envs.procedural.polynomial import PolynomialVerifier

__all__ = ["PolynomialVerifier", "ProceduralDataset"]
