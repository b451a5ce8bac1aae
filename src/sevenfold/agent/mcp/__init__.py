"""A client for MCP servers: connections, tools and their results."""
