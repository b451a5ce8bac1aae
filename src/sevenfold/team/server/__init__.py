"""The team server: one memory for a team, on SQLite or PostgreSQL. It knows the protocol, not the engine."""
