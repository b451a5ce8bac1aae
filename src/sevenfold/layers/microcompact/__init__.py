"""Layer 2, microcompaction: clear old tool results when that costs less than keeping them.

- `facts`: the settings, the facts and the plan of a clearing, the account of what clearing has saved, and the
  results in a view that may be cleared.
- `policy`: which results to clear, and when.
- `layer`: `MicrocompactLayer`, the step of a request: follows one conversation and clears its results.
- `result_account`: the clearable results of one conversation, and what clearing them has saved so far.
- `server_clearing`: has the provider clear results, for models whose messages must not be rewritten.
"""
