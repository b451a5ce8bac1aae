"""Other agents' sessions, accounted for: what they cost, where the cache broke, what filled the context."""
