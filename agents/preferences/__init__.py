"""Which of two completions is better: pairs, and reward models that are fitted to them."""
