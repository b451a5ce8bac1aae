"""Memories that apply before an action."""
