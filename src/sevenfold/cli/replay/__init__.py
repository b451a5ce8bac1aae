"""`sevenfold replay`."""
