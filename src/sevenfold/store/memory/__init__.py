"""The memory directory and its history."""
