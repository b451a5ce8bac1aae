"""Commands of the user and of a project: markdown files whose text is sent as a prompt.

A file `review.md` in a folder of commands is `/review`. `$ARGUMENTS` in it stands for what was typed after
the name, `$1` to `$9` for its words. Nothing in a file is run. A file of the project is sent only once a
person has agreed to it as it is.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sevenfold.agent.consent import Confirm, ConsentRequest, ask_consent
from sevenfold.core.errors import InputError, SevenfoldError
from sevenfold.core.text.markdown import read_frontmatter
from sevenfold.core.text.safe_text import escape_controls, fence_text
from sevenfold.store.project.instructions import CachedFileReader
from sevenfold.store.project.trust import TrustStore

MAX_COMMAND_FILES = 200
"""In one folder: all are read for the menu."""
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


def _read_folder(folder: CommandFolder) -> Iterator[CustomCommand]:
    reader = CachedFileReader()
    try:
        paths = sorted(folder.path.glob("*.md"))[:MAX_COMMAND_FILES]
    except OSError:
        return
    for path in paths:
        try:
            text = reader.read(path, within=(folder.path,)).text
        except SevenfoldError:
            continue  # it is not offered; whoever misses it looks at the file
        document = read_frontmatter(text)
        name, body = path.stem.lower(), document.body.strip()
        if _NAME.fullmatch(name) and body:
            yield CustomCommand(
                name=name,
                help=" ".join((document.text("description") or body.splitlines()[0].strip("# ")).split())[
                    :80
                ],
                path=path,
                content=text.encode(),
                body=body,
                consent_key=path.relative_to(folder.root).as_posix() if folder.root else "",
            )


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
    return f"{typed}\n\n{fence_text('project-command', text, label=command.consent_key)}"


async def ask_command(command: CustomCommand, trust: TrustStore | None, confirm: Confirm) -> None:
    """Raise unless the command is the user's own, or a person has agreed to it as it is."""
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
