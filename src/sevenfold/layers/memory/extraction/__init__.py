"""Learn memories from a turn."""
