"""What a training run is made of beside its mathematics."""
