"""Generated problems: any number of them, without a download, in disjoint train and test splits.

Each family is a file in `rlvr_envs.tasks`. This package holds code that the families share, a verifier, and the texts of
`Instructions`.
"""

from rlvr_envs.procedural.base import ProceduralDataset
from rlvr_envs.procedural.polynomial import PolynomialVerifier

__all__ = ["PolynomialVerifier", "ProceduralDataset"]
