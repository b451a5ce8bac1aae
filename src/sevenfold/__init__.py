"""Sevenfold: a bounded context, a warm prompt cache and a memory that lasts, for LLM agents."""

__version__ = "0.1.0"
