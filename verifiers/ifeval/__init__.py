"""Checks whether a response follows its instructions: the verifiable instructions of IFEval and IFBench."""

from verifiers.ifeval.catalogue import rules
from verifiers.ifeval.reference import Instruction, read_instructions
from verifiers.ifeval.verifier import IFEvalVerifier

__all__ = ["IFEvalVerifier", "Instruction", "read_instructions", "rules"]
