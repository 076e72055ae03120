"""Values of expressions, and their equality; `tiers` tries the methods from the cheapest to the most expensive.

The methods are exact arithmetic and a finite field (`exact`), high precision at chosen points (`numeric`, `sample_points`),
approximations of integrals and series (`limits`), and computer algebra in a separate process (`algebra`, `algebra_process`).
"""
