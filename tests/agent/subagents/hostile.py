"""A stranger's repository that names a program wherever git can be told to run one.

Each program leaves a file named after its driver in `marks`, so that a test can tell which of them ran.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.store.repos import git, make_repo

HOOKS = (
    *(
        "post-checkout",
        "reference-transaction",
        "post-index-change",
        "pre-commit",
        "commit-msg",
        "post-commit",
    ),
    *("prepare-commit-msg", "pre-auto-gc", "fsmonitor-watchman", "post-merge", "sendemail-validate"),
)
PROGRAMS = (
    *("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "core.gitProxy"),
    *("core.alternateRefsCommand", "credential.helper", "gpg.program", "gpg.ssh.program", "sequence.editor"),
    *("diff.external", "diff.any.textconv", "diff.any.command", "merge.any.driver", "interactive.diffFilter"),
    *("pager.status", "uploadpack.packObjectsHook", "remote.origin.uploadpack", "gc.recentObjectsHook"),
    *("filter.any.smudge", "filter.any.clean", "filter.stream.process", "filter.a=b.c.smudge"),
)
"""Settings whose value is a program."""
ALIASES = ("status", "worktree", "branch", "rev-parse", "read-tree", "update-ref", "for-each-ref", "ls-files")
CONFIG_HOOKS = ("reference-transaction", "post-checkout", "post-index-change")
"""Hooks that newer versions of git take from settings, where `core.hooksPath` does not stop them."""
ATTRIBUTES = (
    "* filter=any diff=any merge=any\n*.bin filter=stream\n*.odd filter=a=b.c\n*.inc filter=included\n"
    "*.lfs filter=user\n*.branch filter=branch\n*.folder filter=folder\n*.tree filter=tree\n"
)
FILES = ("a.txt", "b.bin", "c.odd", "d.inc", "e.lfs", "f.branch", "g.folder", "h.tree")


@dataclass(frozen=True, slots=True)
class Hostile:
    root: Path
    marks: Path
    home: Path
    """Of a user whose own settings name a filter as well, as Git LFS does."""

    @property
    def ran(self) -> list[str]:
        return sorted(path.name for path in self.marks.iterdir())

    def program(self, name: str) -> str:
        """A program that tells that it ran, then passes its input on."""
        path = self.marks.parent / "programs" / name.replace("/", "-")
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch '{self.marks}/{path.name}'\ncat\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    @property
    def environ(self) -> Mapping[str, str]:
        """What a hook of git, or a shell that somebody prepared, hands down."""
        names = ("GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_PAGER", "GIT_EDITOR", "GIT_ASKPASS", "GIT_SSH")
        return {
            **{name: self.program(name) for name in names},
            "GIT_CONFIG_GLOBAL": str(self.home / ".gitconfig"),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "filter.any.smudge",
            "GIT_CONFIG_VALUE_0": self.program("environment.smudge"),
            "GIT_TRACE": str(self.marks / "GIT_TRACE"),
            "GIT_TEMPLATE_DIR": str(self.marks.parent / "template"),
            "GIT_DIR": str(self.root / ".git"),
            "GIT_WORK_TREE": str(self.root),
            "HOME": str(self.home),
        }

    def arm(self, config: Path, *, prefix: str = "") -> None:
        """Name a program for every setting that takes one."""
        for name in PROGRAMS:
            section, _, key = name.rpartition(".")
            head, _, sub = section.partition(".")
            title = f'[{head} "{sub}"]' if sub else f"[{head}]"
            _append(config, f"{title}\n\t{key} = {self.program(prefix + name)}\n")
        for name in ALIASES:
            _append(config, f"[alias]\n\t{name} = !{self.program(f'{prefix}alias.{name}')}\n")
        for name in CONFIG_HOOKS:
            command = self.program(f"{prefix}hook.{name}")
            _append(config, f'[hook "{name}"]\n\tevent = {name}\n\tcommand = {command}\n')
        _append(config, "[commit]\n\tgpgSign = true\n[submodule]\n\trecurse = true\n")


def make_hostile(place: Path) -> Hostile:
    """A repository with every driver set, and files and attributes that call for them."""
    root, marks, home = make_repo(place / "repo"), place / "marks", place / "user"
    marks.mkdir()
    home.mkdir()
    found = Hostile(root, marks, home)
    for name in FILES:
        (root / name).write_text(f"{name}\n")
    (root / ".gitattributes").write_text("*.lfs filter=user diff=any merge=any\n")
    git(root, "add", ".")
    tip = git(root, "rev-parse", "HEAD").strip()
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{tip},sub")
    git(root, "commit", "--quiet", "-m", "second")
    _plant(found)
    return found


def _plant(found: Hostile) -> None:
    git_dir = found.root / ".git"
    (git_dir / "info").mkdir(exist_ok=True)
    (git_dir / "info" / "attributes").write_text(ATTRIBUTES)
    for folder in (git_dir / "hooks", git_dir / "more-hooks", found.marks.parent / "template" / "hooks"):
        folder.mkdir(parents=True, exist_ok=True)
        for name in HOOKS:
            (folder / name).write_text(f"#!/bin/sh\ntouch '{found.marks}/{folder.name}-{name}'\n")
            (folder / name).chmod(0o755)
    config = git_dir / "config"
    _append(found.home / ".gitconfig", _filter("user", found.program("user.smudge")))
    _append(git_dir / "included", _filter("included", found.program("included.smudge")))
    # Only on the branch that an agent's worktree is on, and only in its own git folder.
    _append(git_dir / "on-branch", _filter("branch", found.program("on-branch.smudge")))
    _append(git_dir / "in-folder", _filter("folder", found.program("in-folder.smudge")))
    _append(config, "[include]\n\tpath = included\n")
    _append(config, '[includeIf "onbranch:sevenfold/**"]\n\tpath = on-branch\n')
    _append(config, '[includeIf "gitdir:**/worktrees/**"]\n\tpath = in-folder\n')
    _append(
        config, f"[core]\n\thooksPath = {git_dir / 'more-hooks'}\n[extensions]\n\tworktreeConfig = true\n"
    )
    _append(config, "[core]\n\trepositoryformatversion = 1\n")
    _append(git_dir / "config.worktree", _filter("tree", found.program("config.worktree.smudge")))
    found.arm(config)


def _filter(name: str, program: str) -> str:
    return f'[filter "{name}"]\n\tsmudge = {program}\n\tclean = {program}\n'


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
