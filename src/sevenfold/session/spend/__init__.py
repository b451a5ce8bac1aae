"""The spend governor: caps on the cost of background work.

- `budget`: the settings, and the arithmetic of caps, holds and failures; pure.
- `store`: the state and the daily ledgers on disk, shared by all processes of a user.
- `governor`: allows, settles and records each call; `GovernedProvider` puts it in front of a provider.
"""
