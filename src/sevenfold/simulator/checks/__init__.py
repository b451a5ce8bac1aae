"""What the simulated API refuses, as the real one does."""
