"""Writing results to disk: atomically, as strict JSON, and without overwriting unless asked to."""
