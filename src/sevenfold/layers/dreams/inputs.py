"""What a dream begins with, read once: the memories that are accepted, how they were used, and the logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sevenfold.core.memories import LOGS_PREFIX
from sevenfold.core.memory_uses import NO_USES, MemoryUses
from sevenfold.core.text.absolute_dates import resolve_relative_dates
from sevenfold.layers.dreams.merge import MemoryUseFacts
from sevenfold.layers.dreams.policy import DreamMemory, DreamSettings
from sevenfold.layers.memory.trust.verifier import ClaimVerifier
from sevenfold.store.memory.changes import StoredMemory
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.uses import UseStore
from sevenfold.store.project.project import Project

CHECK_BUDGET = timedelta(seconds=1)
"""For what one old memory names: a dream has time, and not for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamInputs:
    stored: Mapping[str, StoredMemory]
    kept: tuple[DreamMemory, ...]
    """Newest first."""
    uses: Mapping[str, MemoryUseFacts]
    logs: Mapping[str, StoredMemory]
    """Daily logs that no dream has distilled as they are now."""
    index: str

    @property
    def before(self) -> dict[str, DreamMemory]:
        return {item.memory.key: item for item in self.kept}

    @property
    def trusted_logs(self) -> dict[str, str]:
        """Those that hold nothing foreign: their words may be taken at once."""
        return {key: item.memory.text for key, item in self.logs.items() if item.is_trusted}

    @property
    def log_texts(self) -> dict[str, str]:
        return {key: item.memory.text for key, item in self.logs.items()}


def read_dream_inputs(
    project: Project,
    memory: MemoryDir,
    distilled: Mapping[str, str],
    now: datetime,
    settings: DreamSettings,
) -> DreamInputs:
    """Blocks on the disk. `distilled` has the SHA-256 of logs that need not be looked at again."""
    stored = {item.memory.key: item for item in memory.scan(None)}
    kept = tuple(_kept(memory, item) for item in stored.values())
    logs = (memory.find(key) for key in memory.keys(LOGS_PREFIX))
    fresh = {log.memory.key: log for log in logs if log and distilled.get(log.memory.key) != log.sha256}
    uses = dict(_uses(project, kept, now, settings))
    return DreamInputs(
        stored={**stored}, kept=kept, uses=uses, logs={**fresh}, index=memory.index_text().text
    )


def _kept(memory: MemoryDir, item: StoredMemory) -> DreamMemory:
    written = item.modified.astimezone(UTC).date()
    body = item.memory.body
    if resolve_relative_dates(body, written) == body:
        return DreamMemory(item.memory, written, item.origin)
    # Only what speaks of "yesterday" needs to know on which day each line came in.
    blamed = memory.blame(item.memory.key)
    count = len(body.splitlines())
    days = tuple(line.at.astimezone(UTC).date() for line in blamed[len(blamed) - count :])
    return DreamMemory(item.memory, written, item.origin, days if len(days) == count else ())


def _uses(
    project: Project, kept: tuple[DreamMemory, ...], now: datetime, settings: DreamSettings
) -> Iterator[tuple[str, MemoryUseFacts]]:
    book: Mapping[str, MemoryUses] = UseStore(project.control).read()
    verifier, limit = ClaimVerifier(project.root), timedelta(days=settings.stale_days)
    for item in kept:
        last = book.get(item.memory.key, NO_USES).last
        day = max(item.written, last.date()) if last else item.written
        # Looking for what it names costs time, and only decides where it was not used for long.
        is_idle = now.date() - day >= limit
        is_broken = is_idle and bool(verifier.verify(item.memory.body, CHECK_BUDGET))
        yield item.memory.key, MemoryUseFacts(last, is_broken)
