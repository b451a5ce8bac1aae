"""Layer 6: merge and tidy the memories between sessions."""
