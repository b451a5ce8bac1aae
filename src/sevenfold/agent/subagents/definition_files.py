"""Definitions of agents in files: the user's, then those built in, then the project's.

The author of a repository wrote the project's. Such a definition may take the name of a built-in one only
once a person has agreed to it, and never the name of one of the user's. Which model it runs on is not its to
say, and it has no more tools and no freer mode than the built-in agent that it replaces.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from sevenfold.agent.subagents.definitions import (
    AGENT_MEMORY_SCOPES,
    BUILT_IN_AGENTS,
    AgentDefinition,
    AgentMemoryScope,
    DefinitionOrigin,
    choose_agent_mode,
)
from sevenfold.core.errors import InputError, SevenfoldError
from sevenfold.core.events import DefinitionLimited, DefinitionSkipped, Emit, ignore_event
from sevenfold.core.settings.sections import PERMISSION_MODES, PermissionMode
from sevenfold.core.system import run_blocking
from sevenfold.core.text.markdown import MarkdownDocument, read_frontmatter
from sevenfold.core.tool_kinds import own_tool_name
from sevenfold.layers.forks.policy import check_agent_name
from sevenfold.store.project.instructions import CachedFileReader
from sevenfold.store.project.trust import Confirm, ConsentRequest, TrustStore, ask_consent

_MAX_FILES = 200
"""In one folder. Nobody has that many agents, and every one is read when a session starts."""

_CLAUDE_MODES: dict[str, PermissionMode] = {
    "default": "ask",
    "acceptedits": "accept-edits",
    "plan": "plan",
    "bypasspermissions": "bypass",
}


@dataclass(frozen=True, slots=True)
class DefinitionFolder:
    path: Path
    origin: DefinitionOrigin
    root: Path | None = None
    """The project that it belongs to."""


def list_definition_folders(home: Path, root: Path | None) -> tuple[DefinitionFolder, ...]:
    """Where definitions lie, the user's first; of two of one name in the project the later counts."""
    user = DefinitionFolder(home / "agents", "user")
    if root is None:
        return (user,)
    own = (root / ".claude" / "agents", root / ".sevenfold" / "agents")
    # In one's own home folder the project's folder is the user's.
    others = [path for path in own if os.path.realpath(path) != os.path.realpath(user.path)]
    return (user, *(DefinitionFolder(path, "project", root) for path in others))


def read_definitions(
    folders: Iterable[DefinitionFolder], emit: Emit = ignore_event, trust: TrustStore | None = None
) -> tuple[AgentDefinition, ...]:
    """All there are, by name. What cannot be used is reported, and the rest counts. Asks nobody."""
    chosen = _Choice(emit, trust)
    for folder in folders:
        for read in _read_folder(folder):
            if isinstance(read, DefinitionSkipped):
                emit(read)
            else:
                chosen.add(read)
    return tuple(sorted(chosen.found.values(), key=lambda definition: definition.name))


def list_definition_requests(folders: Iterable[DefinitionFolder]) -> tuple[ConsentRequest, ...]:
    """What a person is asked about the project's definitions: those that take the name of a built-in one."""
    read = [one for folder in folders for one in _read_folder(folder) if isinstance(one, _Definition)]
    users = {_fold(one.definition.name) for one in read if one.definition.origin == "user"}
    return tuple(
        one.request()
        for one in read
        if one.definition.origin == "project"
        and _fold(one.definition.name) not in users
        and find_built_in(one.definition.name) is not None
    )


async def ask_definitions(
    folders: Iterable[DefinitionFolder], trust: TrustStore | None, confirm: Confirm
) -> None:
    """Ask about those that need an answer; `read_definitions` goes by what is kept."""
    for request in await run_blocking(lambda: list_definition_requests(folders)):
        await ask_consent(request, trust, confirm)


def find_built_in(name: str) -> AgentDefinition | None:
    """The built-in agent that a name could be taken for."""
    return next((item for item in BUILT_IN_AGENTS if _fold(item.name) == _fold(name)), None)


@dataclass(frozen=True, slots=True)
class _Definition:
    definition: AgentDefinition
    file: Path
    name: str
    """The file's path below the project."""
    content: bytes

    def request(self) -> ConsentRequest:
        agent, file = self.definition.name, self.file
        return ConsentRequest(
            name=self.name,
            path=file,
            content=self.content,
            wants=(f"replace the built-in agent {agent}",),
            question=f"{file} came with the repository and replaces the built-in agent {agent} with these "
            f"instructions:\n{self.content.decode()}\nLet it replace {agent}, now and whenever this file is "
            "the same?",
        )


@dataclass(slots=True)
class _Choice:
    """The definitions that count, while files are read; the user's come first."""

    emit: Emit
    trust: TrustStore | None
    found: dict[str, AgentDefinition] = field(
        default_factory=lambda: {item.name: item for item in BUILT_IN_AGENTS}
    )

    def add(self, read: _Definition) -> None:
        definition = read.definition
        if definition.origin == "project":
            objection = self._objection(read)
            if objection:
                self.emit(DefinitionSkipped(str(read.file), objection))
                return
            definition = limit_definition(definition, self.emit)
        self.found[definition.name] = definition

    def _objection(self, read: _Definition) -> str:
        name = read.definition.name
        users = (item for item in self.found.values() if item.origin == "user")
        if any(_fold(item.name) == _fold(name) for item in users):
            return f"you have an agent {name} of your own; the repository's is not used"
        if find_built_in(name) is None:
            return ""
        consent = self.trust.find(read.name, read.content) if self.trust else "unasked"
        return "" if consent == "agreed" else f"{name} is a built-in agent; {read.request().explain(consent)}"


def limit_definition(definition: AgentDefinition, emit: Emit) -> AgentDefinition:
    """A project's definition without what is not the repository's to say; each part left out is told."""
    built_in = find_built_in(definition.name)
    limited = replace(
        definition,
        model="",
        memory=None if definition.memory == "user" else definition.memory,
        tools=_fewer_tools(definition, built_in),
        mode=choose_agent_mode(definition.mode, built_in.mode)
        if built_in and built_in.mode
        else definition.mode,
    )
    reasons = {
        "model": "it runs on the model of whoever starts it",
        "memory": "what you keep for all projects is not a repository's to read or write",
        "tools": f"it has no more tools than the built-in agent {definition.name}",
        "mode": f"it may do no more than the built-in agent {definition.name}",
    }
    for name, reason in reasons.items():
        if getattr(limited, name) != getattr(definition, name):
            emit(DefinitionLimited(definition.path, name, reason))
    return limited


def _fewer_tools(definition: AgentDefinition, built_in: AgentDefinition | None) -> tuple[str, ...] | None:
    if built_in is None or built_in.tools is None:
        return definition.tools
    if definition.tools is None:
        return built_in.tools
    return tuple(name for name in definition.tools if name in built_in.tools)


def _fold(name: str) -> str:
    """Names that differ in case alone are one name for whoever chooses by reading."""
    return name.casefold()


def _read_folder(folder: DefinitionFolder) -> Iterator[_Definition | DefinitionSkipped]:
    reader = CachedFileReader()
    files = _files(folder.path)
    if files and folder.root and not _is_below(folder.path, folder.root):
        yield DefinitionSkipped(
            str(folder.path), f"it leads out of {folder.root}; put the folder itself there"
        )
        return
    for path in files:
        try:
            text = reader.read(path, within=(folder.path,)).text
            name = path.relative_to(folder.root).as_posix() if folder.root else path.name
            yield _Definition(parse_definition(text, folder.origin, path), path, name, text.encode())
        except SevenfoldError as error:
            yield DefinitionSkipped(str(path), str(error))


def _is_below(path: Path, root: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def parse_definition(text: str, origin: DefinitionOrigin, path: Path) -> AgentDefinition:
    """What a file defines; `InputError` says what is wrong with it."""
    document = read_frontmatter(text)
    if document.fault:
        raise InputError(document.fault)
    prompt = document.body.strip()
    description = " ".join(document.text("description").split())
    if not description or not prompt:
        raise InputError("an agent needs a description in its head and a prompt below it")
    return AgentDefinition(
        name=check_agent_name(document.text("name") or path.stem),
        description=description,
        prompt=prompt,
        tools=_tools(document),
        model="" if document.text("model") == "inherit" else document.text("model"),
        mode=_mode(document),
        memory=_scope(document),
        origin=origin,
        path=str(path),
    )


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".md")[:_MAX_FILES]
    except OSError:
        return []  # most people have none


def _tools(document: MarkdownDocument) -> tuple[str, ...] | None:
    named = document.texts("tools")
    if not named or "*" in named:
        return None
    # Claude Code allows `Bash(git:*)`; what it may be called with is a matter of permissions here.
    plain = (name.partition("(")[0].strip() for name in named)
    return tuple(dict.fromkeys(name if "__" in name else own_tool_name(name) for name in plain))


def _mode(document: MarkdownDocument) -> PermissionMode | None:
    said = document.text("mode") or document.text("permissionMode")
    if not said or said.lower() in _CLAUDE_MODES:
        return _CLAUDE_MODES.get(said.lower())
    if said not in PERMISSION_MODES:
        raise InputError(f"its mode is {said!r}; use one of {', '.join(PERMISSION_MODES)}")
    return PERMISSION_MODES[PERMISSION_MODES.index(said)]


def _scope(document: MarkdownDocument) -> AgentMemoryScope | None:
    said = document.text("memory")
    if said and said not in AGENT_MEMORY_SCOPES:
        raise InputError(f"its memory is {said!r}; use one of {', '.join(AGENT_MEMORY_SCOPES)}")
    return AGENT_MEMORY_SCOPES[AGENT_MEMORY_SCOPES.index(said)] if said else None
