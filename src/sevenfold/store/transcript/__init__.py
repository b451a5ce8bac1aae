"""Transcripts of sessions: records, appending, reading, locking."""

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
