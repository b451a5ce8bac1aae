"""Extraction at work, as events; `core/events.py` has them in its union."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DraftRefused:
    """The gate before memory refused what a writer wanted to remember."""

    session: str
    key: str
    rule: str
    """Why, in a word: `secret`, `duplicate`, `task state`, …"""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionEnded:
    """A turn was looked through for what is worth remembering."""

    session: str
    writer: str
    """`model`, or `rules`."""
    written: int
    waiting: int
    """Memories that are not the user's own words, and wait for a person."""
    refused: int


@dataclass(frozen=True, slots=True)
class ExtractionSkipped:
    """A turn was not looked through, or what was found in it is lost."""

    session: str
    reason: str
