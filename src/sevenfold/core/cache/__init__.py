"""The prompt cache as values: breakpoints, rendered prompts, what a request would read."""
