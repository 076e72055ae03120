"""The settings of agents: data and checks, without torch."""
