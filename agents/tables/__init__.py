"""Agents that learn a table from numbered observations and actions: bandits, Q-learning and their relatives.

They need no torch.
"""
