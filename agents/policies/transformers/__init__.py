"""A `transformers` causal language model as a policy: acting, scoring, and what makes both fast."""
