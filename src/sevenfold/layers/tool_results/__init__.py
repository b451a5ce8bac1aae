"""Layer 1: store large tool results on disk and send a preview."""
