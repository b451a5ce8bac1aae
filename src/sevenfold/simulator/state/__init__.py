"""What the simulator remembers between requests: the cache, the clock, the ledger."""
