"""Team memory on a user's machine: what to exchange with the server, and the exchange itself.

- `memory`: `TeamMemory`, which everybody else uses; the team's folder, and the watcher that sends changes.
- `sync_policy`: what to do about one key, what a device knows, and when to try again. Pure.
- `exchange`: carries the decisions out, one durable step after another.
- `ports`: the server, folder and ledger that an exchange uses, as protocols; reading what the server says;
  batches of texts, merging two texts, and the names of conflict copies.
- `screening`: refuses to send secrets.
- `server_client`: the server over HTTP, signing in, and choosing a repository.
- `status`: what waits and what is in conflict, for a person; resolving a conflict.
- `local_state`: membership, tokens and the ledger on disk.
"""
