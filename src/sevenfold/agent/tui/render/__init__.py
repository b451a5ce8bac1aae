"""What is drawn, without the drawing.

- `diff_text`: a diff with line numbers, the colours of its language, and changed words marked.
- `markdown_export`: a conversation as markdown, without secrets.
- `markdown_stream`: blocks of markdown that is still being written.
- `reflow`: rows that a narrowed terminal has wrapped.
- `status_line`: the status line, and the line that says what a turn is doing.
- `tool_lines`: what a tool call that is over leaves on the screen.
- `word_wrap`: where lines break, within long paths too.
- `wrapped_text`: our own lines, and labels with what belongs to each.
"""
