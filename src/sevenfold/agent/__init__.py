"""The terminal agent: the query loop, the agents it starts, and its face."""
