"""Opening an agent: its project, session, model, tools and background writers."""
