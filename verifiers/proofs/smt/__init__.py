"""Does a term have a required property? An SMT solver decides."""
