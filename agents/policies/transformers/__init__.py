"""A `transformers` causal language model as a policy: acting, scoring, and the optimisations of both."""
