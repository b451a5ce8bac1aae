"""Search: rank memories for a question by words (BM25) and, if an encoder is installed, by vectors. No model
call.

- `lexical`: splits text into words, and ranks documents with BM25 in memory.
- `passages`: the same for texts as wholes and in parts, so that a long text is found by one of its parts.
- `vectors`: the text encoder, the vector index, the fusion of both rankings, and the MiniLM network on
  numpy.
- `memory_index`: the index of one memory directory, in memory, and the cache of words and vectors in SQLite.
- `large_index`: the same on disk with tantivy, for directories too large for memory.
- `encoders`: finds the installed encoder, on onnxruntime or numpy; downloads and checks the weights, on
  request only.
"""
