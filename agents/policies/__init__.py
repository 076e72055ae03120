"""Policies that sample somewhere else than in the model that learns."""
