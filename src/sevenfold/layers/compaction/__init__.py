"""Layer 4: when the window fills, replace the history by a summary and go on."""
