"""What the simulator keeps between requests.

- `simulator_state`: all of the state: clock, token counter, caches and what follows.
- `ledger`: every request and its cost.
- `request_records`: earlier requests, to find where a new one differs.
- `arrivals`: makes concurrent requests miss the cache together, as they would at the provider.
- `faults`: errors, broken streams and delays on demand.
"""
