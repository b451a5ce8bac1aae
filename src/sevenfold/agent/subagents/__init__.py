"""Agents that an agent starts, and messages between agents.

- `definitions`: which agents can be started, the memory that an agent of one kind keeps between runs, and
  requests, running agents and outcomes as values.
- `definition_files`: definitions in files: the user's, built-in ones, and the project's.
- `agent_team`: the agents that one agent has started, and the tool with which the model starts them.
- `subagent_runner`: runs an agent: fresh, as a fork, or as a teammate; reports its progress.
- `teammate_process`: starts a teammate as a process, and the pipes between it and its lead.
- `worktree`: a git worktree for an agent that changes files.
- `messaging`: the roster of names in a project, the sender, and the tool that sends a message.
- `mailbox`: the mailbox of a session, read exactly once; delivers messages within a team and to other
  sessions.
- `socket_mail`: messages between sessions of one user, over a Unix socket.
"""
