"""Every section of settings that a file may speak of: one that is not in this list would be refused."""

from __future__ import annotations

from sevenfold.core.catalog import ModelSettings
from sevenfold.core.settings import SettingsSection
from sevenfold.core.window import WindowSettings
from sevenfold.layers.clear_facts import MicrocompactSettings
from sevenfold.layers.compact import CompactSettings
from sevenfold.layers.context_sources import ContextSettings
from sevenfold.layers.dream import DreamSettings
from sevenfold.layers.extract import ExtractionSettings
from sevenfold.layers.living_docs import DocSettings
from sevenfold.layers.recall import RecallSettings
from sevenfold.layers.rules import RuleSettings
from sevenfold.layers.server_edits import ServerEditSettings
from sevenfold.layers.session_notes import NotesSettings
from sevenfold.layers.tool_results import ToolResultSettings
from sevenfold.request.placement import CacheSettings
from sevenfold.run.agent_settings import AgentSettings
from sevenfold.run.hook_files import HookSettings
from sevenfold.run.mcp_settings import McpServer, McpSettings
from sevenfold.run.permission_settings import PermissionSettings
from sevenfold.run.sandbox import SandboxSettings
from sevenfold.run.shell_settings import ShellSettings
from sevenfold.run.spend import SpendSettings
from sevenfold.run.sync_settings import SyncSettings
from sevenfold.run.team_settings import TeamSettings
from sevenfold.run.web_settings import WebSettings
from sevenfold.store.lock import LockSettings
from sevenfold.store.mailbox import MailSettings
from sevenfold.store.memory_settings import MemorySettings
from sevenfold.store.places import PlaceSettings

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
