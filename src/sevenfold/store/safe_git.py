"""The only module that starts git.

Git runs programs that a repository's configuration names: filters, hooks, converters, monitors, helpers.
Their names are free, so no list of settings turns all of them off. Git is therefore never pointed at a git
folder that a stranger may have written: `plain_repository` gives it a temporary one of ours. `run_git` gives
it none of the caller's `GIT_*` variables, none of the user's settings, no terminal, no network, a time limit.
`add_record` writes git's record of a linked worktree without running git.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sevenfold.core.errors import GitError
from sevenfold.core.system import run_blocking
from sevenfold.store.project.git import read_small

GIT = "git"
TIMEOUT = timedelta(seconds=120)
"""For git to check out a large repository."""

_OVERRIDES = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.editor": "false",
    "core.askPass": "",
    "core.sshCommand": "false",
    "credential.helper": "",
    "commit.gpgSign": "false",
    "gpg.program": "false",
    "protocol.allow": "never",
    "submodule.recurse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "checkout.workers": "1",
}
"""A second line of defence: none of these is set in a git folder of ours."""

_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR")
_VARIABLES = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    # Empty: no transport may be used, so an object that is missing is not fetched.
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_ASKPASS": "",
}


@dataclass(frozen=True, slots=True)
class _Call:
    argv: tuple[str, ...]
    environ: Mapping[str, str]
    cwd: Path
    label: str
    """For error messages."""


async def run_git(folder: Path, *words: str, variables: Mapping[str, str]) -> str:
    """What git prints, run in `folder`; `GitError` with what it said if it fails.

    `variables` name the git folder, whose configuration must be ours.
    """
    call = _build(folder, words, variables, os.environ)
    try:
        running = await asyncio.create_subprocess_exec(
            *call.argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=call.environ,
            cwd=call.cwd,
            start_new_session=True,
        )
    except OSError as error:
        raise GitError(f"git cannot be run: {error}") from error
    try:
        async with asyncio.timeout(TIMEOUT.total_seconds()):
            output, errors = await running.communicate()
    except TimeoutError as error:
        raise GitError(f"{call.label} took over {TIMEOUT.total_seconds():g} s") from error
    finally:
        if running.returncode is None:
            with suppress(ProcessLookupError):
                running.kill()
            await running.wait()
    return _read(call, running.returncode or 0, output, errors)


def init_repository(folder: Path) -> None:
    """Make an empty repository in `folder`, with nothing from a template. Blocks."""
    _run_blocking(_build(folder, ("init", "--quiet", "--template="), {}, os.environ), TIMEOUT)


def run_git_blocking(folder: Path, *words: str) -> str:
    """Run git on a repository that `init_repository` has just made. Blocks."""
    variables = {"GIT_DIR": str(folder / ".git"), "GIT_WORK_TREE": str(folder)}
    return _run_blocking(_build(folder, words, variables, os.environ), TIMEOUT)


def read_git_version(environ: Mapping[str, str], timeout: timedelta) -> str:
    """What `git --version` prints, with the git that `find_git` finds."""
    return _run_blocking(_build(Path("/"), ("--version",), {}, environ), timeout).strip()


def find_git(environ: Mapping[str, str]) -> str | None:
    """The path of git. A relative entry of the search path does not count: it may lead into a repository."""
    entries = environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which(GIT, path=os.pathsep.join(entry for entry in entries if os.path.isabs(entry)))


def _build(
    folder: Path, words: tuple[str, ...], variables: Mapping[str, str], environ: Mapping[str, str]
) -> _Call:
    program = find_git(environ)
    if program is None:
        raise GitError("git is not on the search path; install it")
    options = [word for name, value in _OVERRIDES.items() for word in ("-c", f"{name}={value}")]
    kept = {name: environ[name] for name in _KEPT if name in environ}
    # Versions of git that know no GIT_CONFIG_GLOBAL look for the user's settings in these two folders.
    nowhere = {"HOME": os.devnull, "XDG_CONFIG_HOME": os.devnull}
    argv = (program, "--no-pager", *options, *_ignore_file(environ), *words)
    return _Call(argv, kept | nowhere | _VARIABLES | dict(variables), folder, f"git {words[0]}")


def _ignore_file(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The user's own ignore patterns, which git would look for in the home it is not given."""
    home = environ.get("XDG_CONFIG_HOME") or (f"{environ['HOME']}/.config" if environ.get("HOME") else "")
    return ("-c", f"core.excludesFile={home}/git/ignore") if os.path.isabs(home) else ()


def _run_blocking(call: _Call, timeout: timedelta) -> str:
    try:
        done = subprocess.run(
            call.argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout.total_seconds(),
            check=False,
            env=call.environ,
            cwd=call.cwd,
            start_new_session=True,
        )
    except OSError as error:
        raise GitError(f"git cannot be run: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(f"{call.label} took over {timeout.total_seconds():g} s") from error
    return _read(call, done.returncode, done.stdout, done.stderr)


def _read(call: _Call, code: int, output: bytes, errors: bytes) -> str:
    if code:
        raise GitError(f"{call.label} failed: {errors.decode('utf-8', 'replace').strip() or code}")
    return output.decode("utf-8", "surrogateescape")


# Links lead to the objects and refs of the repository. The configuration is written here, and takes over only
# settings whose values are words of a fixed list, so it names no program that git could run.

_LINKED = ("objects", "refs", "packed-refs", "shallow")
"""What git reads as data. Never `config`, `hooks` or `info/attributes`, and not `logs`: git deletes the
log of a branch that it deletes, through any link on the way. All of it must lie in the repository itself.
Links would have git read, write or delete files of another repository, or tell of any others in its errors;
git would wait for a FIFO."""

_EXCLUDE = "info/exclude"
"""Many lead it elsewhere for good reasons. Without it more files count as changed."""
_ALTERNATES = "info/alternates"
"""Of `objects`: where else objects are, such as in a repository that no agent may read."""

_BOOLEAN = frozenset({"true", "false", "yes", "no", "on", "off", "1", "0"})
_COPIED = {
    "core.autocrlf": _BOOLEAN | {"input"},
    "core.eol": frozenset({"lf", "crlf", "native"}),
    "core.filemode": _BOOLEAN,
    "core.ignorecase": _BOOLEAN,
    "core.precomposeunicode": _BOOLEAN,
    "core.symlinks": _BOOLEAN,
    "extensions.objectformat": frozenset({"sha1", "sha256"}),
}
"""Settings that a checkout depends on, with every value they may have."""


@dataclass(frozen=True, slots=True)
class PlainRepository:
    folder: Path
    is_partial: bool
    """Files may be missing, which git would fetch when it needs them."""

    async def git(self, *words: str) -> str:
        """Run git on commits and refs alone."""
        return await run_git(self.folder, *words, variables={"GIT_DIR": str(self.folder)})

    async def git_in(self, tree: Path, index: Path, *words: str) -> str:
        """Run git on the checkout in `tree` with this index, whatever the `.git` in it says."""
        variables = {"GIT_DIR": str(self.folder), "GIT_WORK_TREE": str(tree), "GIT_INDEX_FILE": str(index)}
        return await run_git(tree, *words, variables=variables)


@asynccontextmanager
async def plain_repository(common: Path, head: Path) -> AsyncGenerator[PlainRepository]:
    """The repository in the git folder `common`, with the content of the file `head` as its HEAD."""
    folder = Path(tempfile.mkdtemp(prefix="sevenfold-git-"))
    try:
        await run_blocking(lambda: _fill(folder, common, head))
        settings = await _read_settings(folder, common)
        if settings.get("extensions.refstorage", "files") != "files":
            raise GitError(f"{common} keeps its refs in a format other than files, which is not supported")
        await run_blocking(lambda: _write_config(folder, settings))
        yield PlainRepository(folder, "extensions.partialclone" in settings)
    finally:
        await run_blocking(lambda: shutil.rmtree(folder, ignore_errors=True))


def _fill(folder: Path, common: Path, head: Path) -> None:
    for part in _list_foreign(common, head):
        raise GitError(
            f"{part} is a link, or neither a plain file nor a folder; no worktree is made of a repository "
            "with parts elsewhere"
        )
    alternates = common / "objects" / _ALTERNATES
    if (read_small(alternates) or b"").strip():
        raise GitError(
            f"{alternates} names objects that lie elsewhere; run `git repack -a -d` and delete that file, "
            "or start the agent without worktree"
        )
    content = read_small(head)
    if content is None:
        raise GitError(f"{head} cannot be read; is {common} a git repository?")
    (folder / "HEAD").write_bytes(content)
    (folder / "info").mkdir()
    for name in _LINKED:
        # A link that leads nowhere yet is right for `packed-refs`, which git makes when it needs it.
        os.symlink(common / name, folder / name)
    if _is_plain(common / "info") and _is_plain(common / _EXCLUDE):
        os.symlink(common / _EXCLUDE, folder / _EXCLUDE)
    _write_config(folder, {})


def _list_foreign(common: Path, head: Path) -> Iterator[Path]:
    checked = (head, *(common / name for name in _LINKED))
    yield from (path for path in checked if not _is_plain(path))
    folders = [common / "objects", common / "refs"]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as found:  # not there: git says what it lacks
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry))
                elif not entry.is_file(follow_symlinks=False):
                    yield Path(entry)


def _is_plain(path: Path) -> bool:
    """Whether it is a file or a folder itself, or not there."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return True
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def _write_config(folder: Path, settings: dict[str, str]) -> None:
    lines = ["[core]", "repositoryformatversion = 1", "bare = false", "logAllRefUpdates = false"]
    for name, allowed in _COPIED.items():
        value = settings.get(name, "").lower()
        section, _, key = name.partition(".")
        lines += [f"[{section}]", f"{key} = {value}"] if value in allowed else []
    (folder / "config").write_text("\n".join([*lines, ""]), encoding="utf-8")


async def _read_settings(folder: Path, common: Path) -> dict[str, str]:
    """Settings in the repository's own file. Git parses it as data, and follows no include."""
    config = common / "config"
    if not config.is_file():  # also where a FIFO lies in its place, which nobody waits for
        return {}
    wanted = "|".join(re.escape(name) for name in _COPIED)
    asked = ("config", "--file", str(config), "--no-includes", "--null", "--get-regexp")
    try:
        listed = await run_git(
            folder, *asked, f"^({wanted}|extensions\\..*)$", variables={"GIT_DIR": str(folder)}
        )
    except GitError:  # none of them is set, or git cannot parse the file
        return {}
    found: dict[str, str] = {}
    for item in listed.split("\0"):
        name, is_given, value = item.partition("\n")
        found[name] = value if is_given else "true"
    return found


# `git worktree` reads the repository's configuration and runs hooks that it names, so it is not used. The
# record of a worktree is written as `git worktree add` writes it.

_LOCKED = "locked"
_INITIALIZING = "initializing"
"""Git's own word for a worktree that is being made. Nobody has worked in it yet, so it may be discarded."""
_MOST_SAME_NAMES = 100


def add_record(common: Path, tree: Path, branch: str) -> Path:
    """Make `tree` a worktree of the git folder `common`, on `branch`, with nothing checked out yet.

    Returns its record, which counts as unfinished until `mark_finished`.
    """
    records = common / "worktrees"
    if records.is_symlink():
        raise GitError(f"{records} is a link; worktrees are recorded in the repository itself only")
    records.mkdir(exist_ok=True)
    record = _make_first(records, tree.name)
    _write(record / _LOCKED, _INITIALIZING)
    _write(tree / ".git", f"gitdir: {os.path.realpath(record)}\n")
    _write(record / "gitdir", f"{os.path.realpath(tree)}/.git\n")
    _write(record / "HEAD", f"ref: refs/heads/{branch}\n")
    _write(record / "commondir", "../..\n")
    return record


def mark_finished(record: Path) -> None:
    (record / _LOCKED).unlink()


def mark_unfinished(record: Path) -> None:
    """From now on it is discarded by whoever finds it."""
    (record / _LOCKED).write_text(_INITIALIZING, encoding="utf-8")


def is_unfinished(record: Path) -> bool:
    return (read_small(record / _LOCKED) or b"").strip() == _INITIALIZING.encode()


def is_locked(record: Path) -> bool:
    """Whether somebody said `git worktree lock`."""
    return (record / _LOCKED).exists() and not is_unfinished(record)


def remove_record(record: Path) -> None:
    shutil.rmtree(record)
    with suppress(OSError):  # other worktrees are recorded there
        record.parent.rmdir()


def _make_first(records: Path, name: str) -> Path:
    """A folder under this name, or under the first with a number that is free, as git does."""
    for number in range(_MOST_SAME_NAMES):
        record = records / f"{name}{number or ''}"
        with suppress(FileExistsError):
            record.mkdir()
            return record
    raise GitError(f"{records} holds {_MOST_SAME_NAMES} worktrees named {name}; run `git worktree prune`")


def _write(path: Path, text: str) -> None:
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
