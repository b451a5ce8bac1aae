"""Running things: forks today; a round, tools, permissions and spend later."""
