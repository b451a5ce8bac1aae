"""The built-in tools, and the executor that runs calls of any tool.

- `executor`: checks permissions and hooks, runs calls, and returns one result for each.
- `read`: the `read` tool: text, images and notebooks.
- `file_changes`: the `write` and `edit` tools; encodings, line ends and paths, for all tools that read or
  write files.
- `checkpoints`: files as they were before each edit.
- `search`: the `grep` and `glob` tools; `worker` is the process that searches.
- `shell`: the `shell` tool, and the tools for background commands.
- `web_fetch`: the `web_fetch` tool; `worker` turns HTML into markdown.
- `planning`: the `plan`, `todo` and `skill` tools, and files in which a tool keeps its state of a session.
- `memory`: the `memory` tool.
"""
