"""Layer 7: model runs that inherit the prefix of the conversation."""
