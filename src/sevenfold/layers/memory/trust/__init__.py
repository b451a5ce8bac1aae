"""Whose words a memory is, and whether they may be trusted."""
