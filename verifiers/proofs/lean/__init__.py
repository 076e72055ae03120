"""Does a proof written in Lean 4 prove the theorem? A Kimina Lean Server runs Lean."""
