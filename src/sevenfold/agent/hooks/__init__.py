"""Hooks: programs that a user has run before and after what an agent does."""
