"""The simulator's OpenAI endpoints."""
