"""All sections of settings. A section that is not in `SETTINGS_SECTIONS` is refused in a settings file.

`PipelineSettings` are the sections that the request path reads; each is defined in the module of its layer.
`SessionDeps` has them with everything else that the request path works with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sevenfold.core.clock import Clock
from sevenfold.core.events import Emit
from sevenfold.core.prices import Catalog, ModelSettings
from sevenfold.core.settings import MemorySettings, PlaceSettings, SettingsSection
from sevenfold.core.settings.sections import (
    AgentSettings,
    ChatSettings,
    HookSettings,
    McpServer,
    McpSettings,
    OtherAgentsSettings,
    PermissionSettings,
    SandboxSettings,
    ShellSettings,
    SyncSettings,
    TeamSettings,
    WebSettings,
)
from sevenfold.core.tokens import WindowSettings
from sevenfold.core.tokens.estimation import CALIBRATED_ESTIMATOR, TokenEstimator
from sevenfold.layers.compaction.policy import CompactSettings
from sevenfold.layers.context import ContextSettings
from sevenfold.layers.conversation_state import Journal
from sevenfold.layers.dreams.policy import DreamSettings
from sevenfold.layers.living_docs.policy import DocSettings
from sevenfold.layers.memory.extraction.settings import ExtractionSettings
from sevenfold.layers.memory.recall.policy import RecallSettings
from sevenfold.layers.memory.rule_policy import RuleSettings
from sevenfold.layers.microcompact.facts import MicrocompactSettings
from sevenfold.layers.microcompact.server_clearing import ServerEditSettings
from sevenfold.layers.session_notes.policy import NotesSettings
from sevenfold.layers.tool_results.policy import ToolResultSettings
from sevenfold.layers.tool_results.spill import SpillStore
from sevenfold.session.budget import SpendSettings
from sevenfold.session.cache.placement import CacheSettings
from sevenfold.store.files.locks import LockSettings
from sevenfold.store.mailbox import MailSettings


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDeps:
    """What the request path works with."""

    settings: PipelineSettings
    catalog: Catalog
    clock: Clock
    emit: Emit
    journal: Journal
    spills: SpillStore | None = None
    estimator: TokenEstimator = CALIBRATED_ESTIMATOR
    clearable: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """Tools of the caller, and whether layer 2 may clear their results."""


SETTINGS_SECTIONS: tuple[type[SettingsSection], ...] = (
    ToolResultSettings,
    MicrocompactSettings,
    ServerEditSettings,
    NotesSettings,
    CompactSettings,
    ContextSettings,
    RuleSettings,
    CacheSettings,
    WindowSettings,
    SpendSettings,
    SandboxSettings,
    ShellSettings,
    PermissionSettings,
    WebSettings,
    AgentSettings,
    ChatSettings,
    TeamSettings,
    HookSettings,
    DreamSettings,
    ExtractionSettings,
    DocSettings,
    McpServer,
    McpSettings,
    PlaceSettings,
    MailSettings,
    MemorySettings,
    RecallSettings,
    OtherAgentsSettings,
    SyncSettings,
    LockSettings,
    ModelSettings,
)
