"""Layer 2, microcompaction: clear old tool results when that costs less than keeping them.

- `facts`: the settings, the facts and the plan of a clearing, the account of what clearing has saved, and the
  results in a view that may be cleared.
- `policy`: which results to clear, and when.
- `local_clearing`: follows one conversation; chooses the results to replace with markers in its messages.
- `server_clearing`: has the provider clear results, for models whose messages must not be rewritten.

`sevenfold.session.compaction` applies the decisions to a view.
"""
