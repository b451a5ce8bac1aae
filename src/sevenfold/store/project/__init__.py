"""A project on disk: its folders, settings files, instructions and trust."""

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
