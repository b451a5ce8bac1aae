"""`sevenfold tour`: a real session, offline, against the simulator with a scripted model.

- `command`: runs the command.
- `run`: plays the scenes in a temporary repository.
- `script`: the scenes: prompts, and the replies of the scripted model.
- `team`: the last part: two users and a team server.
- `view`: prints the scenes, what the layers do, and the bill.
"""
