"""The goal of a Lean proof, and how a completion's proof becomes source that Lean checks."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from verifiers.errors import InvalidArgumentError
from verifiers.proofs.references import check_texts

STANDARD_AXIOMS = ("propext", "Classical.choice", "Quot.sound")
"""The axioms of ordinary mathematics in Lean; `sorryAx`, and `Lean.ofReduceBool` of `native_decide`, are not among them."""

_OPEN_END = re.compile(r":=\s*(by\b\s*)?(?:sorry\s*)?\Z")
_THEOREM = re.compile(r"^[^\S\n]*(?:theorem|lemma)\s+([^\s:({\[⦃]+)", re.MULTILINE)
_ASSIGNED = re.compile(r"\s*:=")
_HARMLESS_LINE = re.compile(r"\s*(?:--.*|import .*|open .*|set_option maxHeartbeats .*)?")
# Forms of terms and tactics that run the completion's code during the check, read files, or change Lean's options.
_REFUSED = re.compile(r"\b(?:set_option|run_tac|by_elab|eval%|include_str|unsafe\b|native|plausible|slim_check)")
# Lean evaluates the configuration of a tactic, `(config := value)`, while it checks a proof, so its values may only be names
# and literals, alone or in `{field := value}`; named arguments look the same.
_PLAIN = r"[\w.']++"
_FIELDS = rf"\{{\s*+(?:{_PLAIN}\s*+:=\s*+{_PLAIN}\s*+,?\s*+)*+\}}"
_NAMED_VALUE = re.compile(rf"\(\s*+{_PLAIN}\s*+:=(?!\s*+(?:{_PLAIN}|{_FIELDS})\s*+\))")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class ProofError(ValueError):
    """A completion contains no proof that may be checked; the message says why."""


@dataclass(frozen=True)
class LeanGoal:
    """A theorem without its proof. All of its fields are trusted.

    Raises:
        InvalidArgumentError: If a field has the wrong type, or the statement is not a theorem that ends where its proof begins.
    """

    formal_statement: str
    """A Lean 4 file, with its imports, whose last declaration is a theorem that ends in `:=`, `:= by`, `:= sorry` or
    `:= by sorry`. Imports must reach `Lean`, as `import Mathlib` does."""
    axioms: tuple[str, ...] = STANDARD_AXIOMS
    """Full names of the axioms that a proof may use."""

    def __post_init__(self) -> None:
        check_texts(self)
        if _OPEN_END.search(self.formal_statement) is None or not _THEOREM.search(self.formal_statement):
            raise InvalidArgumentError(
                "formal_statement must end in a theorem without its proof, such as 'theorem two : 1 + 1 = 2 := by sorry', got "
                f"{self.formal_statement[-200:]!r}"
            )

    @functools.cached_property
    def header(self) -> str:
        """The text before the theorem."""
        return self._statement[: self._theorem.start()]

    @functools.cached_property
    def signature(self) -> str:
        """The theorem from its keyword to the end of its type."""
        return self._statement[self._theorem.start() :].strip()

    @functools.cached_property
    def name(self) -> str:
        """The theorem's name, as the statement writes it."""
        return self._theorem[1]

    @property
    def _takes_tactics(self) -> bool:
        """Whether the statement ends in `by`, so that tactics may follow it."""
        end = _OPEN_END.search(self.formal_statement)
        return end is not None and end[1] is not None

    @property
    def _statement(self) -> str:
        return _OPEN_END.sub("", self.formal_statement)

    @property
    def _theorem(self) -> re.Match[str]:
        return list(_THEOREM.finditer(self.formal_statement))[-1]

    def proof_in(self, source: str) -> str:
        """Return the proof in a completion's source as an indented term; the source may repeat the theorem before it.

        Raises:
            ProofError: If there is no proof, or the proof uses a refused form.
        """
        repeated = re.compile(r"\s+".join(map(re.escape, self.signature.split())))
        match = next(iter(repeated.finditer(source)), None)
        if match is not None:
            self._check_lines(source[: match.start()])
            source = source[match.end() :]
            if _ASSIGNED.match(source) is None:
                raise ProofError("':=' does not follow the theorem")
        elif self.name in _THEOREM.findall(source):
            raise ProofError(f"the theorem {self.name} is stated otherwise than in the problem")
        proof = _ASSIGNED.sub("", source, count=1) if _ASSIGNED.match(source) else source
        if refused := _REFUSED.search(proof):
            raise ProofError(f"a proof may not contain {refused[0]!r}")
        if named := _NAMED_VALUE.search(proof):
            raise ProofError(f"the value in {named[0]} ...) must be a name or a literal, or {{field := value}} of such")
        if _CONTROL.search(proof) or not proof.strip():
            raise ProofError("a proof is text without control characters")
        lines = proof.strip("\n").rstrip().split("\n")
        if self._takes_tactics and not re.match(r"\s*by\b", proof):
            return "by\n" + "\n".join(f"    {line}" for line in lines)
        return "\n".join(f"  {line}" for line in lines)

    def _check_lines(self, before: str) -> None:
        known = {line.strip() for line in self.header.splitlines()}
        for line in before.splitlines():
            if line.strip() not in known and not _HARMLESS_LINE.fullmatch(line):
                raise ProofError(f"only a proof is taken, and before the theorem stands {line.strip()[:60]!r}")

    def parsing_source(self, proof: str, nonce: str) -> str:
        """Source that runs no code of the completion and asks Lean's parser whether the proof, given as a string, is one term.

        Lean answers with the information `<nonce> term`, or with an error that begins with the nonce.
        """
        text = proof.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        return (
            f"{self.header}{self.signature} := by sorry\n\n"
            "#eval show Lean.Elab.Command.CommandElabM Unit from do\n"
            f'  match Lean.Parser.runParserCategory (← Lean.getEnv) `term "{text}" with\n'
            f'  | .ok _ => Lean.logInfo "{nonce} term"\n'
            f'  | .error message => throwError "{nonce} {{message}}"\n'
        )

    def checking_source(self, proof: str, nonce: str) -> str:
        """Source that checks the proof in Lean: the trusted theorem under another name, the proof, and a list of its axioms."""
        start = self._theorem.start(1) - self._theorem.start()
        signature = self._theorem[0][:start].strip() + f" {nonce}" + self._statement[self._theorem.end() :].rstrip()
        return f"{self.header}{signature} :=\n{proof}\n\n#print axioms {nonce}\n"
