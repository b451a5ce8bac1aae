"""Layer 5: extraction, recall, rules, trust and search of memories."""
