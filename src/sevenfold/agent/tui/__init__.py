"""The agent's terminal face: what a turn looks like while it runs, and how a person takes part in it."""
