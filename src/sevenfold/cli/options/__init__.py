"""How each command is asked for: help, examples and options. Light, since `--help` loads them all."""
