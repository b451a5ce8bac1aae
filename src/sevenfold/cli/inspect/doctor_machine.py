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

from sevenfold.agent.sandbox.probe import probe_sandbox
from sevenfold.cli.inspect.doctor_finding import DoctorFinding
from sevenfold.core.errors import GitError
from sevenfold.core.settings.sandbox import SandboxSettings
from sevenfold.core.version import __version__
from sevenfold.store.git.safe_git import GIT, find_git, read_git_version


@dataclass(frozen=True, slots=True)
class _Extra:
    """An optional library: which extra brings it, and what it is for."""

    package: str
    extra: str
    purpose: str


OPTIONAL_EXTRAS = (
    _Extra("anthropic", "anthropic", "Anthropic's models, and attach()"),
    _Extra("openai", "openai", "OpenAI-compatible models"),
    _Extra("prompt_toolkit", "chat", "sevenfold chat"),
    _Extra("mcp", "mcp", "tools of MCP servers"),
    _Extra("xllamacpp", "local", "models from a GGUF file"),
    _Extra("starlette", "simulator", "sevenfold simulate and sevenfold tour"),
)

API_KEY_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY")
BASE_URL_VARIABLES = ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "SEVENFOLD_AGENT_BASE_URL")

VERSION_TIMEOUT_SECONDS = 5
"""For a program to say its version: one that takes longer hangs."""


def check_python() -> Iterator[DoctorFinding]:
    yield DoctorFinding(
        "sevenfold", "fine", f"{__version__} on Python {platform.python_version()}, {sys.platform}"
    )
    for extra in OPTIONAL_EXTRAS:
        try:
            found = version(extra.package)
        except PackageNotFoundError:
            yield DoctorFinding(
                extra.package,
                "note",
                f"not installed: needed for {extra.purpose}",
                f"pip install 'sevenfold[{extra.extra}]' if you want it",
            )
        else:
            yield DoctorFinding(extra.package, "fine", found)


def check_programs(environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    yield _check_git(environ)
    yield _check_ripgrep(environ)


def _check_git(environ: Mapping[str, str]) -> DoctorFinding:
    place = find_git(environ)
    if place is None:
        return DoctorFinding(
            GIT, "worry", "not on the path: worktrees share one memory only with it", f"install {GIT}"
        )
    try:
        said = read_git_version(environ, timedelta(seconds=VERSION_TIMEOUT_SECONDS))
    except GitError as error:
        return _silent(GIT, place, error)
    return _answering(GIT, place, said)


def _check_ripgrep(environ: Mapping[str, str]) -> DoctorFinding:
    place = shutil.which("rg", path=environ.get("PATH"))
    if place is None:
        return DoctorFinding(
            "rg", "note", "not on the path: searches run in process without it, and slower", "install rg"
        )
    try:
        asked = subprocess.run(
            [place, "--version"],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return _silent("rg", place, error)
    return _answering("rg", place, asked.stdout or asked.stderr)


def _silent(name: str, place: str, error: Exception) -> DoctorFinding:
    return DoctorFinding(name, "worry", f"{place} does not answer: {error}", f"mend or remove {place}")


def _answering(name: str, place: str, said: str) -> DoctorFinding:
    first = said.strip().partition("\n")[0]
    return DoctorFinding(name, "fine", f"{first} ({place})")


def check_api_keys(environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Which there are, and never what they are."""
    keys = [name for name in API_KEY_VARIABLES if environ.get(name)]
    addresses = [name for name in BASE_URL_VARIABLES if environ.get(name)]
    if keys or addresses:
        yield DoctorFinding("keys", "fine", f"{', '.join((*keys, *addresses))} set in the environment")
    else:
        yield DoctorFinding(
            "keys",
            "note",
            f"none of {', '.join((*API_KEY_VARIABLES, *BASE_URL_VARIABLES))} is set",
            "set ANTHROPIC_API_KEY, or the address of an OpenAI-compatible server, to talk to a model; "
            "`sevenfold tour` and `sevenfold replay` need neither",
        )
    for name in API_KEY_VARIABLES:
        if (value := environ.get(name)) and value != value.strip():
            yield DoctorFinding(
                "keys", "broken", f"{name} begins or ends with white space", f"set {name} without it"
            )


def check_sandbox(settings: SandboxSettings, environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Tries it: a kernel may know the call and forbid it."""
    sandbox = asyncio.run(probe_sandbox(settings, environ))
    held = ", ".join(f"{profile} by {means}" for profile, means in sandbox.means.items())
    if sandbox.why_not:
        yield DoctorFinding(
            "sandbox",
            "worry",
            f"some commands cannot be held: {sandbox.why_not}",
            "see docs/sandbox.md; until then such a command runs only when you allow it",
        )
    else:
        yield DoctorFinding("sandbox", "fine", f"tried just now: holds {held} commands")
