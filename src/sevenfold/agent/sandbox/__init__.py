"""Runs shell commands in a sandbox and ends everything that they started.

In the agent's process:

- `job`: one running command with its output, and background commands.
- `sandbox`: which sandbox this machine supports, found by trying; how to launch a command in it.
- `command`: which environment variables a command gets; starts the supervisor process and talks to it.
- `folders`: which folders a sandboxed command may read and change, which files are guarded, and records of
  running commands, so that the next start cleans up after a crash.

- `guarded_files`: names of files that instruct agents or that programs run by themselves, as one table.

In the supervisor process, one for each command:

- `supervisor`: takes the `LaunchSpec` of the agent, starts the command, waits for it, and kills its
  descendants.
- `kernel`: system calls, namespaces, mounts, Landlock, and the system call filter.

The modules of the supervisor process import nothing but `ctypes` and a few modules written in C, because
every command pays for those imports. `dataclasses` and `typing` alone would double the start-up time.
"""
