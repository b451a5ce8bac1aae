"""Transcripts of sessions.

- `records`: what a transcript holds, as values and as lines.
- `transcript`: appending records; the sessions of a project, forking one, its lock, and its event log.
- `reader`: reading all of a transcript, or from its last boundary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sevenfold.store.transcript.transcript import Transcript

__all__ = ["Transcript"]


def __getattr__(name: str) -> object:
    if name != "Transcript":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sevenfold.store.transcript.transcript import Transcript

    return Transcript
