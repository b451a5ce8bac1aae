"""The request path: from the history to what is sent."""
