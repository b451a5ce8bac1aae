"""The Messages API on this machine: it checks, caches and bills as the provider does, and costs nothing.

A request goes `app` (HTTP) → `exchange`: `call` (headers and body) → `validate` → `preparing` (thinking,
edits) → `answering` (cache, brain, bill) → `stream` or plain JSON. Brains answer with values of `core` alone,
so that another front can use them. What it holds to is written, rule by rule, in docs/simulator-contract.md.
"""
