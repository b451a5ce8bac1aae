"""Documents that a fork keeps up to date after a turn."""
