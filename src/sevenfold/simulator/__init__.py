"""A local Messages API that validates, caches and bills as the provider does, and costs nothing.

In the order in which a request passes them:

- `server`: HTTP: the application, and a server for it on a local port, in a thread.
- `exchange`: one request and its response; calls everything below.
- `wire/`: parses headers and body, and renders the reply as stream events.
- `checks/`: refuses what the API refuses.
- `prepare`: checks thinking and applies context edits.
- `reply_generation`: looks up the cache, gets a reply from a `Brain`, and computes the bill.
- `brain`, `load_brain`: `Brain`, its implementations, and choosing one by name. They use values of `core`
  only, so both APIs share them.
- `openai/`: the endpoints in OpenAI's format.
- `simulator_state`, `ledger`, `faults`: what the simulator keeps between requests: clock, cache and arrivals;
  every request and its cost; faults on demand.

docs/simulator-contract.md lists the rules that the simulator follows.
"""
