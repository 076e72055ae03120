"""Programs that use agents: supervised warm starts, the gradient lab, and the demonstration."""
