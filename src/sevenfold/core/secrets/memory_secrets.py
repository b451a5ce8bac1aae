"""No memory holds a secret: it would enter prompt after prompt."""

from __future__ import annotations

from sevenfold.core.errors import InputError
from sevenfold.core.secrets import SCAN_REFUSAL_TEXTS, find_secrets

_KEY = bytes(16)
"""Fingerprints are neither kept nor shown here."""


def refuse_secrets(text: str) -> None:
    """`InputError` with the rule and the line, and never the value, where a text holds a secret."""
    found = find_secrets(text, key=_KEY)
    if found.findings:
        first = found.findings[0]
        raise InputError(
            f"line {first.line} looks like a secret ({first.name}); memories go into every prompt, so write "
            "where it is kept instead"
        )
    if found.refusal is not None:
        raise InputError(f"it cannot be remembered: {SCAN_REFUSAL_TEXTS[found.refusal]}")
