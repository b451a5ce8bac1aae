"""Running git without running what a repository configures.

- `safe_git`: the only module that starts git.
- `plain_repository`: a repository's objects and refs, without its configuration.
- `linked_worktree`: the record of a worktree, written without running git.

`store/project/git.py` reads git's own files, without git.
"""
