"""What is drawn, without the drawing.

- `diff_text`: a diff with line numbers, the colours of its language, and changed words marked.
- `markdown_stream`: blocks of markdown that is still being written.
- `status_line`: the status line, and the line that says what a turn is doing.
"""
