"""The prompt cache: where breakpoints go, how breaks are found, what was billed."""
