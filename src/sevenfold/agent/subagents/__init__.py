"""Agents that an agent starts: definitions, runs, worktrees, and mail between them."""
