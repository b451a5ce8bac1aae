"""`sevenfold team` and `sevenfold serve`."""
