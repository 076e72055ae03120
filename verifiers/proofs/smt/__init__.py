"""Does a term have the property that is asked for? An SMT solver decides."""
