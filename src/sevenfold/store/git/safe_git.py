"""The only module that starts git.

Git runs programs that a repository's configuration names: filters, hooks, converters, monitors, helpers.
Their names are free, so no list of settings turns all of them off. Git is therefore never pointed at a git
folder that a stranger may have written: `plain_repository` gives it one of ours. The functions here give it
none of the caller's `GIT_*` variables, none of the user's settings, no terminal, no network, a time limit.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sevenfold.core.errors import GitError

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
