"""The spend governor: caps on background work, and its ledger."""
