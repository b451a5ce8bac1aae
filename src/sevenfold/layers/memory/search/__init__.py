"""Search: rank memories for a question by words (BM25) and, if an encoder is installed, by vectors. No model
call.

- `lexical`: splits text into words, and ranks documents with BM25 in memory.
- `vectors`: the text encoder, the vector index, and the fusion of both rankings.
- `memory_index`: the index of one memory directory, in memory.
- `large_index`: the same on disk with tantivy, for directories too large for memory.
- `text_cache`: computed words and vectors by hash, in SQLite.
- `encoders`: finds the installed encoder, on onnxruntime or numpy.
- `minilm`: the MiniLM network on numpy.
- `weights`: downloads and checks the weights, on request only.
"""
