"""Layer 4, compaction: when the history is cut down to a summary."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from sevenfold.core.settings import amount, limit, names, percent, switch


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactSettings:
    SECTION: ClassVar[str] = "compact"

    enabled: bool = switch(True, off_by="DISABLE_COMPACT")
    """On: without it a session ends where its window does. Off stops compaction by hand too."""

    auto_compact_enabled: bool = switch(True, off_by="DISABLE_AUTO_COMPACT")
    """On: nobody watches the window while working. Off leaves compaction by hand."""

    auto_compact_pct: Decimal | None = percent(None, alias="CLAUDE_AUTOCOMPACT_PCT_OVERRIDE")
    """Unset: the default margin suits every window sold. A percentage compacts earlier, never later."""

    blocks_enabled: bool = switch(True)
    """On: where a model makes compaction blocks itself, it needs no prompt of ours and fits its thinking."""

    breaker_failures: int = limit(3, at_least=1)
    """Model calls that fail in a row before none is made by itself any more: each costs a whole prompt."""

    stream_retries: int = limit(2)
    """Of a summary whose stream broke off: mostly the network's fault, and the prefix is cached by then."""

    trim_tries: int = limit(3, at_least=1)
    """Calls that may be too long for the window, the first included, before a model is not asked any more."""

    trim_pct: int = limit(20, at_least=1, at_most=100)
    """Of the rounds, dropped at a time where the provider does not say how much too long the prompt is."""

    thrash_limit: int = amount(2, at_least=1)
    """Compactions in a row that help nothing: the first may be chance, a third would be like the second."""

    thrash_rounds: int = amount(3, at_least=1)
    """A view that is full again within so few rounds was not made smaller in any way that matters."""

    summary_models: tuple[str, ...] = names(())
    """Others that may write a summary where that is cheaper. None: a weaker model forgets what matters."""

    summary_max_tokens: int = amount(20_000, at_least=1_000)
    """What the window keeps free for an answer anyway, thinking included."""

    summary_timeout_seconds: int = amount(180, at_least=1)
    """Some 8,000 tokens at the pace of the slowest model; a user waits for it."""

    keep_tokens: int = amount(10_000)
    """Of the newest rounds, kept word for word beside a summary: what is being worked on right now."""

    said_tokens: int = limit(2_000, at_least=50)
    """A longer user message is pasted material: its beginning stays in view and the rest goes to a file."""

    said_total_tokens: int = limit(30_000, at_least=500)
    """All user messages together; over it the longest are shortened first, and the files hold them whole."""

    restored_files: int = limit(5)
    """Files read again after a compaction: an agent works on few at a time."""

    restored_file_tokens: int = limit(5_000)
    """Of each such file: some 500 lines, and the rest can be read when it is needed."""

    restored_files_tokens: int = limit(50_000)
    """Of all such files together, a quarter of the smallest window."""

    restored_skill_tokens: int = limit(5_000)
    """Of each skill that was in use, the newest first."""

    restored_skills_tokens: int = limit(25_000)
    """Of all such skills together: five whole ones."""

    restored_extra_tokens: int = limit(10_000)
    """Of a plan, a todo list or anything else that is put back: what is longer is no list any more."""

    hook_seconds: int = amount(60, at_least=1)
    """How long a hook around a compaction may take, while a user waits for all of it."""

    lock_seconds: int = amount(60, at_least=1)
    """How long one compaction keeps others out; the longest are slow, and somebody may be waiting."""

    wait_seconds: int = amount(15)
    """How long a second asker waits for the first one's result before it is told to come back."""

    @property
    def is_automatic(self) -> bool:
        """Both switches together: one that turns all compaction off turns the automatic kind off as well."""
        return self.enabled and self.auto_compact_enabled
