"""Layer 4, compaction: when the history is cut down to a summary."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from sevenfold.core.settings import percent, switch


@dataclass(frozen=True, slots=True)
class CompactSettings:
    SECTION: ClassVar[str] = "compact"

    enabled: bool = switch(True, off_by="DISABLE_COMPACT")
    """On: without it a session ends where its window does. Off stops compaction by hand too."""

    auto_compact_enabled: bool = switch(True, off_by="DISABLE_AUTO_COMPACT")
    """On: nobody watches the window while working. Off leaves compaction by hand."""

    auto_compact_pct: Decimal | None = percent(None, alias="CLAUDE_AUTOCOMPACT_PCT_OVERRIDE")
    """Unset: the default margin suits every window sold. A percentage compacts earlier, never later."""

    @property
    def is_automatic(self) -> bool:
        """Both switches together: one that turns all compaction off turns the automatic kind off as well."""
        return self.enabled and self.auto_compact_enabled
