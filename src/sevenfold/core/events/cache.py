"""What became of the cached prefix, as events; `core/events.py` has them in its union."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheMissed:
    """Less of a prompt came out of the provider's cache than what was sent before promised."""

    who: str
    expected_tokens: int
    read_tokens: int
    idle_seconds: int
    """Since the request that should have been read started."""
    cause: str
    """`idle`, `unexplained`, or what an unannounced change of the prefix touched."""
    told: str
    """The reason that the provider gave; empty when it was not asked, or gave none."""


@dataclass(frozen=True, slots=True)
class ClearingRefused:
    """A way of clearing old results that settings ask for is not to be had."""

    setting: str
    reason: str


@dataclass(frozen=True, slots=True)
class CutRegistered:
    """The prefix that was sent before is changed on purpose, from this message of the view on."""

    who: str
    layer: int
    reason: str
    first: int


@dataclass(frozen=True, slots=True)
class HistoryChanged:
    """The caller changed or dropped messages that had been taken before: the view follows from there on."""

    first: int
    """The first message of the caller's list that differs."""
    forgotten: int
    reason: str


@dataclass(frozen=True, slots=True)
class HistoryRepaired:
    """A message that the provider would have refused is sent in a form that it takes."""

    message: int
    """Which message of the history."""
    repair: str
    detail: str


@dataclass(frozen=True, slots=True)
class PrefixBroken:
    """A request differs from the one before it where nobody announced a cut, so that its cache is lost."""

    who: str
    cause: str
    """`model`, `tools`, `system`, `message` or `params`."""
    path: str
    """The first block that differs, or the setting."""
    lost_tokens: int


@dataclass(frozen=True, slots=True)
class PromptTrimmed:
    """The provider leaves out of the prompt what was in it before, as it does on this model: earlier thinking
    once the user speaks, or a message that was for one turn. What follows it is written to the cache anew."""

    who: str
    path: str
    """The first block that differs."""
    lost_tokens: int


@dataclass(frozen=True, slots=True)
class ReplyUnrecorded:
    """An answer of an attached client could not be read along: its caller has it, and it is not booked."""

    reason: str


@dataclass(frozen=True, slots=True)
class RequestPassed:
    """A request of an attached client went through untouched."""

    reason: str


@dataclass(frozen=True, slots=True)
class ResultsCleared:
    """Old tool results left the prompt."""

    by: str
    """Who cleared them and how: `provider`, `cache edits`, or the policy by which we did."""
    results: int
    tokens: int
    """Of the results: estimated, or as the provider says; 0 where nobody knows."""
    memories: int = 0
    """Texts of recalled memories that went with them."""
