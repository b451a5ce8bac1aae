"""`sevenfold doctor`: what the installation lacks, and what to do about it.

The checks of the machine are here (the interpreter, libraries, programs, keys and the sandbox) and those of
files that a repository brings. `doctor_store` has those of our own files, and `doctor_agents` those of other
agents.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import cast

from sevenfold.agent.loop.choose_provider import API_KEY_VARIABLES, URL_VARIABLES
from sevenfold.agent.opening.workspace import RepositoryFile, read_repository_files
from sevenfold.agent.sandbox.sandbox import probe_sandbox
from sevenfold.cli.inspect.doctor_agents import check_agents
from sevenfold.cli.inspect.doctor_store import (
    DoctorFinding,
    FindingLevel,
    FindingPart,
    check_home,
    check_memory,
    check_project,
    check_settings,
    check_sockets,
    check_spend,
)
from sevenfold.cli.screen import Screen, TableCell, Tone, format_count, shorten_text
from sevenfold.cli.workspace import require_folder
from sevenfold.core import __version__
from sevenfold.core.errors import GitError
from sevenfold.core.extras import render_install_command
from sevenfold.core.settings.sections import SandboxSettings
from sevenfold.session.opening import Workspace
from sevenfold.store.safe_git import GIT, find_git, read_git_version

# Files that a repository brings: hooks, servers and agents. The user's own hooks are read here as well: a
# hook that cannot be used protects nobody.

MAX_SHOWN_WANTS = 5
"""Of what one file would do: a hostile file has thousands of lines."""
MAX_WANT_CHARS = 120


def check_repository(workspace: Workspace) -> Iterator[DoctorFinding]:
    """What waits for an answer, what was answered, and what cannot be used."""
    found = read_repository_files(workspace)
    for problem in found.problems:
        said = f"{problem.path}: {problem.reason}"
        yield DoctorFinding("repository", "broken" if problem.is_users else "worry", said, "correct the file")
    for file in found.files:
        yield _check_file(file)


def _check_file(file: RepositoryFile) -> DoctorFinding:
    request, wants = file.request, _describe(file.request.wants)
    match file.consent:
        case "agreed":
            return DoctorFinding("repository", "fine", f"{request.path} counts, as you have agreed: {wants}")
        case "refused":
            said = f"{request.path} does not count, since you have refused it: {wants}"
            return DoctorFinding("repository", "fine", said)
        case _:
            said = f"{request.path} does not count, since nobody has agreed to it: {wants}"
            todo = (
                f"look at the file; `sevenfold settings --trust {request.name}` agrees to it, `--refuse "
                f"{request.name}` does not"
            )
            return DoctorFinding("repository", "worry", said, todo)


def _describe(wants: tuple[str, ...]) -> str:
    shown = [shorten_text(" ".join(want.split()), MAX_WANT_CHARS) for want in wants[:MAX_SHOWN_WANTS]]
    more = len(wants) - len(shown)
    return "; ".join([*shown, *([f"and {more} more"] if more else [])])


@dataclass(frozen=True, slots=True)
class _Extra:
    """An optional library: which extra brings it, and what it is for."""

    package: str
    extra: str
    purpose: str


OPTIONAL_EXTRAS = (
    _Extra("anthropic", "anthropic", "Anthropic models, and attach()"),
    _Extra("openai", "openai", "OpenAI-compatible models"),
    _Extra("prompt_toolkit", "chat", "sevenfold chat"),
    _Extra("rich", "chat", "sevenfold chat and sevenfold tour"),
    _Extra("markdownify", "chat", "web pages in sevenfold chat"),
    _Extra("httpx2", "team", "sevenfold team and sevenfold proxy"),
    _Extra("mcp", "mcp", "tools of MCP servers"),
    _Extra("xllamacpp", "local", "models from a GGUF file"),
    _Extra("starlette", "simulator", "sevenfold simulate and sevenfold tour"),
    _Extra("uvicorn", "simulator", "sevenfold simulate, sevenfold tour and sevenfold proxy"),
    _Extra("PyYAML", "simulator", "scripts of sevenfold simulate"),
    _Extra("apsw", "server", "sevenfold serve"),
    _Extra("httptools", "server", "sevenfold serve"),
    _Extra("msgspec", "server", "sevenfold serve"),
    _Extra("prometheus-client", "server", "sevenfold serve"),
    _Extra("psycopg", "postgres", "sevenfold serve on PostgreSQL"),
    _Extra("numpy", "search", "recall by meaning"),
    _Extra("tokenizers", "search", "recall by meaning, and exact token counts"),
    _Extra("onnxruntime", "search", "faster recall by meaning"),
    _Extra("tantivy", "search", "recall in thousands of memories"),
    _Extra("shtab", "completion", "sevenfold completion"),
)
"""Packages by their names on the package index, each with the smallest extra that installs it."""

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
                f"not installed; needed for {extra.purpose}",
                render_install_command(extra.extra),
                part="optional",
            )
        else:
            yield DoctorFinding(extra.package, "fine", found, part="optional")


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
            "ripgrep",
            "note",
            "rg is not on the path: searches are slower without it",
            "install ripgrep",
            part="optional",
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
        return _silent("ripgrep", place, error)
    return _answering("ripgrep", place, asked.stdout or asked.stderr)


def _silent(name: str, place: str, error: Exception) -> DoctorFinding:
    said, todo = f"{place} does not answer: {error}", f"repair or remove {place}"
    return DoctorFinding(name, "worry", said, todo, part=_PROGRAM_PARTS[name])


def _answering(name: str, place: str, said: str) -> DoctorFinding:
    first = said.strip().partition("\n")[0]
    return DoctorFinding(name, "fine", f"{first} ({place})", part=_PROGRAM_PARTS[name])


_PROGRAM_PARTS: Mapping[str, FindingPart] = {GIT: "needed", "ripgrep": "optional"}


def check_api_keys(environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Which there are, and never what they are."""
    keys = [name for name in API_KEY_VARIABLES if environ.get(name)]
    addresses = [name for name in URL_VARIABLES if environ.get(name)]
    if keys or addresses:
        said = f"{', '.join((*keys, *addresses))} set in the environment"
        yield DoctorFinding("keys", "fine", said, part="optional")
    else:
        yield DoctorFinding(
            "keys",
            "note",
            f"none of {', '.join((*API_KEY_VARIABLES, *URL_VARIABLES))} is set",
            "set ANTHROPIC_API_KEY, or the address of an OpenAI-compatible server, to talk to a model; "
            "`sevenfold tour` and `sevenfold replay` need neither",
            part="optional",
        )
    for name in API_KEY_VARIABLES:
        if (value := environ.get(name)) and value != value.strip():
            yield DoctorFinding(
                "keys", "broken", f"{name} begins or ends with white space", f"set {name} without it"
            )


def check_sandbox(settings: SandboxSettings, environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Tries it: a kernel may know the call and forbid it."""
    sandbox = asyncio.run(probe_sandbox(settings, environ))
    ways = ", ".join(f"{profile} by {means}" for profile, means in sandbox.means.items())
    if sandbox.why_not:
        yield DoctorFinding(
            "sandbox",
            "worry",
            f"some commands cannot run in a sandbox: {sandbox.why_not}",
            "see docs/sandbox.md; until then such a command runs only when you allow it",
        )
    else:
        yield DoctorFinding("sandbox", "fine", f"tried just now; commands run in one ({ways})")


_TONES: dict[FindingLevel, Tone] = {"fine": "plain", "note": "faint", "worry": "warning", "broken": "error"}


def run_doctor(options: Namespace, screen: Screen) -> int:
    project = cast("Path", options.project)
    require_folder(project)
    findings = check_setup(project)
    if options.json:
        screen.show_json([asdict(finding) for finding in findings])
    else:
        _show(findings, screen)
    return 1 if any(finding.level == "broken" for finding in findings) else 0


def check_setup(project: Path) -> list[DoctorFinding]:
    """Every check, cheapest first; one that needs settings is left out where they cannot be read."""
    environ = os.environ
    findings = [*check_python(), *check_programs(environ), *check_api_keys(environ)]
    read = check_settings(project)
    findings += read.findings
    if (workspace := read.workspace) is not None:
        findings += [
            *check_home(workspace),
            *check_repository(workspace),
            *check_project(workspace),
            *check_memory(workspace),
            *check_sockets(workspace),
            *check_spend(workspace),
            *check_sandbox(workspace.settings.of(SandboxSettings), environ),
        ]
    findings += check_agents(environ)
    return findings


_PARTS: dict[FindingPart, str] = {
    "needed": "Sevenfold on this machine",
    "optional": "Optional: libraries, programs and keys that some commands use",
    "agents": "Other agents",
}


def _show(findings: Sequence[DoctorFinding], screen: Screen) -> None:
    for part, title in _PARTS.items():
        screen.show_line(title, "strong")
        screen.show_table(
            [
                TableCell(f"  {finding.level}", _TONES[finding.level]),
                TableCell(finding.area, "strong"),
                TableCell(finding.said),
            ]
            for finding in findings
            if finding.part == part
        )
        screen.show_line("")
    advised = [finding for finding in findings if finding.advice]
    to_do = [finding for finding in advised if finding.level != "note"]
    _show_advice("What to do", to_do, screen)
    _show_advice("If you want more", [one for one in advised if one.level == "note"], screen)
    broken = sum(finding.level == "broken" for finding in findings)
    worries = sum(finding.level == "worry" for finding in findings)
    if broken:
        text = f"{format_count(broken, 'thing')} broken" + (f", {worries} to look at" if worries else "")
        screen.show_line(f"{text}.", "error")
    elif worries:
        screen.show_line(f"Nothing is broken; {format_count(worries, 'thing')} to look at.", "warning")
    else:
        screen.show_line("Everything that Sevenfold needs is in order.")


def _show_advice(title: str, findings: Sequence[DoctorFinding], screen: Screen) -> None:
    """What helps against several findings is said once."""
    areas: dict[str, list[str]] = {}
    for finding in findings:
        areas.setdefault(finding.advice, []).append(finding.area)
    if areas:
        screen.show_line(title, "strong")
    for advice, named in areas.items():
        screen.show_line(f"  {', '.join(dict.fromkeys(named))}: {advice}")
    if areas:
        screen.show_line("")
