"""From a policy and an environment to trajectories."""
