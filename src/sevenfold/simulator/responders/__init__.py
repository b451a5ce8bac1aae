"""What answers requests: `Brain`, and the implementations that come with the simulator.

- `brain_protocol`: `Brain`, `Prompt` and `Reply`.
- `script`: replies from a script, which fails on unexpected requests.
- `load`: an echo, a recording and YAML scripts, by the name given on the command line.
"""
