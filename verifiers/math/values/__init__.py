"""What an expression is worth, and whether two are worth the same: `tiers` goes from the cheapest method to the dearest.

Exact arithmetic and a finite field (`exact`), high precision at chosen points (`numeric`, `sample_points`), what integrals and
series come near to (`limits`), and computer algebra in a process of its own (`algebra`, `algebra_process`).
"""
