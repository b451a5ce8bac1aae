"""The settings of extraction. They are read at every start, and the policy is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sevenfold.core.settings import amount, choice, limit, switch

EXTRACTION_KIND = "extraction"
EXTRACTION_FILE = "extraction.json"
"""In the folder of a session: how far it was looked through."""
MAX_EXTRACTION_FILE_BYTES = 256 * 1024
MAX_EXTRACTION_ROUNDS = 5
"""One to read, one to write, and the rest to correct a draft that was refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionSettings:
    SECTION: ClassVar[str] = "extraction"

    enabled: bool = switch(True)
    """On: what a user says about how to work does not help the next session unless it is kept."""

    writer: str = choice("auto", "auto", "model", "rules")
    """Auto: a fork of the conversation, after turns in which the user said more than a word or two. Model: a
    fork after every turn. Rules: no model; only what is stated in so many words."""

    every_turns: int = amount(1, at_least=1)
    """What was said is freshest in the turn in which it was said, and the prefix is warm then."""

    rounds: int = limit(MAX_EXTRACTION_ROUNDS, at_least=1, at_most=MAX_EXTRACTION_ROUNDS)
    """Model calls of one fork: one to read, one to write, the rest to correct refused drafts."""

    session_percent: int = limit(5, at_least=1, at_most=100)
    """Of what the session costs, what forks may take. Past it, turns wait and are looked through together."""
