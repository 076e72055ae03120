"""Writes results to disk: atomically, as strict JSON, and without overwriting files unless requested."""
