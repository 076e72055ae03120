"""Completions composed from pieces, and what the verifiers make of them."""
