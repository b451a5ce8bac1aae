"""`sevenfold tour`."""
