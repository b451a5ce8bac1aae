"""Layer 3: running notes of the session, written without stopping it."""
