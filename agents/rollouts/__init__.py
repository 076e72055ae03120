"""Plays episodes of environments with policies, and records them as trajectories."""
