"""How an agent learns: the algorithm that a paper fills in, and what every agent composes it with."""
