"""Which folders a sandboxed command may read, and which files in its own folder it may not change.

Guarded names are files that programs execute or obey, and files that hold keys. `SandboxRunStore` records
which of them existed when a command started. Those that the command adds are moved aside, even if the agent
was killed meanwhile.
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path
from uuid import uuid4

from sevenfold.agent.sandbox.guarded_files import (
    SHORT_NAME,
    explain_guarded_name,
    holds_guarded,
    may_be_short,
)
from sevenfold.core.errors import FileDamaged, FileMissing, LockBusy, StoreError, WireError
from sevenfold.core.events import Emit, GuardedLeft, GuardedMoved, SweepFailed
from sevenfold.core.json import Json, JsonObject, freeze_object, read_object, write_json
from sevenfold.core.settings import HOME_FOLDER
from sevenfold.core.tool_kinds import ToolContext
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.locks import mutex
from sevenfold.store.project.git import find_own_git_folders
from sevenfold.store.project.settings_files import find_checkout

# Paths where a file decides what may be executed, or holds a key; `guarded_files` has the others.

_SECRET = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".gcloud"})
_SECRET_FILES = frozenset({".netrc", ".pgpass", ".git-credentials", ".vault-token"})
"""Keys: reading them is asked for too."""

_OUR_RULES = ("settings", "hooks", "agents", "skills", "commands", "plugins")
"""Of our own folder: what decides, or is run. Memory of agents there is plain files."""

_OUR_PARTS = (*_SECRET, *_SECRET_FILES, HOME_FOLDER, *_OUR_RULES, "settings*.toml", "hooks*.json", ".config")
"""What else a short name may stand for."""

_STARTED = frozenset({"autostart", "systemd", "fish", "environment.d", "git"})
"""Folders of `.config` whose files are run, or say what is."""

_SYSTEM_FOLDERS = (
    *("/etc/", "/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/boot/", "/opt/", "/dev/", "/proc/", "/sys/"),
    "/var/spool/",
)


def explain_guarded(real: str, root: Path, home: Path | None) -> str | None:
    """Why an edit of this path is asked for in any mode; None: it is a file like others.

    Wide on purpose: a name that only looks like one of these may be that one on another disk.
    """
    if home is not None and Path(real).is_relative_to(home):
        return "it is among this program's own files"
    if not Path(real).is_relative_to(root) and real.startswith(_SYSTEM_FOLDERS):
        return "it is a system file"
    parts = _parts(real, root)
    if any(may_be_short(part, _OUR_PARTS) for part in parts):
        return "it may be the short name of a file that can run commands later"
    if _is_alias(real, root):
        return "it is a second name of another file"
    if _is_rule(parts):
        return "it decides what agents may do"
    return explain_guarded_name(parts) or explain_secret(real, root)


def explain_linked(real: str, root: Path) -> str | None:
    """Why an edit of a path with an ordinary name is asked for: a guarded name at the top of the project is a
    link that leads to it."""
    try:
        names = list_guarded_names(root)
    except OSError:
        return None
    for name in sorted(names):
        path = root / name
        if path.is_symlink() and Path(real).is_relative_to(os.path.realpath(path)):
            return f"{name} leads to it: {explain_guarded(str(path), root, None)}"
    return None


def explain_secret(real: str, root: Path) -> str | None:
    """Why even reading this path is asked for; None: it is a file like others."""
    parts = _parts(real, root)
    if any(part in _SECRET for part in parts) or (parts and parts[-1] in _SECRET_FILES):
        return "keys are kept there"
    return None


_IGNORED = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
"""Invisible letters and marks, which file systems without case leave out like the invisible signs."""


def fold_name(part: str) -> str:
    """A name as the most forgiving disk reads it: no case, no invisible characters, no dots at its end."""
    whole = _IGNORED.sub("", unicodedata.normalize("NFKC", part))
    seen = "".join(one for one in whole if unicodedata.category(one) != "Cf").replace("\u0131", "i")
    return seen.casefold().partition(":")[0].rstrip(" .")


def _parts(real: str, root: Path) -> list[str]:
    """The names to judge by. Where the project itself lies says nothing about its files."""
    path = Path(real)
    names = path.relative_to(root).parts if path.is_relative_to(root) else path.parts[1:]
    return [fold_name(name) for name in names]


def _is_alias(real: str, root: Path) -> bool:
    """Whether a part of this path is there, and its folder lists no such name: rules know the long one."""
    path = Path(real)
    # Where the project itself lies says nothing about its files, as in `_parts`.
    for one in (path, *path.parents):
        if one == root:
            return False
        if SHORT_NAME.fullmatch(fold_name(one.name)) is not None and os.path.lexists(one):
            try:
                listed = os.listdir(one.parent)
            except OSError:  # it can be passed, but not read
                return True
            if fold_name(one.name) not in map(fold_name, listed):
                return True
    return False


def _is_rule(parts: list[str]) -> bool:
    for at, part in enumerate(parts):
        below = parts[at + 1 : at + 2]
        if part == HOME_FOLDER and (not below or below[0].startswith(_OUR_RULES)):
            return True
        if part == ".config" and below and below[0] in _STARTED:
            return True
    return False


_SYSTEM = (
    *(
        "/bin",
        "/sbin",
        "/lib",
        "/lib32",
        "/lib64",
        "/libx32",
        "/usr",
        "/etc",
        "/opt",
        "/nix",
        "/gnu",
        "/snap",
    ),
    *("/proc", "/sys", "/var/lib/dpkg", "/var/lib/ca-certificates"),
)
"""Programs and what they read to work. Homes, other people's files, sockets and devices are not among it:
what a command reads it can show to a model."""

BIN_SIBLINGS = ("lib", "lib64", "libexec", "include")
"""What lies beside a folder of programs and is needed to run them; `share` holds keyrings too."""

TOOLCHAINS = (".rustup", ".cargo/registry", ".cargo/git", "go/pkg", ".nvm", ".pyenv", ".rbenv", ".sdkman")
"""In a home: compilers and packages, no keys."""


@dataclass(frozen=True, slots=True)
class MovedFile:
    """A file that a command made and may not have."""

    path: str
    moved_to: str
    failure: str = ""
    """Why it still lies where it was made."""


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """Where a name leads. By text and by file: a folder on the way to it can be another one later."""

    text: str
    device: int = 0
    inode: int = 0
    """0: it leads nowhere."""


def choose_writable_root(place: ToolContext) -> Path:
    """The one folder that commands may change: the project, or the worktree that an agent has of its own."""
    return place.root if place.cwd.is_relative_to(place.root) else place.cwd


def list_readable_folders(place: ToolContext, more: tuple[str, ...]) -> list[str]:
    """Folders in no order. Those that do not exist do no harm."""
    home = place.environ.get("HOME", "")
    found = [*_SYSTEM, str(place.root), str(place.cwd), sys.prefix, sys.base_prefix]
    found += [os.path.join(home, name) for name in TOOLCHAINS if home]
    found += [home + path[1:] if home and path.startswith("~/") else path for path in more]
    found += _of_path(place.environ, home)
    with suppress(StoreError):
        # A worktree's history lies with its repository, if that knows it. A `.git` that merely leads there
        # would let commands read any folder.
        folders = find_own_git_folders(find_checkout(place.cwd))
        found += [str(folders.own), str(folders.common)] if folders else []
    return list(dict.fromkeys(found))


def _of_path(environ: Mapping[str, str], home: str) -> Iterator[str]:
    """Where programs of the search path lie, and what they need. Never a whole home."""
    for entry in environ.get("PATH", "").split(os.pathsep):
        if not os.path.isabs(entry) or os.path.normpath(entry) in ("/", os.path.normpath(home or "/")):
            continue
        yield entry
        above, name = os.path.split(entry.rstrip("/"))
        if name in ("bin", "sbin") and above != home:
            yield from (os.path.join(above, beside) for beside in BIN_SIBLINGS)


def make_own_folder(root: Path) -> None:
    """Have our own folder there, so that it can be mounted read-only: settings that a command puts into it
    would be obeyed by the next agent that starts, while the command still runs or after we were killed."""
    with suppress(OSError):  # it is there, or nobody can make it
        os.mkdir(root / HOME_FOLDER, 0o700)


def list_guarded_names(root: Path) -> frozenset[str]:
    """What lies at the top of a project and is obeyed by programs: repositories, hooks, settings."""
    return frozenset(
        name
        for name in os.listdir(root)
        if holds_guarded(fold_name(name)) or explain_guarded(str(root / name), root, None)
    )


def list_guarded_paths(root: Path) -> list[str]:
    """What is mounted read-only, links followed: a link itself cannot be, and what it leads to outside the
    project, or nowhere, no command can write."""
    top = os.path.realpath(root)
    found = {os.path.realpath(root / name) for name in list_guarded_names(root)}
    return sorted(path for path in found if path.startswith(f"{top}{os.sep}") and os.path.exists(path))


def read_guarded(root: Path) -> Mapping[str, LinkTarget | None]:
    """The same names with where they lead; None: the name is no link."""
    return {name: _read_link(root / name) for name in sorted(list_guarded_names(root))}


def _read_link(path: Path) -> LinkTarget | None:
    try:
        text = os.readlink(path)
    except OSError:  # no link, or gone
        return None
    try:
        found = os.stat(path)
    except OSError:  # it leads nowhere
        return LinkTarget(text)
    return LinkTarget(text, found.st_dev, found.st_ino)


def move_aside(root: Path, known: Mapping[str, LinkTarget | None]) -> Iterator[MovedFile]:
    """Take the names that are obeyed, and were not there before or led elsewhere, away from the programs that
    would obey them.

    What is missing cannot be mounted read-only, and of a link only what it leads to can, so that this comes
    after the fact.
    """
    for name, link in read_guarded(root).items():
        if name in known and known[name] == link:
            continue
        choices = (root / f"{name}.held-back-{number}" for number in count(1))
        aside = next(path for path in choices if not os.path.lexists(path))
        try:
            os.rename(root / name, aside)
        except OSError as error:
            yield MovedFile(str(root / name), "", error.strerror or str(error))
        else:
            yield MovedFile(str(root / name), str(aside))


# Records of running commands. They lie where no command can write.

SANDBOX_RUNS_FOLDER = "held"
_SUFFIX = ".json"
MAX_NOTE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SandboxRunRecord:
    """One command's, until it has ended and what it made is moved aside."""

    folder: Folder
    name: str
    lock: ExitStack

    def close(self, emit: Emit, *, is_clean: bool) -> None:
        """Strike it out; where something could not be moved it stays, for the next start to try again."""
        with self.lock:
            try:
                if is_clean:
                    _remove(self.folder, self.name)
            except StoreError as error:
                emit(SweepFailed(str(self.folder.path), str(error)))


class SandboxRunStore:
    """The sandboxed commands of one project that run now, in its control folder."""

    def __init__(self, control: Folder) -> None:
        self._control = control

    def note(self, root: Path, known: Mapping[str, LinkTarget | None]) -> SandboxRunRecord:
        """For a command that starts now. Blocks on the disk."""
        name = uuid4().hex
        with ExitStack() as stack:
            folder = stack.enter_context(self._control.subfolder(SANDBOX_RUNS_FOLDER))
            # In this order: a record whose lock nobody holds is taken for that of a dead process.
            stack.enter_context(mutex(folder, name))
            folder.replace(f"{name}{_SUFFIX}", _write(root, known))
            return SandboxRunRecord(folder, name, stack.pop_all())

    def sweep(self, emit: Emit) -> None:
        """Move aside what commands of killed processes made, and report it. What cannot be moved is
        reported, and tried again the next time. Blocks on the disk."""
        try:
            folder = self._control.subfolder(SANDBOX_RUNS_FOLDER, create=False)
        except FileMissing:
            return
        with folder:
            for key in folder.names():
                name = key.removesuffix(_SUFFIX)
                if name == key:
                    continue
                with suppress(LockBusy), mutex(folder, name, wait=timedelta()):
                    self._settle(folder, name, emit)

    def _settle(self, folder: Folder, name: str, emit: Emit) -> None:
        try:
            wire = read_object(folder.read(f"{name}{_SUFFIX}", max_bytes=MAX_NOTE_BYTES))
        except FileMissing:
            return  # its command ended meanwhile
        except (FileDamaged, WireError) as error:
            emit(GuardedLeft(str(folder.path / f"{name}{_SUFFIX}"), str(error)))
            return
        root = Path(str(wire.get("root", "")))
        moved = list(move_aside(root, _read_known(wire.get("known")))) if root.is_dir() else []
        for item in moved:
            report_moved(item, emit)
        if not any(item.failure for item in moved):
            _remove(folder, name)


def report_moved(moved: MovedFile, emit: Emit) -> None:
    if moved.failure:
        emit(GuardedLeft(moved.path, moved.failure))
    else:
        emit(GuardedMoved(moved.path, moved.moved_to))


def _remove(folder: Folder, name: str) -> None:
    """Before the lock is let go of: whoever waits for it finds that its file is gone."""
    folder.remove(f"{name}{_SUFFIX}")
    folder.remove(f"{name}.mutex")


def _write(root: Path, known: Mapping[str, LinkTarget | None]) -> bytes:
    links = {
        name: None if link is None else {"text": link.text, "device": link.device, "inode": link.inode}
        for name, link in known.items()
    }
    return write_json(freeze_object({"root": str(root), "known": links}))


def _read_known(wire: Json) -> dict[str, LinkTarget | None]:
    return {name: _read_run_link(link) for name, link in wire.items()} if isinstance(wire, JsonObject) else {}


def _read_run_link(wire: Json) -> LinkTarget | None:
    if not isinstance(wire, JsonObject):
        return None
    device, inode = wire.get("device"), wire.get("inode")
    return LinkTarget(
        str(wire.get("text", "")),
        device if isinstance(device, int) else 0,
        inode if isinstance(inode, int) else 0,
    )
