"""Commands of the user and of a project: markdown files whose text is sent as a prompt.

A file `review.md` in a folder of commands is `/review`. `$ARGUMENTS` in it stands for what was typed after
the name, `$1` to `$9` for its words. Nothing in a file is run. A file of the project is sent only once a
person has agreed to it as it is.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from pathlib import Path

from sevenfold.agent.loop.rewind import COMMAND_TAG
from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.errors import InputError, SevenfoldError
from sevenfold.core.text.markdown import MarkdownDocument, read_frontmatter
from sevenfold.core.text.safe_text import escape_controls, fence_text
from sevenfold.store.project.instructions import CachedFileReader
from sevenfold.store.project.trust import Confirm, ConsentRequest, TrustStore, ask_consent

MAX_COMMAND_FILES = 2_000
"""In one folder and those below it: all are read for the menu."""
MAX_COMMAND_DEPTH = 4
"""Folders below a folder of commands; deeper ones are no order any more."""
MAX_COMMAND_FILE_BYTES = 100_000
"""A longer text is no prompt that somebody wrote."""
HELPS_TTL = timedelta(seconds=2)
"""How long the menu uses what was read: a thousand files at each keypress are felt."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_PLACE = re.compile(r"\$(ARGUMENTS|[1-9])")


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomCommand:
    """One file."""

    name: str
    help: str
    path: Path
    content: bytes
    body: str
    consent_key: str = ""
    """Its path below the project, where it came with one; empty for the user's own."""
    problem: str = ""
    """Why it cannot be sent: it is in no menu, and says so when it is typed."""


@dataclass(frozen=True, slots=True)
class CommandFolder:
    path: Path
    root: Path | None = None
    """The project that it belongs to."""


def list_command_folders(home: Path, user_home: Path, root: Path | None) -> tuple[CommandFolder, ...]:
    """The user's come first: a project cannot put another command in the place of one."""
    users = (CommandFolder(home / "commands"), CommandFolder(user_home / ".claude" / "commands"))
    if root is None:
        return users
    own = (root / ".sevenfold" / "commands", root / ".claude" / "commands")
    known = {os.path.realpath(folder.path) for folder in users}
    return (*users, *(CommandFolder(path, root) for path in own if os.path.realpath(path) not in known))


def read_custom_commands(
    folders: Sequence[CommandFolder], taken: frozenset[str] = frozenset()
) -> tuple[CustomCommand, ...]:
    """All there are, by name. Names of built-in commands are not to be had."""
    found: dict[str, CustomCommand] = {}
    for folder in folders:
        for command in _read_folder(folder):
            if command.name not in taken:
                found.setdefault(command.name, command)
    return tuple(sorted(found.values(), key=lambda command: command.name))


@dataclass(slots=True)
class CommandHelps:
    """The commands for the menu, with their help, read again when they are old."""

    read: Callable[[], Sequence[CustomCommand]]
    clock: Clock = field(default_factory=SystemClock)
    _helps: Mapping[str, str] = field(default_factory=dict[str, str])
    _read_at: timedelta | None = None

    def list_helps(self) -> Mapping[str, str]:
        now = self.clock.uptime()
        if self._read_at is None or now - self._read_at > HELPS_TTL:
            self._helps = {one.name: one.help for one in self.read() if not one.problem}
            self._read_at = now
        return self._helps


def _list_files(folder: Path) -> Iterator[Path]:
    """Those of the folder itself first: a folder below it puts no other command in the place of one. Links
    to folders are not followed."""
    deep: list[Path] = []
    for place, folders, names in os.walk(folder):
        here = Path(place)
        folders.sort()
        if len(here.relative_to(folder).parts) >= MAX_COMMAND_DEPTH:
            folders.clear()
        paths = [here / name for name in sorted(names) if name.endswith(".md")]
        if here == folder:
            yield from paths
        else:
            deep += paths
        if len(deep) > MAX_COMMAND_FILES:
            break
    yield from deep


def _read_folder(folder: CommandFolder) -> Iterator[CustomCommand]:
    reader = CachedFileReader()
    for path in islice(_list_files(folder.path), MAX_COMMAND_FILES):
        name = path.stem.lower()
        if not _NAME.fullmatch(name):
            continue
        text = body = problem = ""
        try:
            found = reader.read(path, within=(folder.path,))
            text, document = found.text, read_frontmatter(found.text)
            body = document.body.strip()
            shown = _describe(document, body, "/".join(path.parent.relative_to(folder.path).parts))
            if found.is_cut or len(text.encode()) > MAX_COMMAND_FILE_BYTES:
                problem = f"it has more than {MAX_COMMAND_FILE_BYTES:,} bytes; shorten it"
            elif not body:
                problem = "it has no text"
        except SevenfoldError as error:
            problem, shown = str(error), ""
        yield CustomCommand(
            name=name,
            help=shown,
            path=path,
            content=text.encode(),
            body=body,
            consent_key=path.relative_to(folder.root).as_posix() if folder.root else "",
            problem=problem,
        )


def _describe(document: MarkdownDocument, body: str, folder: str) -> str:
    """For the menu: the arguments, what the command does, and the folder that it is ordered into."""
    hint, lines = document.text("argument-hint"), body.splitlines()
    said = document.text("description") or (lines[0].strip("# ") if lines else "")
    shown = " ".join(" ".join(part for part in (hint, said, folder and f"({folder})") if part).split())
    return escape_controls(shown if len(shown) <= MAX_HELP_CHARS else f"{shown[: MAX_HELP_CHARS - 1]}…")


MAX_HELP_CHARS = 80


def fill_command(command: CustomCommand, arguments: str) -> str:
    """The prompt. Arguments that the file has no place for stand at its end."""
    try:
        words = shlex.split(arguments)
    except ValueError:
        words = arguments.split()

    def fill(match: re.Match[str]) -> str:
        if match[1] == "ARGUMENTS":
            return arguments
        at = int(match[1])
        return words[at - 1] if at <= len(words) else ""

    text, places = _PLACE.subn(fill, command.body)
    return text if places or not arguments else f"{text}\n\n{arguments}"


def make_command_prompt(command: CustomCommand, arguments: str) -> str:
    """What is sent. The text of a project is fenced: a person wanted it sent, and has not said it, so that
    nothing of it becomes a memory of theirs."""
    text = fill_command(command, arguments)
    if not command.consent_key:
        return text
    typed = f"/{command.name} {arguments}".strip()
    return f"{typed}\n\n{fence_text(COMMAND_TAG, text, label=command.consent_key)}"


async def ask_command(command: CustomCommand, trust: TrustStore | None, confirm: Confirm) -> None:
    """Raise unless the command is the user's own, or a person has agreed to it as it is."""
    if command.problem:
        raise InputError(f"/{command.name} is not sent: {command.path}: {command.problem}")
    if not command.consent_key:
        return
    text = escape_controls(command.content.decode("utf-8", "backslashreplace")).rstrip("\n")
    request = ConsentRequest(
        name=command.consent_key,
        path=command.path,
        content=command.content,
        wants=(f"send its text as your prompt for /{command.name}",),
        question=f"{command.path} came with the repository and says:\n{text}\n"
        f"Send this as your prompt, now and whenever you type /{command.name}?",
    )
    consent = await ask_consent(request, trust, confirm)
    if consent != "agreed":
        raise InputError(f"/{command.name} is not sent: {request.explain(consent)}")
