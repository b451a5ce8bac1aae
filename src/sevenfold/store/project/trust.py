"""What a person has answered about a repository's own files, and where no memories may be kept.

Answers are kept by content, so that a changed file is asked about again, where no agent may write.

Hooks, MCP servers, agents and settings of a repository count once a person has agreed to them: `ask_consent`.
An answer of either kind holds until the file changes. Where nobody can be asked the answer is no, and nothing
is kept.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from sevenfold.core.canonical import digest
from sevenfold.core.errors import FileDamaged, FileMissing, NotRegular, ProjectError, WireError
from sevenfold.core.json import JsonObject, read_object, write_json
from sevenfold.core.system import run_blocking
from sevenfold.store.files.folder import Folder
from sevenfold.store.project.git import real_path

TRUSTED_FILE = "trusted.json"
MAX_TRUST_BYTES = 256 * 1024

_REFUSED = "refused:"
"""Before the name of a file that somebody has said no to."""

Consent: TypeAlias = Literal["agreed", "refused", "unasked"]


class TrustStore:
    """The agreements for one project, in its control folder."""

    def __init__(self, control: Folder) -> None:
        self._folder = control

    def find(self, name: str, content: bytes) -> Consent:
        """What somebody has answered about this file as it is now."""
        known, wanted = self._read(), digest(content)
        if known.get(name) == wanted:
            return "agreed"
        return "refused" if known.get(_REFUSED + name) == wanted else "unasked"

    def keep(self, name: str, content: bytes, *, is_agreed: bool) -> None:
        """Write an answer down: it holds until the file changes."""
        if is_agreed:
            self.trust(name, content)
        else:
            self.refuse(name, content)

    def is_trusted(self, name: str, content: bytes) -> bool:
        """Whether somebody has agreed to this file as it is now."""
        return self._read().get(name) == digest(content)

    def trust(self, name: str, content: bytes) -> None:
        """Somebody agreed: until the file changes, nobody is asked again."""
        self._write(name, _REFUSED + name, content)

    def refuse(self, name: str, content: bytes) -> None:
        """Somebody said no: until the file changes, nobody is asked again."""
        self._write(_REFUSED + name, name, content)

    def _write(self, key: str, opposite: str, content: bytes) -> None:
        kept = {known: value for known, value in self._read().items() if known != opposite}
        self._folder.replace(TRUSTED_FILE, write_json(JsonObject({**kept, key: digest(content)})))

    def _read(self) -> JsonObject:
        """Nothing is trusted where the record cannot be read: that costs a question."""
        try:
            return read_object(self._folder.read(TRUSTED_FILE, max_bytes=MAX_TRUST_BYTES))
        except (FileMissing, FileDamaged, NotRegular, ProjectError, WireError):
            return JsonObject()


# Writers fill a memory folder without asking: it is no system folder, and holds no keys or settings of other
# programs.

_SYSTEM = (
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/opt", "/proc", "/run", "/sbin", "/sys", "/usr"),
    *("/var", "/Applications", "/Library", "/System"),
)
_TEMPORARY = ("/var/tmp", "/var/folders")
"""Anybody's, though they lie in a system folder; the second is macOS's."""

_SECRET = (".aws", ".azure", ".config", ".docker", ".gnupg", ".kube", ".password-store", ".ssh")
"""What a home folder hides may be a link: these are refused where it leads to as well."""

_OURS = (".sevenfold", ".config/sevenfold", ".local/share/sevenfold")


def refuse_memory_place(path: Path, taken: Iterable[Path]) -> None:
    """`ProjectError` where no memories may be kept; `taken` are folders that have another use."""
    user, real = real_path(Path(os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir)), real_path(path)
    if user.is_relative_to(real) or _is_system(real, user) or _is_hidden(real, user):
        raise ProjectError(
            f"{path} cannot be a memory folder: it holds your home folder, or lies in a system folder or one "
            "that holds keys or settings; choose a folder of its own"
        )
    for other in taken:
        if real.is_relative_to(real_path(other)):
            raise ProjectError(
                f"{path} cannot be a memory folder: {other} is where projects have their own; "
                "choose a folder of its own, or leave the setting out"
            )


def _is_system(real: Path, user: Path) -> bool:
    guarded = _both_names(map(Path, _SYSTEM))
    # Some systems have homes below /var or /usr, and services always do.
    is_at_home = user not in guarded and real.is_relative_to(user)
    return not is_at_home and _is_below(real, guarded) and not _is_below(real, map(Path, _TEMPORARY))


def _is_hidden(real: Path, user: Path) -> bool:
    """Whether it lies in something that a home folder hides and that is not ours."""
    homes = [user, Path("/root")]
    if any(_is_below(real, [home / ours for ours in _OURS]) for home in homes):
        return False
    below = [real.relative_to(home).parts for home in homes if real.is_relative_to(home)]
    return any(parts and parts[0].startswith(".") for parts in below) or _is_below(
        real, [home / secret for home in homes for secret in _SECRET]
    )


def _is_below(real: Path, folders: Iterable[Path]) -> bool:
    return any(real.is_relative_to(folder) for folder in _both_names(folders))


def _both_names(folders: Iterable[Path]) -> list[Path]:
    """As they are called and where that leads: on some systems /etc and /tmp are links."""
    named = list(folders)
    return [*named, *map(real_path, named)]


Confirm: TypeAlias = Callable[[str], Awaitable[bool | None]]
"""Asks a person a question that is answered by yes or no; None where nobody could be asked."""


async def decline_confirmation(_question: str) -> bool | None:
    """For a run with nobody to ask: what has not been agreed to stays off."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentRequest:
    """A file of a repository that does something only once a person has agreed."""

    name: str
    """Its path below the project: what an answer is kept under, and how a person names it."""
    path: Path
    content: bytes
    """What is agreed to, or refused."""
    wants: tuple[str, ...]
    """What it would do, a line each."""
    question: str

    def explain(self, consent: Consent) -> str:
        """Why it does not count, and how to allow it."""
        said = "you have refused it" if consent == "refused" else "nobody has agreed to it"
        return f"{said}; look at the file, then `sevenfold settings --trust {self.name}` allows it"


async def ask_consent(request: ConsentRequest, trust: TrustStore | None, confirm: Confirm) -> Consent:
    """What somebody has answered about this file as it is now. Asks where no answer was kept."""
    if trust is not None:
        kept: Consent = await run_blocking(lambda: trust.find(request.name, request.content))
        if kept != "unasked":
            return kept
    answer = await confirm(request.question)
    if answer is None:
        return "unasked"
    if trust is not None:
        await run_blocking(lambda: trust.keep(request.name, request.content, is_agreed=answer))
    return "agreed" if answer else "refused"
