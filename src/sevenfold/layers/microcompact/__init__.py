"""Layer 2: clear old tool results when that costs less than keeping them."""
