"""One memory for a team: the protocol, the client that syncs a laptop, and the server."""
