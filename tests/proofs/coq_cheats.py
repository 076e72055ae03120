"""Submissions that claim a proof of what does not hold, by name; none may be accepted."""

from __future__ import annotations

# The goal is `False`, and no axiom is allowed.
CHEATS = {
    "admitted": "Theorem solution : False. Admitted.",
    "admit": "Theorem solution : False. Proof. admit. Admitted.",
    "axiom": "Axiom solution : False.",
    "parameter": "Parameter p : False. Definition solution := p.",
    "variable": "Variable v : False. Definition solution : False := v.",
    "hypothesis through a section": "Section S. Hypothesis h : False. Theorem solution : False. Proof. exact h. Qed. End S.",
    "conjecture": "Conjecture solution : False.",
    "axiom in a module": "Module M. Axiom x : False. End M. Definition solution : False := M.x.",
    "axiom behind a functor": (
        "Module Type T. Parameter x : False. End T. Module F (A : T). Definition y : False := A.x. End F.\n"
        "Declare Module B : T. Module C := F B. Definition solution : False := C.y."
    ),
    "axiom in an opaque module": (
        "Module Type T. Parameter x : False. End T. Module M : T. Axiom x : False. End M. Definition solution : False := M.x."
    ),
    "primitive with a type that lies": "Primitive lie : False := #int63_add. Definition solution := lie.",
    "unguarded fixpoint": "Unset Guard Checking. Fixpoint f (n : nat) : False := f n. Definition solution := f 0.",
    "unguarded fixpoint by an attribute": (
        "#[bypass_check(guard)] Fixpoint f (n : nat) : False := f n. Definition solution : False := f 0."
    ),
    "guard checking off for whoever requires it": (
        "Global Unset Guard Checking. #[export] Unset Guard Checking.\n"
        "Fixpoint f (n : nat) : False := f n. Definition solution : False := f 0."
    ),
    "unguarded term that the verdict elaborates": (
        "Global Unset Guard Checking.\nNotation solution := ((fix f (n : nat) : False := f n) 0)."
    ),
    "negative inductive type": (
        "#[bypass_check(positivity)] Inductive bad := B (f : bad -> False).\n"
        "Definition no (b : bad) : False := match b with B f => f b end. Definition solution : False := no (B no)."
    ),
    "positivity checking off": (
        "Global Unset Positivity Checking. Inductive bad := B (f : bad -> False).\n"
        "Definition no (b : bad) : False := match b with B f => f b end. Definition solution : False := no (B no)."
    ),
    "type in type": "Global Unset Universe Checking. Require Import Coq.Logic.Hurkens. Definition T : Type := Type.\n"
    "Theorem solution : False. Proof. apply (TypeNeqSmallType.paradox T). reflexivity. Qed.",
    "type in type by an attribute": (
        "Require Import Coq.Logic.Hurkens. #[bypass_check(universes)] Definition T : Type := Type.\n"
        "Theorem solution : False. Proof. apply (TypeNeqSmallType.paradox T). reflexivity. Qed."
    ),
    "the goal's name redefined": "Definition False := True. Theorem solution : False. Proof. exact I. Qed.",
    "the goal's notation redefined": "Notation \"'False'\" := True. Theorem solution : False. Proof. exact I. Qed.",
    "a module that looks like the specification's": "Module Spec. Definition goal := True. End Spec. Definition solution := I.",
    "a coercion from what it proves": (
        "Inductive P := p. Axiom f : P -> False. #[global] Coercion f : P >-> False. Definition solution := p."
    ),
    "a global coercion, hints and instances": (
        "Axiom x : False. #[global] Hint Resolve x : core. Existing Class False. #[global] Existing Instance x.\n"
        "Notation solution := (ltac:(auto))."
    ),
    "program mode with an obligation": (
        "Require Import Program. Global Set Program Mode. Global Obligation Tactic := idtac. Notation solution := _."
    ),
    "a goal left open": "Theorem solution : False. Proof. shelve. Unshelve. Qed.",
    "a proof that is not finished": "Theorem solution : False. Proof.",
    "an abort": "Theorem solution : False. Proof. Abort.",
    "a failure that is expected": "Fail Definition solution : False := I.",
    "no solution": "Definition answer := I.",
    "another statement": "Theorem solution : True. Proof. exact I. Qed.",
    "a stronger hypothesis": "Theorem solution : False -> False. Proof. auto. Qed.",
    "a message of its own": (
        'Goal True. idtac "Closed under the global context". exact I. Qed. Axiom solution : False.'
    ),
    "a message when it is elaborated": (
        'Axiom x : False. Notation solution := (ltac:(idtac "Closed under the global context"; exact Submission.x)).'
    ),
    "a message, and silence afterwards": (
        "Global Set Silent. Axiom x : False.\n"
        'Notation solution := (ltac:(idtac "Closed under the global context"; exact Submission.x)).'
    ),
    "names that read like the message": (
        "Axiom x : False. #[global] Notation \"'Closed' 'under' 'the' 'global' 'context'\" := x (at level 0).\n"
        "Definition solution := x."
    ),
    "printing changed for whoever requires it": (
        "Global Set Printing Width 2. Global Set Printing All. Axiom x : False. Definition solution := x."
    ),
    "a tactic notation that takes over keywords": (
        'Axiom x : False. Tactic Notation "Print" "Assumptions" constr(t) := idtac. Tactic Notation "Definition" := idtac.\n'
        "Definition solution := x."
    ),
    "a file of the name of the specification": (
        'Redirect "Spec" Print nat. Redirect "../Spec" Print nat. Axiom solution : False.'
    ),
    "a written file": 'Redirect "Check" Print nat. Definition solution := I.',
    "extraction to a file": 'Require Extraction. Extraction "Check.v" plus. Definition solution := I.',
    "extraction to a folder": 'Require Extraction. Set Extraction Output Directory "/tmp". Extraction Library nat.',
    "another folder": 'Cd "/tmp". Axiom solution : False.',
    "a file of the machine": 'Load "/etc/passwd". Axiom solution : False.',
    "a path of its own": 'Add LoadPath "/" as Root. Add ML Path "/tmp". Axiom solution : False.',
    "the specification required": "Require Import Spec. Definition solution := I.",
    "the check required": "Require Import Check. Definition solution := I.",
    "itself required": "Require Import Submission. Definition solution := Submission.solution.",
    "a plugin": 'Declare ML Module "Submission". Definition solution := I.',
    "a plugin of a package": 'Declare ML Module "coq-core.plugins.extraction". Axiom solution : False.',
    "a library of OCaml's as a plugin": 'Declare ML Module "unix". Axiom solution : False.',
    "native compilation": "Goal 1 = 2. native_compute. Abort. Theorem solution : False. Proof. native_cast_no_check I. Qed.",
    "a cast that is not checked": "Theorem solution : False. Proof. vm_cast_no_check I. Qed.",
    "exact without a check": "Theorem solution : False. Proof. exact_no_check I. Qed.",
    "change without a check": "Theorem solution : False. Proof. change_no_check True. exact I. Qed.",
    "an abstracted lie": "Theorem solution : False. Proof. abstract (change_no_check True; exact I). Qed.",
    "a definition in the proof's middle": "Theorem solution : False. Proof. Axiom y : False. exact y. Qed.",
    "a hint that is global": (
        "Axiom x : False. #[global] Hint Extern 0 => exact Submission.x : core. Notation solution := (ltac:(auto))."
    ),
    "a scheme of arguments": "Axiom solution : forall {A : Type}, A. #[global] Arguments solution {A}.",
    "a universe below itself": "Universe u. Constraint u < u. Axiom solution : False.",
    "a library's axiom": (
        "Require Import Coq.Logic.ClassicalEpsilon Coq.Logic.ProofIrrelevance.\n"
        "Definition solution : False := epsilon (inhabits _) (fun _ : False => True)."
    ),
    "rewriting of the kernel's flags": 'Set Definitional UIP. Global Set Debug "all". Axiom solution : False.',
    "a comment that never ends": "Axiom solution : False. (* Definition",
    "a comment around what follows": 'Axiom solution : False. (* " ',
    "a drop to OCaml": "Drop. Axiom solution : False.",
    "an end of the session": "Axiom solution : False. Quit. ",
    "a module type that is included": "Module Type T. Axiom solution : False. End T. Include T.",
    "a functor that is included": (
        "Module Type T. Parameter x : False. End T. Module F (A : T). Definition solution := A.x. End F.\n"
        "Declare Module D : T. Include F D."
    ),
    "a module of its own name": "Module Submission. Axiom solution : False. End Submission. Export Submission.\n"
    "Definition solution := Submission.solution.",
    "an instance that is declared": "Existing Class False. Declare Instance i : False. Definition solution : False := i.",
    "obligations that are admitted": (
        "Require Import Program. Obligation Tactic := idtac. Program Definition solution : False := _. Admit Obligations."
    ),
    "the library's own admit": "Require Import Coq.Compat.AdmitAxiom. Theorem solution : False. Proof. admit. Qed.",
    "a goal given up when it is elaborated": "Notation solution := (ltac:(give_up)).",
    "an abstracted lie when it is elaborated": "Notation solution := (ltac:(abstract (exact_no_check I))).",
    "guard checking off in a functor": (
        "Module Type E. End E. Module F (X : E). #[bypass_check(guard)] Fixpoint f (n : nat) : False := f n. End F.\n"
        "Module X. End X. Module G := F X. Definition solution := G.f 0."
    ),
    "positivity checking off in a functor": (
        "Module Type E. End E. Module F (X : E). #[bypass_check(positivity)] Inductive bad := B (f : bad -> False). End F.\n"
        "Module X. End X. Module G := F X. Definition no (b : G.bad) : False := match b with G.B f => f b end.\n"
        "Definition solution : False := no (G.B no)."
    ),
    "guard checking off in an opaque proof": (
        "Unset Guard Checking. Theorem solution : False. Proof. abstract (exact ((fix f (n : nat) : False := f n) 0)). Qed.\n"
        "Set Guard Checking."
    ),
    "guard checking off in a section": (
        "Unset Guard Checking. Section S. Let Fixpoint f (n : nat) : False := f n. Definition solution := f 0. End S."
    ),
    "universe checking off in a module": (
        "Require Import Coq.Logic.Hurkens. Module M. Unset Universe Checking. Definition T : Type := Type.\n"
        "Theorem t : False. Proof. apply (TypeNeqSmallType.paradox T). reflexivity. Qed. Set Universe Checking. End M.\n"
        "Definition solution := M.t."
    ),
    "universe checking off, polymorphic": (
        "Set Universe Polymorphism. #[bypass_check(universes)] Definition T : Type := Type. Require Import Coq.Logic.Hurkens.\n"
        "Theorem solution : False. Proof. apply (TypeNeqSmallType.paradox T). reflexivity. Qed."
    ),
    "universe checking off when it is elaborated": (
        "Require Import Coq.Logic.Hurkens. Global Unset Universe Checking.\n"
        "Notation solution := (TypeNeqSmallType.paradox Type eq_refl)."
    ),
    "a polymorphic axiom": "Set Universe Polymorphism. Axiom solution@{u} : False.",
    "a name in another alphabet": "Inductive F\u0430lse : Prop := yes. Theorem solution : F\u0430lse. Proof. exact yes. Qed.",
    "a term that Ltac2 makes up": (
        "Require Import Ltac2.Ltac2. Theorem solution : False. Proof. "
        "Control.refine (fun () => Constr.Unsafe.make (Constr.Unsafe.Rel 1)). Qed."
    ),
    "a function of Ltac2 with a type that lies": (
        "Require Import Ltac2.Ltac2.\n"
        'Ltac2 @ external lie : int -> constr := "coq-core.plugins.ltac2" "message_of_int".\n'
        "Theorem solution : False. Proof. let c := lie 1 in exact $c. Qed."
    ),
    "a compiler that extraction starts": "Require Extraction. Extraction TestCompile plus. Definition solution := I.",
    "a file of universes": 'Print Universes "Check.v". Definition solution := I.',
    "a debugger that asks": (
        "Global Set Ltac Debug. Axiom x : False. Notation solution := (ltac:(exact Submission.x))."
    ),
    "a character that ends texts elsewhere": "Axiom solution : False.\0 Definition x := I.",
    "a way back": "Definition solution := I. BackTo 1. Reset Initial. Axiom solution : False.",
}

ENDLESS = {
    "an endless computation": "Fixpoint f n := match n with 0 => 1 | S n => f n + f n end. Eval vm_compute in f 100.",
    "an endless tactic": "Ltac l := idtac; l. Theorem solution : True. Proof. l. Qed.",
    "an endless tactic when it is elaborated": "Ltac l := idtac; l. Notation solution := (ltac:(l)).",
    "an endless conversion in the check": (
        "Fixpoint f n := match n with 0 => 1 | S n => f n + f n end. Notation solution := (eq_refl : f 100 = f 100 + 0)."
    ),
    "a timeout of its own": "Ltac l := idtac; l. Theorem solution : True. Proof. Timeout 1000 l. Qed.",
}

GREEDY = {
    "memory": "Fixpoint f n : list nat := match n with 0 => 1 :: nil | S n => f n ++ f n end. Definition solution := f 40.\n"
    "Eval vm_compute in solution.",
    "output": 'Ltac l := idtac "0123456789012345678901234567890123456789012345678901234567890123456789"; l.\n'
    "Goal True. l.",
    "a compiled file": "Fixpoint f n : list nat := match n with 0 => 1 :: nil | S n => f n ++ f n end.\n"
    "Definition solution := Eval vm_compute in f 22.",
    "a deep term": "Definition solution := " + "(" * 200_000 + "I" + ")" * 200_000 + ".",
    "a large number": "Definition solution : 100000000 = 100000000 := eq_refl.",
}
