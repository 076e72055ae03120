"""Agents that learn a table from numbered observations and actions: bandits, Q-learning and their relatives.

These agents need no torch.
"""
