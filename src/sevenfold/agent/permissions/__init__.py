"""What an agent may do: modes, rules as people write them, and the guard that asks."""
