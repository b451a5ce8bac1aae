"""Sevenfold: a bounded context, a warm prompt cache and a memory that lasts, for LLM agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sevenfold.core.version import __version__

if TYPE_CHECKING:
    from sevenfold.engine import Session
    from sevenfold.integrations.anthropic_sdk import attach
    from sevenfold.request.finding import recall
    from sevenfold.store.memory_dir import MemoryDir

__all__ = ["MemoryDir", "Session", "__version__", "attach", "recall"]

_FOUND_IN = {
    "MemoryDir": "sevenfold.store.memory_dir",
    "Session": "sevenfold.engine",
    "attach": "sevenfold.integrations.anthropic_sdk",
    "recall": "sevenfold.request.finding",
}
"""What `from sevenfold import …` offers. Loaded when it is asked for: importing the package stays light."""


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _FOUND_IN:
        raise AttributeError(f"module 'sevenfold' has no attribute {name!r}")
    return getattr(import_module(_FOUND_IN[name]), name)
