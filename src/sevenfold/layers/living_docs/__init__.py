"""Living documents: markdown files whose first heading asks to be kept up to date after a turn.

- `policy`: the settings, how a document is recognized, when it is due, and the brief of the fork.
- `writer`: finds the documents among the files the agent has read, and runs a fork for each.
- `prompts/`: the prompt of such a fork.
"""
