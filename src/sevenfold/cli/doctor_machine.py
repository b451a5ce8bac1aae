"""What the machine offers: the interpreter, libraries, programs, keys, the sandbox."""

from __future__ import annotations

import asyncio
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version

from sevenfold.cli.doctor_finding import Finding
from sevenfold.core.errors import GitError
from sevenfold.core.version import __version__
from sevenfold.run.sandbox import SandboxSettings
from sevenfold.run.sandbox_trial import find_sandbox
from sevenfold.store.safe_git import GIT, find_git, read_git_version


@dataclass(frozen=True, slots=True)
class _Extra:
    """An optional library: which extra brings it, and what it is for."""

    package: str
    extra: str
    purpose: str


EXTRAS = (
    _Extra("anthropic", "anthropic", "Anthropic's models, and attach()"),
    _Extra("openai", "openai", "OpenAI-compatible models"),
    _Extra("prompt_toolkit", "chat", "sevenfold chat"),
    _Extra("mcp", "mcp", "tools of MCP servers"),
    _Extra("xllamacpp", "local", "models from a GGUF file"),
    _Extra("starlette", "simulator", "sevenfold simulate and sevenfold tour"),
)

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY")
ADDRESSES = ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "SEVENFOLD_AGENT_BASE_URL")

ASK_SECONDS = 5
"""For a program to say its version: one that takes longer hangs."""


def check_python() -> Iterator[Finding]:
    yield Finding("sevenfold", "fine", f"{__version__} on Python {platform.python_version()}, {sys.platform}")
    for extra in EXTRAS:
        try:
            found = version(extra.package)
        except PackageNotFoundError:
            yield Finding(
                extra.package,
                "note",
                f"not installed: needed for {extra.purpose}",
                f"pip install 'sevenfold[{extra.extra}]' if you want it",
            )
        else:
            yield Finding(extra.package, "fine", found)


def check_programs(environ: Mapping[str, str]) -> Iterator[Finding]:
    yield _check_git(environ)
    yield _check_ripgrep(environ)


def _check_git(environ: Mapping[str, str]) -> Finding:
    place = find_git(environ)
    if place is None:
        return Finding(
            GIT, "worry", "not on the path: worktrees share one memory only with it", f"install {GIT}"
        )
    try:
        said = read_git_version(environ, timedelta(seconds=ASK_SECONDS))
    except GitError as error:
        return _silent(GIT, place, error)
    return _answering(GIT, place, said)


def _check_ripgrep(environ: Mapping[str, str]) -> Finding:
    place = shutil.which("rg", path=environ.get("PATH"))
    if place is None:
        return Finding(
            "rg", "note", "not on the path: searches run in process without it, and slower", "install rg"
        )
    try:
        asked = subprocess.run(
            [place, "--version"],
            capture_output=True,
            text=True,
            timeout=ASK_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return _silent("rg", place, error)
    return _answering("rg", place, asked.stdout or asked.stderr)


def _silent(name: str, place: str, error: Exception) -> Finding:
    return Finding(name, "worry", f"{place} does not answer: {error}", f"mend or remove {place}")


def _answering(name: str, place: str, said: str) -> Finding:
    first = said.strip().partition("\n")[0]
    return Finding(name, "fine", f"{first} ({place})")


def check_keys(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Which there are, and never what they are."""
    keys = [name for name in KEYS if environ.get(name)]
    addresses = [name for name in ADDRESSES if environ.get(name)]
    if keys or addresses:
        yield Finding("keys", "fine", f"{', '.join((*keys, *addresses))} set in the environment")
    else:
        yield Finding(
            "keys",
            "note",
            f"none of {', '.join((*KEYS, *ADDRESSES))} is set",
            "set ANTHROPIC_API_KEY, or the address of an OpenAI-compatible server, to talk to a model; "
            "`sevenfold tour` and `sevenfold replay` need neither",
        )
    for name in KEYS:
        if (value := environ.get(name)) and value != value.strip():
            yield Finding(
                "keys", "broken", f"{name} begins or ends with white space", f"set {name} without it"
            )


def check_sandbox(settings: SandboxSettings, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Tries it: a kernel may know the call and forbid it."""
    sandbox = asyncio.run(find_sandbox(settings, environ))
    held = ", ".join(f"{profile} by {means}" for profile, means in sandbox.means.items())
    if sandbox.why_not:
        yield Finding(
            "sandbox",
            "worry",
            f"some commands cannot be held: {sandbox.why_not}",
            "see docs/sandbox.md; until then such a command runs only when you allow it",
        )
    else:
        yield Finding("sandbox", "fine", f"tried just now: holds {held} commands")
