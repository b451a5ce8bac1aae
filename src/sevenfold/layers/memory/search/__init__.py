"""Finding memories without a model: words, and where wished meanings, ranked together."""
