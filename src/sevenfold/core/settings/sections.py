"""Settings sections of the agent: hooks, MCP, permissions, sandbox, shell, sync, subagents and web.

They are here because every module that reads settings files needs them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import PurePath
from typing import ClassVar, Literal, TypeAlias, cast

from sevenfold.core.json import EMPTY_OBJECT, JsonObject
from sevenfold.core.settings import (
    SettingSource,
    amount,
    choice,
    file_path,
    limit,
    line,
    lines,
    pairs,
    rule_patterns,
    switch,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    SECTION: ClassVar[str] = "agent"

    model: str | None = line(None)
    """Unset: the model that does this work best for its price among those we know."""

    base_url: str | None = line(None)
    """Unset: Anthropic's own address, or OpenAI's. Any server that speaks like OpenAI's is named here."""

    max_rounds: int = limit(500, at_least=1)
    """A turn that needs more is most likely going round in circles, at a cost."""

    thinking: bool = switch(True)
    """On: models that can think before they answer are better at this work than without."""

    vi_keys: bool = switch(False)
    """Off: the input of a chat has the keys that shells have; on gives it those of vi."""

    stall_seconds: int = limit(300, at_least=1)
    """An answer that brings nothing new but pings for five minutes is broken. A slow server needs more."""


@dataclass(frozen=True, slots=True)
class ChatSettings:
    SECTION: ClassVar[str] = "chat"

    theme: str = choice("auto", "auto", "dark", "light")
    """Auto goes by COLORFGBG, which many terminals set: asking the terminal itself would wait."""

    title: bool = switch(True)
    """On: a tab shows which chat works and which waits for you. The old title comes back at the end."""

    notify: str = choice("off", "off", "bell", "osc9")
    """Off: a sound is for those who want one. A question, or the end of a turn of half a minute, is told."""


@dataclass(frozen=True, slots=True)
class HookSettings:
    SECTION: ClassVar[str] = "hooks"

    enabled: bool = switch(True)
    """On: nothing is run unless a file names it. Off runs no hook, whatever names one."""

    claude_files: bool = switch(True)
    """On: a project's hooks in .claude say the same to any agent, and are run once a person has agreed."""

    claude_user_file: bool = switch(False)
    """Off: what a person had another agent run is theirs to share; on reads ~/.claude/settings.json too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSettings:
    SECTION: ClassVar[str] = "mcp_client"

    enabled: bool = switch(True)
    """On: nothing is started unless a server is named. Off starts none, whatever names one."""

    project_file: bool = switch(True)
    """On: what a repository's .mcp.json names is run once a person has agreed to it, and not before."""

    start_seconds: int = limit(10)
    """How long a session waits for servers that it has never seen; the tools of others are known."""

    connect_seconds: int = limit(30, at_least=1)
    """A server that is fetched and built by its own command takes long the first time; more is a hang."""

    call_seconds: int = limit(600, at_least=1)
    """As long as a command may run: whoever waits longer has lost sight of why."""

    schema_tokens: int = limit(8_000)
    """Four per cent of a 200,000-token window: schemas stand in every prompt, used or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """One `[mcp."name"]`: a program that is started, or an address. `${NAME}` is a variable's value."""

    SECTION: ClassVar[str] = "mcp"
    EACH: ClassVar[str] = "MCP server"

    enabled: bool = switch(True)
    """On: a server that is named is wanted. Off leaves out one that another file names."""

    command: str | None = line(None)
    """Unset: a server is started by its command, or reached at its address."""

    args: tuple[str, ...] = lines(())
    """None, as most programs need none; each is one argument and no shell reads it."""

    env: JsonObject = pairs(EMPTY_OBJECT)
    """None: a server inherits the path, the home and the user's name, and no key of yours."""

    url: str | None = line(None)
    """Unset: the address of a server over streamable HTTP, in place of a command."""

    headers: JsonObject = pairs(EMPTY_OBJECT)
    """None: what a server over HTTP asks for, mostly a key, is its own affair."""


PermissionMode: TypeAlias = Literal["ask", "accept-edits", "plan", "read-only", "bypass"]


PERMISSION_MODES: tuple[PermissionMode, ...] = ("ask", "accept-edits", "plan", "read-only", "bypass")


@dataclass(frozen=True, slots=True)
class PermissionSettings:
    SECTION: ClassVar[str] = "permissions"

    mode: str = choice("ask", *PERMISSION_MODES)
    """The mode that a session starts in: asking costs a key press, and not asking can cost a day's work."""

    allow: tuple[str, ...] = rule_patterns(is_strict=False)
    """Calls that nobody is asked for. Empty: what is safe to allow depends on the project."""

    ask: tuple[str, ...] = rule_patterns(is_strict=True)
    """Calls that are asked for in every mode. Empty: the mode knows what to ask for."""

    deny: tuple[str, ...] = rule_patterns(is_strict=True)
    """Calls that are refused in every mode, whatever allows them. Empty: nothing is bad for everybody."""

    @property
    def start_mode(self) -> PermissionMode:
        return cast("PermissionMode", self.mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    SECTION: ClassVar[str] = "sandbox"

    enabled: bool = switch(True)
    """On: what is held need not be asked for. Off, each is asked for, or refused where none may run."""

    allow_workspace: bool = switch(False)
    """Off: in `ask` mode a person sees each command that can change the project. On, held ones just run."""

    read: tuple[str, ...] = lines(())
    """More folders that a held command may read, such as a toolchain. None: what it reads a model may see."""

    pass_variables: tuple[str, ...] = lines(())
    """Variables that a held command gets though they look like secrets. None: what it prints a model sees."""

    memory_mb: int = limit(4_096, at_least=64)
    """Of one process: enough for most builds, and a leak stops before the machine does."""

    file_mb: int = limit(2_048, at_least=1)
    """Of one file: a runaway log ends here, not when the disk is full."""

    processes: int = limit(512, at_least=8)
    """Of one command: a parallel build has fewer, a fork bomb more within a tenth of a second."""


@dataclass(frozen=True, slots=True)
class ShellSettings:
    SECTION: ClassVar[str] = "shell"

    timeout_seconds: int = limit(120, at_least=1)
    """Most builds and test runs are over by then; what hangs costs a person two minutes."""

    longest_seconds: int = limit(600, at_least=1)
    """The most that a call can ask for; what takes longer belongs in the background."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncSettings:
    SECTION: ClassVar[str] = "sync"

    enabled: bool = switch(True)
    """On, and without effect until `sevenfold team join`. Off: only the commands exchange anything."""

    policy: str = choice("merge", "merge", "mirror")
    """Merge: two changes of one memory are put together, or both kept. Mirror: a pull takes the server's text
    and a push sends the file's, and what that overwrites is in the local history alone."""

    pull_seconds: int = limit(4, at_least=1, at_most=60)
    """How long a session waits for the team's news before its prompt is made: as long as a person does."""

    push_after_seconds: int = amount(2, at_least=1, at_most=3_600)
    """After the last change: a memory is often written twice in a row."""

    timeout_seconds: int = limit(20, at_least=1, at_most=600)
    """Of one request in the background: a large upload over a slow line takes ten."""

    @property
    def push_after(self) -> timedelta:
        return timedelta(seconds=self.push_after_seconds)

    @property
    def timeout(self) -> timedelta:
        return timedelta(seconds=self.timeout_seconds)


_BESIDE_A_KEY = (SettingSource.COMMITTED, SettingSource.LOCAL, SettingSource.ENVIRONMENT)
_KEY_REASON = "a project can fill the environment of an agent; set it in ~/.sevenfold/settings.toml"


@dataclass(frozen=True, slots=True)
class OtherAgentsSettings:
    SECTION: ClassVar[str] = "other_agents"

    model: str | None = line(None)
    """Unset: what is learnt in other agents is learnt by rules, which cost nothing. A model finds more."""

    cents_per_day: int = limit(0)
    """Nothing, until you say how much: nobody watches these calls. The caps of `[spend]` hold as well."""

    key_file: PurePath | None = file_path(None, never_from=_BESIDE_A_KEY, never_because=_KEY_REASON)
    """A file that only you can read, with your key and nothing else: the agent's own key is never used."""

    base_url: str | None = line(None, never_from=_BESIDE_A_KEY, never_because=_KEY_REASON)
    """Unset: Anthropic's own address, or OpenAI's. An OpenAI-compatible server of your own is named here."""


@dataclass(frozen=True, slots=True)
class TeamSettings:
    SECTION: ClassVar[str] = "agents"

    at_once: int = limit(8, at_least=1, at_most=64)
    """More than a person can follow, and about what an account's rate limit bears. Others wait their turn."""

    fork_rounds: int = limit(50, at_least=1)
    """A fork cannot compact its context, so it is for work that ends before the window does."""

    progress_seconds: int = amount(30, at_most=86_400)
    """Often enough to see that an agent is alive, seldom enough to cost next to nothing. 0: never."""

    @property
    def progress_every(self) -> timedelta | None:
        return timedelta(seconds=self.progress_seconds) if self.progress_seconds else None


@dataclass(frozen=True, slots=True)
class WebSettings:
    SECTION: ClassVar[str] = "web"

    private: bool = switch(False)
    """Off: a page could send the agent to services of this machine or network, which trust whoever asks."""

    timeout_seconds: int = limit(30, at_least=1, at_most=600)
    """Of one page with all its redirects: who waits longer than this has given up."""

    max_bytes: int = limit(5_000_000, at_least=1_000)
    """Of one page: articles have a tenth of it, and nobody reads more through a model."""
