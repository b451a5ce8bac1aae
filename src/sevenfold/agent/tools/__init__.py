"""The tools that come with the agent, one module each."""
