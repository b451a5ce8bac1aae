"""The writers: background jobs that end in a file, which the request path reads the next time."""
