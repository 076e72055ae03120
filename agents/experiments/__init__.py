"""Programs built on agents: supervised warm starts, the gradient lab, the demonstration."""
