"""Every section of settings that a file may speak of: one that is not in this list would be refused."""

from __future__ import annotations

from sevenfold.core.catalog import ModelSettings
from sevenfold.core.settings import SettingsSection
from sevenfold.core.settings.agent import AgentSettings
from sevenfold.core.settings.hooks import HookSettings
from sevenfold.core.settings.mcp import McpServer, McpSettings
from sevenfold.core.settings.permissions import PermissionSettings
from sevenfold.core.settings.sandbox import SandboxSettings
from sevenfold.core.settings.shell import ShellSettings
from sevenfold.core.settings.sync import SyncSettings
from sevenfold.core.settings.team import TeamSettings
from sevenfold.core.settings.web import WebSettings
from sevenfold.core.tokens.window import WindowSettings
from sevenfold.layers.compaction.settings import CompactSettings
from sevenfold.layers.context.sources import ContextSettings
from sevenfold.layers.dreams.policy import DreamSettings
from sevenfold.layers.living_docs.policy import DocSettings
from sevenfold.layers.memory.extraction.policy import ExtractionSettings
from sevenfold.layers.memory.recall.policy import RecallSettings
from sevenfold.layers.memory.rules.policy import RuleSettings
from sevenfold.layers.microcompact.facts import MicrocompactSettings
from sevenfold.layers.microcompact.server_edits import ServerEditSettings
from sevenfold.layers.session_notes.policy import NotesSettings
from sevenfold.layers.tool_results.policy import ToolResultSettings
from sevenfold.session.cache.placement import CacheSettings
from sevenfold.session.spend.budget import SpendSettings
from sevenfold.store.files.lock import LockSettings
from sevenfold.store.mailbox import MailSettings
from sevenfold.store.memory.settings import MemorySettings
from sevenfold.store.project.place_settings import PlaceSettings

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
    SyncSettings,
    LockSettings,
    ModelSettings,
)
