"""Programs on top of agents: supervised warm starts, the gradient lab, the demonstration."""
