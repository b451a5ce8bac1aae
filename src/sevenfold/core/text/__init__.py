"""Pure functions over text.

- `safe_text`: text without lone surrogates, foreign text in fences, and text cut to a size or escaped for a
  terminal.
- `markdown`: frontmatter, and the imports of instruction files.
- `globs`: path patterns, gitignore rules, and the paths that a text names.
- `shell_parser`: the words of each simple command in a shell command line.
- `command_lines`: the commands in a shell command line, also those that others run.
- `stems`: words, sentences and clauses, for comparing who said what.
- `facts`: what a memory states, and whether two texts state the same.
- `absolute_dates`: relative dates made absolute.
"""
