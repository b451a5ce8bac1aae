"""Find the memories that a prompt is about."""
