"""The brains that ship: an echo, a script, a recording."""
