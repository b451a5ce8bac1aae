"""Which folders a sandboxed command may read, and which files in its own folder it may not change."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from sevenfold.agent.sandbox.sensitive_paths import explain_guarded
from sevenfold.core.errors import StoreError
from sevenfold.core.settings.sections import HOME_FOLDER
from sevenfold.core.tool_context import ToolContext
from sevenfold.store.project.git import find_project_root

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
    found += [os.path.expanduser(path) for path in more]
    found += _of_path(place.environ, home)
    with suppress(StoreError):
        # A worktree's history lies with its repository, if that knows it.
        found.append(str(find_project_root(place.cwd) / ".git"))
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
        os.mkdir(root / HOME_FOLDER)


def list_guarded_names(root: Path) -> frozenset[str]:
    """What lies at the top of a project and is obeyed by programs: repositories, hooks, settings."""
    return frozenset(name for name in os.listdir(root) if explain_guarded(str(root / name), root, None))


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
