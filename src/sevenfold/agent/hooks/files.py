"""Finds hooks: in the user's own files, and in a repository's files once a person has agreed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sevenfold.agent.hooks.config import Hook, HookDialect, HookList, parse_hooks
from sevenfold.agent.mcp.servers import Confirm, decline_confirmation
from sevenfold.core.errors import FileMissing, SevenfoldError
from sevenfold.core.events import Emit, HooksIgnored, ignore_event
from sevenfold.core.json import read_object, write_json
from sevenfold.core.settings.sections import HookSettings
from sevenfold.store.files.offload import run_blocking
from sevenfold.store.project.instructions import CachedFileReader
from sevenfold.store.project.trust import TrustStore

USER_HOOKS_FILE = "hooks.json"


_PROJECT_FILE = ".sevenfold/hooks.json"


CLAUDE_SETTINGS_FILE = ".claude/settings.json"


CLAUDE_LOCAL_SETTINGS_FILE = ".claude/settings.local.json"


@dataclass(frozen=True, slots=True)
class HookFile:
    """A file that may hold hooks."""

    path: Path
    beneath: Path
    """The folder that it may not lead out of."""
    dialect: HookDialect = "own"
    needs_trust: bool = False

    @property
    def name(self) -> str:
        return self.path.relative_to(self.beneath).as_posix()


@dataclass(frozen=True, slots=True)
class HookFolders:
    home: Path
    """Our own."""
    user_home: Path
    root: Path | None
    """The project's checkout."""


@dataclass(frozen=True, slots=True)
class _Content:
    agreed: bytes
    """What a person agrees to: the hooks alone, however else the file changes."""
    found: HookList


def list_hook_files(settings: HookSettings, folders: HookFolders) -> Iterator[HookFile]:
    """Every file that is looked at, the user's own first."""
    if not settings.enabled:
        return
    yield HookFile(folders.home / USER_HOOKS_FILE, folders.home)
    if settings.claude_user_file:
        yield HookFile(folders.user_home / CLAUDE_SETTINGS_FILE, folders.user_home, "claude")
    root = folders.root
    if root is None or root == folders.user_home:
        return
    yield HookFile(root / _PROJECT_FILE, root, needs_trust=True)
    if settings.claude_files:
        yield HookFile(root / CLAUDE_SETTINGS_FILE, root, "claude", needs_trust=True)
        # By its name this file is the user's own. But an archive can contain it, and a sandboxed command can
        # write it, so its hooks run only once a person has agreed.
        yield HookFile(root / CLAUDE_LOCAL_SETTINGS_FILE, root, "claude", needs_trust=True)


async def find_hooks(
    settings: HookSettings,
    folders: HookFolders,
    trust: TrustStore | None = None,
    *,
    confirm: Confirm = decline_confirmation,
    emit: Emit = ignore_event,
) -> tuple[Hook, ...]:
    """All hooks that may run. Those that may not run are reported, with the reason."""
    hooks: list[Hook] = []
    for file in await run_blocking(lambda: list(list_hook_files(settings, folders))):
        try:
            content = await run_blocking(lambda file=file: _read(file))
        except FileMissing:
            continue
        except SevenfoldError as error:
            emit(HooksIgnored(str(file.path), str(error)))
            continue
        for problem in content.found.problems:
            emit(HooksIgnored(str(file.path), problem))
        if content.found.hooks and await _is_agreed(file, content, trust, confirm, emit):
            hooks += content.found.hooks
    return tuple(hooks)


def _read(file: HookFile) -> _Content:
    config = read_object(CachedFileReader().read(file.path, (file.beneath,)).text)
    agreed = write_json(config.get("hooks"), sort_keys=True)
    return _Content(agreed, parse_hooks(config, source=str(file.path), dialect=file.dialect))


async def _is_agreed(
    file: HookFile, content: _Content, trust: TrustStore | None, confirm: Confirm, emit: Emit
) -> bool:
    if not file.needs_trust or (trust is not None and trust.is_trusted(file.name, content.agreed)):
        return True
    commands = "\n".join(f"  {hook.event}: {hook.command}" for hook in content.found.hooks)
    if not await confirm(f"{file.path} wants to run these commands of the repository's own:\n{commands}"):
        reason = f"{len(content.found.hooks)} of its hooks wait for somebody to trust this project"
        emit(HooksIgnored(str(file.path), reason))
        return False
    if trust is not None:
        await run_blocking(lambda: trust.trust(file.name, content.agreed))
    return True
