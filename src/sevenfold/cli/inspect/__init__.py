"""Commands that inspect sessions and the installation. They read and change nothing, except `spend`,
the index of `search`, and `doctor`, which removes copies that a killed `sevenfold run` has left.

- `context_facts`, `context`: `sevenfold context`: the figures of a session, and how they are shown.
- `stats_facts`, `stats`: `sevenfold stats`: the figures of a project, and how they are shown.
- `search`: `sevenfold search`.
- `spend`: `sevenfold spend`.
- `doctor`: `sevenfold doctor`: the checks of the machine, and of hooks, servers and agents that come with a
  repository.
- `doctor_store`: its checks of files on disk.
- `doctor_agents`: its checks of other agents on the machine.
"""
