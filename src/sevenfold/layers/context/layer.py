"""Context sources in the view: stated before the first message, and again after each boundary.

What changes in between is appended where a turn begins. Nothing that was said is edited: the prefix stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import takewhile
from pathlib import Path

from sevenfold.core.clock import Clock
from sevenfold.core.errors import SevenfoldError
from sevenfold.core.events import ContextCut, Emit, InstructionSkipped, RecallSkipped
from sevenfold.core.messages import Message, Text, has_user_text
from sevenfold.core.system import run_blocking
from sevenfold.core.text.safe_text import render_reminder
from sevenfold.core.tokens import CALIBRATED_ESTIMATOR, NEWER_TOKENIZER_SCALE
from sevenfold.layers.context import (
    ContextFile,
    ContextSettings,
    ContextSource,
    RenderedContext,
    find_changed_sources,
    render_context,
    render_context_changes,
    render_index_change,
    sort_sources,
)
from sevenfold.layers.conversation import Conversation
from sevenfold.store.files import RecordId
from sevenfold.store.project.instructions import (
    CachedFileReader,
    Instruction,
    InstructionPaths,
    InstructionReader,
)

_WINDOW_SHARE = 4
"""At most this part of a small window goes to context, whatever the limit: the rest is for the work."""


@dataclass(frozen=True, slots=True)
class CurrentContext:
    """The context as it is now, for the head of a view."""

    message: Message | None = None
    """None: there is nothing to say."""
    tokens: int = 0
    sources: tuple[ContextSource, ...] = ()

    @property
    def paths(self) -> frozenset[str]:
        """Files that it shows, and that need not be restored on their own."""
        return frozenset(source.name for source in self.sources if source.name)


@dataclass(frozen=True, slots=True)
class _Update:
    """A change that was appended."""

    message: Message
    sources: tuple[ContextSource, ...]
    behind: RecordId
    """The message of the history that it stands behind."""


class ContextFileReader:
    """Files that the caller wants read, each under its kind."""

    def __init__(self, folder: Path, emit: Emit) -> None:
        self._folder, self._emit = folder, emit
        self._reader = CachedFileReader()
        self._files: dict[ContextFile, str] = {}
        """Each with the last reported reason why it could not be read."""

    def add(self, file: ContextFile) -> None:
        self._files.setdefault(file, "")

    def read(self) -> tuple[ContextSource, ...]:
        """The files that can be read. A file that cannot is reported once, with the reason."""
        return tuple(source for file in self._files if (source := self._read(file)) is not None)

    def _read(self, file: ContextFile) -> ContextSource | None:
        path = self._folder / file.path
        try:
            found = self._reader.read(path)
        except SevenfoldError as error:
            if self._files[file] != str(error):
                self._files[file] = str(error)
                self._emit(InstructionSkipped(str(path), str(error)))
            return None
        self._files[file] = ""
        return ContextSource(file.kind, found.text.strip(), str(path), found.is_cut)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextInputs:
    """What the context of a session is read from."""

    settings: ContextSettings
    instructions: InstructionPaths
    folder: Path
    """What paths of the caller's files start from."""
    read_index: Callable[[], tuple[ContextSource, ...]]
    """The memory index as a source. Blocks on the disk."""
    clock: Clock
    emit: Emit
    resumed_at: datetime | None = None
    """Of a session that is resumed: when its last record was written."""


class ContextLayer:
    """The context of one conversation. It adds nothing until a caller asks for context.

    `compact_at` is the size at which the view is compacted: context takes no more than a share of it.
    """

    def __init__(self, conversation: Conversation, inputs: ContextInputs, *, is_resumed: bool) -> None:
        settings = inputs.settings
        self._conversation, self._inputs, self._is_on = conversation, inputs, False
        paths = replace(
            inputs.instructions,
            claude_files=settings.claude_files,
            claude_user_file=settings.claude_user_file,
        )
        self._reader = InstructionReader(paths, emit=inputs.emit)
        self._named = ContextFileReader(inputs.folder, inputs.emit)
        self._given: tuple[ContextSource, ...] = ()
        self._head: tuple[ContextSource, ...] = ()
        """As the head of the view says it."""
        self._updates: list[_Update] = []
        """What was said since."""
        self._used_tokens = 0
        self._reads = not is_resumed
        """A resumed session keeps the context that its view has; files are read again from the next
        boundary on."""
        self._seen: RecordId | None = None
        """The last message when it was last looked whether something changed."""
        last = inputs.resumed_at
        self._first_day = self._day = last.astimezone().date() if last else self._today()
        self.is_due = False
        """Whether there may be something to say though nobody spoke."""

    def add_sources(self, sources: Iterable[ContextSource | ContextFile]) -> None:
        """Add context, with these sources of the caller; one without text removes the source of its name."""
        for source in sources:
            if isinstance(source, ContextFile):
                self._named.add(source)
            else:
                self._given = sort_sources((*self._given, source))
        self._is_on = self.is_due = self._inputs.settings.enabled

    async def begin(self, compact_at: int) -> None:
        """Add all of it to the view, unless that was done before."""
        if not self._is_on or self._conversation.entries or len(self._conversation.shown):
            return
        fresh = await self.read(compact_at)
        if fresh.message is not None:
            self._conversation.inject(fresh.message, "attachment")
        self._said(fresh)

    async def read(self, compact_at: int) -> CurrentContext:
        """All of it as it is now, for the head of a view."""
        if not self._is_on:
            return CurrentContext()
        sources = sort_sources((*await run_blocking(self._read_files), *self._given))
        limit = self._limit_tokens(compact_at)
        found = render_context(sources, limit, self._count)
        self._report_cut(found, limit)
        message = Message("user", (Text(found.text),)) if found.text else None
        return CurrentContext(message, found.tokens, sources)

    def compacted(self, fresh: CurrentContext, head: Sequence[Message], kept: Sequence[Message]) -> None:
        """A boundary was made; its head has this context, unless the old one still stands in the view."""
        if not self._is_on:
            return
        updates = [update for update in self._updates if update.message in kept]
        if fresh.message is None or any(message is fresh.message for message in head):
            self._said(fresh)
        self._updates = updates
        # What the day is may have been said in what is gone now.
        self._day = self._first_day
        self.is_due = True

    async def append_changes(self, compact_at: int) -> None:
        """Append what has changed since it was said, if the user has spoken since."""
        if not self._is_on or not self._conversation.entries or not (self._has_spoken() or self.is_due):
            return
        files = await run_blocking(self._read_files if self._reads else self._named.read)
        self.is_due = False
        self._seen = self._conversation.entries[-1].id
        self._forget_dropped()
        known = self._known()
        changed = find_changed_sources(known, sort_sources((*files, *self._given)))
        shown = [change for source in changed if (change := _shown_change(source, known)) is not None]
        limit = self._limit_tokens(compact_at)
        found = render_context_changes(shown, limit, self._count, used_tokens=self._used_tokens)
        if found.text:
            self._report_cut(found, limit)
            # Of the user's side and never the system's: a file of a repository has no more say than that.
            message = Message("user", (Text(found.text),))
            self._conversation.inject(message, "attachment")
            self._updates.append(_Update(message, changed, self._seen))
            self._used_tokens += found.tokens
        self._append_day()

    def _read_files(self) -> tuple[ContextSource, ...]:
        files = map(_source, self._reader.read())
        return (*files, *self._named.read(), *self._read_index())

    def _read_index(self) -> tuple[ContextSource, ...]:
        try:
            return self._inputs.read_index()
        except SevenfoldError as error:
            self._inputs.emit(RecallSkipped(f"the index of memories cannot be read: {error}"))
            return tuple(source for source in self._known() if source.kind == "memory")

    def _said(self, fresh: CurrentContext) -> None:
        self._head, self._updates = fresh.sources, []
        self._used_tokens, self._reads = fresh.tokens, True

    def _known(self) -> tuple[ContextSource, ...]:
        """What the view says of each source, the last word counting."""
        return sort_sources((*self._head, *(source for update in self._updates for source in update.sources)))

    def _has_spoken(self) -> bool:
        fresh = takewhile(lambda entry: entry.id != self._seen, reversed(self._conversation.entries))
        return any(has_user_text(entry.message) for entry in fresh)

    def _forget_dropped(self) -> None:
        """Changes that the view no longer says: the message before them was dropped, and they with it."""
        if self._updates:
            names = {entry.id for entry in self._conversation.entries}
            self._updates = [update for update in self._updates if update.behind in names]

    def _report_cut(self, found: RenderedContext, limit: int) -> None:
        if found.cut:
            self._inputs.emit(ContextCut(", ".join(found.cut), limit))

    def _append_day(self) -> None:
        today = self._today()
        if today == self._day:
            return
        self._day = today
        text = f"The date is now {today.isoformat()}."
        if self._conversation.capabilities.takes_system_role:
            # Written down when it is put into the view, before which it may turn out to have no place there.
            self._conversation.show(Message("system", text), "attachment")
        else:
            self._conversation.inject(Message("user", (Text(render_reminder(text)),)), "attachment")

    def _today(self) -> date:
        return self._inputs.clock.now().astimezone().date()

    def _limit_tokens(self, compact_at: int) -> int:
        return min(self._inputs.settings.limit_tokens, compact_at // _WINDOW_SHARE)

    def _count(self, text: str) -> int:
        """By the estimate that is never calibrated: the same files are cut at the same place every time."""
        scale = NEWER_TOKENIZER_SCALE if self._conversation.model.tokenizer == "newer" else 1.0
        return math.ceil(CALIBRATED_ESTIMATOR.weigh(Text(text)) * scale)


def _shown_change(source: ContextSource, known: Sequence[ContextSource]) -> ContextSource | None:
    """A change as it is said: of the index, only the lines that changed; None where none did."""
    before = next((one for one in known if one.key == source.key), None)
    if source.kind != "memory" or before is None or not source.text:
        return source
    changed = render_index_change(before.text, source.text)
    return replace(source, text=changed) if changed else None


def _source(found: Instruction) -> ContextSource:
    return ContextSource(found.kind, found.text, str(found.path), found.is_cut)
