"""A repository's commits, files and branches without its configuration.

Git is given a temporary git folder of ours. Links in it lead to the objects and refs of the repository; the
configuration is written here, and takes over only settings whose values are words of a fixed list. With no
filter, hook or helper defined there is none that git could run.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sevenfold.core.errors import GitError
from sevenfold.store.files.offload import run_blocking
from sevenfold.store.git.safe_git import run_git
from sevenfold.store.project.git import read_small

_LINKED = ("objects", "refs", "packed-refs", "logs", "shallow", "info/exclude")
"""What git reads as data. Never `config`, `hooks` or `info/attributes`."""

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
    content = read_small(head)
    if content is None:
        raise GitError(f"{head} cannot be read; is {common} a git repository?")
    (folder / "HEAD").write_bytes(content)
    (folder / "info").mkdir()
    for name in _LINKED:
        # A link that leads nowhere yet is right for `packed-refs`, which git makes when it needs it.
        os.symlink(common / name, folder / name)
    _write_config(folder, {})


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
