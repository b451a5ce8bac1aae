"""Which project a folder belongs to, and what git tracks there.

A project is named by the canonical root of its git repository, the same from every worktree. Everything is
read from git's own files, without running git: a repository can make git run code of its choosing.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias

from sevenfold.core import events
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.system import map_os_errors
from sevenfold.store.files.folder import check_path

# What git tracks, and where, from its index.

_MAX_INDEX_BYTES = 256 * 1024 * 1024
"""Some two million files; beyond that we do not look and say so."""

TrackingState: TypeAlias = Literal["tracked", "untracked", "unknown"]
IndexPresence: TypeAlias = Literal["here", "elsewhere", "unknown"]

_MOST_COMPARED = 1000
"""One file that git has seen will do; where the first thousand are not, the rest are not either."""

_HASH_BYTES = (20, 32)
"""SHA-1 and SHA-256 repositories; the index does not say which it is."""


def read_tracking(checkout: Path, names: frozenset[str]) -> TrackingState:
    """Whether any of these paths (relative, with `/`) is in the index of the repository checked out here.

    Without an index nobody knows: an unpacked archive has none, and holds what its maker put there. Case is
    ignored: on a disk that ignores it too, a tracked `.SEVENFOLD` is the same folder. Nor does an index tell
    of files that it never saw, such as one that an archive brought along.
    """
    wanted = {name.casefold() for name in names}
    try:
        git_dir = _git_dir(checkout)
        for file in (git_dir / "index", *sorted(git_dir.glob("sharedindex.*"))):
            if not wanted.isdisjoint(_names(_read(file))):
                return "tracked"
    except (OSError, ValueError):
        return "unknown"
    is_elsewhere = read_presence(git_dir, Path(os.path.realpath(checkout))) == "elsewhere"
    return "unknown" if is_elsewhere else "untracked"


def read_presence(git_dir: Path, folder: Path) -> IndexPresence:
    """Whether the files that this git folder last saw are those in `folder`, by inode.

    A copy of them has other inodes, and an archive cannot ask for one. Times and sizes prove nothing: an
    archive sets both, and every edit changes them.
    """
    try:
        entries = _read_entries(_read(git_dir / "index"), _MOST_COMPARED)
    except (OSError, ValueError):
        return "unknown"
    # Some programs that write an index leave inodes out, and a part of a split one leaves out names.
    telling = [entry for entry in entries if entry.inode and entry.name]
    if not telling:
        return "unknown"
    return "here" if any(_is_there(folder, entry) for entry in telling) else "elsewhere"


def _is_there(folder: Path, entry: _Entry) -> bool:
    path = folder / os.fsdecode(entry.name)
    try:
        found = os.lstat(path)
        # A link on the way would lead to the very files of whoever is pointed at.
        if not stat.S_ISREG(found.st_mode) or os.path.realpath(path) != str(path):
            return False
    except (OSError, ValueError):
        return False
    return found.st_ino & 0xFFFFFFFF == entry.inode


def _git_dir(checkout: Path) -> Path:
    mark = checkout / ".git"
    if mark.is_dir():
        return mark
    label, _, target = mark.read_text("utf-8").partition(":")
    git_dir = checkout / target.strip()
    if label != "gitdir" or not target.strip() or not git_dir.is_dir():
        raise ValueError(f"{mark} is no pointer to a git folder")
    return git_dir


def _read(file: Path) -> bytes:
    # Non-blocking, and a plain file: what a stranger's repository holds in its place is not waited for.
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb") as opened:
        found = os.fstat(opened.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_INDEX_BYTES:
            raise ValueError(f"{file} is no plain file, or too large to look through")
        return opened.read(_MAX_INDEX_BYTES)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A tracked file as git last saw it."""

    name: bytes
    inode: int
    """Cut to 32 bits."""


_MOST_SAID = 0xFFF
"""Of the length of a name: an entry has twelve bits for it."""

_SEEN = struct.Struct(">20xI16x")
"""What we use of an entry's start: two times, device, inode, mode, owner and group, size."""


def _names(data: bytes) -> list[str]:
    """Every path in an index, folded for comparison."""
    return [os.fsdecode(entry.name).casefold() for entry in _read_entries(data)]


def _read_entries(data: bytes, most: int | None = None) -> list[_Entry]:
    """What is in an index; `ValueError` when it cannot be read for certain."""
    for size in _HASH_BYTES:
        try:
            return list(islice(_entries(data, size), most))
        except (ValueError, IndexError):
            continue
    raise ValueError("not an index that we can read")


def _entries(data: bytes, hash_bytes: int) -> Iterator[_Entry]:
    version, count = int.from_bytes(data[4:8]), int.from_bytes(data[8:12])
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("not an index")
    at, name = 12, b""
    for _ in range(count):
        start, fixed = at, at + 40 + hash_bytes
        is_extended = data[fixed] & 0x40
        at = fixed + (4 if is_extended else 2)
        kept = 0
        if version == 4:
            # Names share their beginning with the one before: how much of its end to drop, then the rest.
            drop, at = data[at] & 0x7F, at + 1
            while data[at - 1] & 0x80:
                drop, at = ((drop + 1) << 7) | (data[at] & 0x7F), at + 1
            kept = len(name) - drop
        end = data.index(b"\0", at)
        previous, name = name, name[:kept] + data[at:end]
        # Read with the wrong hash size, names come out of order or of another length: that is how we notice.
        # In a split index, an entry that stands in place of one of the other part has no name.
        said = int.from_bytes(data[fixed : fixed + 2]) & _MOST_SAID
        if kept < 0 or not previous <= name or said != min(len(name), _MOST_SAID):
            raise ValueError("entries out of order")
        yield _Entry(name, *_SEEN.unpack_from(data, start))
        at = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8


_MAX_POINTER_BYTES = 8192
_WORKTREE = re.compile(rb"^\[core\][^\[]*^\s*worktree\s*=\s*(\S[^\n]*?)\s*$", re.MULTILINE)
_NOT_BARE = re.compile(rb"^\[core\][^\[]*^\s*bare\s*=\s*false\s*$", re.MULTILINE)


def find_project_root(start: Path, *, emit: Emit = ignore_event) -> Path:
    """The root that names the project `start` lies in; `start` itself where there is no repository."""
    here = real_path(start)
    with map_os_errors(f"look for the repository of {here}"):
        for folder in (here, *here.parents):
            mark = folder / ".git"
            if mark.is_dir():
                return folder
            if mark.is_file():
                return _main_root(folder, mark, emit)
    return here


_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
MAX_BRANCH_CHARS = 250
"""Of a name: a file system does not hold a longer one."""


def read_branch(checkout: Path) -> str:
    """The branch that is checked out here, or the commit where it is none; empty where there is neither."""
    mark = checkout / ".git"
    git_dir = mark if mark.is_dir() else _pointed_to(mark, b"gitdir:", checkout)
    head = (read_small(git_dir / "HEAD") or b"") if git_dir else b""
    # One line, as git reads it: whoever packed the repository wrote the file, or made it a link to another.
    text = head.decode("utf-8", "replace").strip().partition("\n")[0].strip()
    name = text.removeprefix("ref:").strip().removeprefix("refs/heads/")
    if text.startswith("ref:"):
        return name[:MAX_BRANCH_CHARS]
    return text[:12] if _COMMIT.fullmatch(text) else ""


@dataclass(frozen=True, slots=True)
class GitFolders:
    """Where a checkout's HEAD is, and where the objects, refs and worktrees of its repository are."""

    own: Path
    common: Path


def find_git_folders(root: Path) -> GitFolders | None:
    """The git folders of a checkout or of a bare repository; None where there is none."""
    mark = root / ".git"
    own = mark if mark.is_dir() else _pointed_to(mark, b"gitdir:", root)
    if own is None and (root / "objects").is_dir() and (root / "refs").is_dir():
        own = root
    if own is None or not (own / "HEAD").is_file():
        return None
    own = real_path(own)
    return GitFolders(own, _pointed_to(own / "commondir", b"", own) or own)


def find_own_git_folders(checkout: Path) -> GitFolders | None:
    """The git folders of a checkout, if they belong to it; None where they may be somebody else's.

    A `.git` that is a link, a pointer or holds a `commondir` can lead to any folder of the user. It counts
    only if what it leads to lies in the checkout, or names the checkout in turn.
    """
    root = real_path(checkout)
    found = find_git_folders(root)
    if found is None:
        return None
    if found.own != found.common:
        is_ours = found.own in find_records(found.common, root)
    else:
        is_ours = found.own.is_relative_to(root) or _is_checked_out(found.own, root)
    return found if is_ours else None


def find_records(common: Path, tree: Path) -> tuple[Path, ...]:
    """The records of this worktree in its repository. What the `.git` in it says does not count: whoever
    works in the worktree can write it."""
    records, wanted = common / "worktrees", real_path(tree) / ".git"
    if records.is_symlink() or not records.is_dir():
        return ()
    return tuple(
        record
        for record in sorted(records.iterdir())
        if not record.is_symlink() and _pointed_to(record / "gitdir", b"", record) == wanted
    )


def real_path(path: Path) -> Path:
    """The one name a folder has: links resolved and, where names ignore case, in the case it was made in."""
    check_path(path)
    with map_os_errors(f"find {path}"):
        resolved = Path(os.path.realpath(path))
        if not hasattr(fcntl, "F_GETPATH") or not resolved.exists():
            return resolved
        fd = os.open(resolved, os.O_RDONLY | os.O_CLOEXEC)
        try:
            answer = fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024))
        finally:
            os.close(fd)
        return Path(os.fsdecode(answer.rstrip(b"\0")))


def _main_root(folder: Path, mark: Path, emit: Emit) -> Path:
    """The repository a `.git` file points to, if that repository points back; else the folder itself."""
    git_dir = _pointed_to(mark, b"gitdir:", folder)
    if git_dir is None:
        return folder
    common = _pointed_to(git_dir / "commondir", b"", git_dir)
    if common is None:
        return _sole_root(folder, git_dir, emit)
    back = _pointed_to(git_dir / "gitdir", b"", git_dir)
    if git_dir.parent != common / "worktrees" or back is None or real_path(back) != real_path(mark):
        # Anybody can write a `.git` file. Without the way back it would hand them another project's memory.
        emit(events.WorktreeDisowned(str(folder), str(common)))
        return folder
    return _shared_root(common)


def _sole_root(folder: Path, git_dir: Path, emit: Emit) -> Path:
    """The root of a checkout whose `.git` file names a whole git folder, which lies somewhere else."""
    if not os.path.isfile(git_dir / "HEAD") or _is_submodule(git_dir):
        return folder  # nothing that could be shared, or a project of its own
    if _is_checked_out(git_dir, folder):
        return _shared_root(git_dir)
    emit(events.WorktreeDisowned(str(folder), str(git_dir)))
    return folder


def _shared_root(common: Path) -> Path:
    """The one root of all checkouts of a git folder."""
    if common.name == ".git":
        return common.parent
    if _is_submodule(common):
        folder = _named_checkout(common)
        if folder and _pointed_to(folder / ".git", b"gitdir:", folder) == common:
            return folder
    return common


def _is_checked_out(git_dir: Path, folder: Path) -> bool:
    """Whether a git folder has this checkout for its first one, by its own account."""
    named = _named_checkout(git_dir)
    if named is not None:
        return named == folder
    if git_dir.parent == folder:
        return True  # `.bare` beside its `.git` file: nobody else's
    if git_dir.name == ".git" or not _NOT_BARE.search(read_small(git_dir / "config") or b""):
        return False  # the checkout of the one is the folder around it, and the other has none
    # `--separate-git-dir` leaves no pointer back. What git noted of the files it checked out is all there is,
    # and where it noted nothing yet the folder would be disowned until the first `git add`, and own after.
    return read_presence(git_dir, folder) != "elsewhere"


def _is_submodule(git_dir: Path) -> bool:
    return any(above.name == "modules" and os.path.isfile(above.parent / "HEAD") for above in git_dir.parents)


def _named_checkout(git_dir: Path) -> Path | None:
    """The folder that a git folder's settings say it is checked out in."""
    for config in ("config", "config.worktree"):
        named = _WORKTREE.search(read_small(git_dir / config) or b"")
        if named:
            return _resolved(named[1].strip(b'"'), git_dir)
    return None


def _pointed_to(file: Path, label: bytes, base: Path) -> Path | None:
    """The real path that one of git's pointer files names."""
    content = read_small(file)
    if content is None or not content.startswith(label):
        return None
    return _resolved(content[len(label) :].strip(), base)


def _resolved(target: bytes, base: Path) -> Path | None:
    return real_path(base / os.fsdecode(target)) if target and b"\0" not in target else None


def read_small(file: Path) -> bytes | None:
    """The beginning of a plain file. Nothing else that a stranger's repository may hold is waited for."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(fd, _MAX_POINTER_BYTES) if stat.S_ISREG(os.fstat(fd).st_mode) else None
    except OSError:
        return None
    finally:
        os.close(fd)
