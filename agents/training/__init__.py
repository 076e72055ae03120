"""The components of a training run besides its mathematics."""
