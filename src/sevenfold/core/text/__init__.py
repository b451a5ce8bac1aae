"""Pure functions over text: globs, fences, frontmatter, shell words, truncation."""
