"""Values of expressions, and their equality: `tiers` goes from the cheapest method to the most expensive.

Exact arithmetic and a finite field (`exact`), high precision at chosen points (`numeric`, `sample_points`), approximations of
integrals and series (`limits`), and computer algebra in a separate process (`algebra`, `algebra_process`).
"""
