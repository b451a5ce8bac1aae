"""The loop: a turn of rounds, from a user message to a final answer."""
