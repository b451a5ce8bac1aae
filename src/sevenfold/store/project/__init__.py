"""A project on disk: its folders, settings files, instructions and consent.

- `project`: `Project`, its identity and its folders.
- `git`: which repository a folder belongs to, read without running git.
- `settings_files`: settings from their files, and how far each is trusted.
- `trust`: what a person has agreed to.
- `instructions`: instruction files and skills.
- `user_files`: the user's own files, read, changed and listed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sevenfold.store.project.project import Project

__all__ = ["Project"]


def __getattr__(name: str) -> object:
    if name != "Project":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sevenfold.store.project.project import Project

    return Project
