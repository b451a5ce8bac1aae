"""Commands on memories: memory, recall, search, dream."""
