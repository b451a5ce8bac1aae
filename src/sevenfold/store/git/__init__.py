"""Git repositories: their root, their index, and the one safe way to run git."""
