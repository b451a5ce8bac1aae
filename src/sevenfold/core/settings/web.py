"""What the agent may fetch, as settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sevenfold.core.settings import limit, switch


@dataclass(frozen=True, slots=True)
class WebSettings:
    SECTION: ClassVar[str] = "web"

    private: bool = switch(False)
    """Off: a page could send the agent to services of this machine or network, which trust whoever asks."""

    timeout_seconds: int = limit(30, at_least=1, at_most=600)
    """Of one page with all its redirects: who waits longer than this has given up."""

    max_bytes: int = limit(5_000_000, at_least=1_000)
    """Of one page: articles have a tenth of it, and nobody reads more through a model."""
