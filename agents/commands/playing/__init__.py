"""Plays one episode in the terminal, with a person or a model as the player."""
