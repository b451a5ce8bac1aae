"""The settings that the request path reads, each section in the module of its layer."""

from __future__ import annotations

from dataclasses import dataclass, field

from sevenfold.core.tokens.window import WindowSettings
from sevenfold.layers.compaction.settings import CompactSettings
from sevenfold.layers.context.sources import ContextSettings
from sevenfold.layers.memory.recall.policy import RecallSettings
from sevenfold.layers.microcompact.facts import MicrocompactSettings
from sevenfold.layers.microcompact.server_edits import ServerEditSettings
from sevenfold.layers.session_notes.policy import NotesSettings
from sevenfold.layers.tool_results.policy import ToolResultSettings
from sevenfold.session.cache.placement import CacheSettings
from sevenfold.store.memory.settings import MemorySettings


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings:
    tool_results: ToolResultSettings = field(default_factory=ToolResultSettings)
    compact: CompactSettings = field(default_factory=CompactSettings)
    window: WindowSettings = field(default_factory=WindowSettings)
    cache: CacheSettings = field(default_factory=CacheSettings)
    notes: NotesSettings = field(default_factory=NotesSettings)
    microcompact: MicrocompactSettings = field(default_factory=MicrocompactSettings)
    server_edits: ServerEditSettings = field(default_factory=ServerEditSettings)
    context: ContextSettings = field(default_factory=ContextSettings)
    memory: MemorySettings = field(default_factory=MemorySettings)
    recall: RecallSettings = field(default_factory=RecallSettings)
