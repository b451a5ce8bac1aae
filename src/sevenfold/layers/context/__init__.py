"""What enters the context besides the conversation: instruction files, the memory index, reminders.

- `sources`: the settings, the sources, and how they are cut to a limit and rendered.

Reading the files and placing the text in a view is the job of `sevenfold.session.context`.
"""
