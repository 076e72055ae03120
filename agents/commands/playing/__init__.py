"""One episode in the terminal, played by a person or a model."""
