"""The checks of `sevenfold doctor` on other agents: which are here, and what Sevenfold has in their files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from json import loads
from pathlib import Path

from sevenfold.cli.inspect.doctor_store import DoctorFinding
from sevenfold.cli.install import find_install_paths, read_config
from sevenfold.cli.resident import check_resident
from sevenfold.cli.screen import format_count
from sevenfold.core.errors import SevenfoldError
from sevenfold.proxy.agent_files import remove_left_copies
from sevenfold.proxy.profiles import PROFILES
from sevenfold.resident.agent_configs import (
    INSTALLABLE_AGENTS,
    AgentName,
    ConfigChange,
    InstallPaths,
    plan_install,
)
from sevenfold.resident.commented_json import blank_comments

AGENT_PROGRAMS: Mapping[AgentName, str] = {
    "claude-code": "claude",
    "codex": "codex",
    "opencode": "opencode",
    "goose": "goose",
    "continue": "cn",
    "cursor": "cursor",
}
"""The command that starts each."""


def check_agents(environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Agents that are not on this machine are left out, unless an install has left something for them."""
    paths = find_install_paths()
    found = [
        *(finding for name in INSTALLABLE_AGENTS for finding in _check_agent(name, paths, environ)),
        *_check_startable(environ),
    ]
    if not found:
        known = ", ".join(dict.fromkeys((*INSTALLABLE_AGENTS, *(one.name for one in PROFILES[1:]))))
        found.append(DoctorFinding("agents", "fine", f"none found of {known}", part="agents"))
    yield from found
    yield replace(check_resident(), part="agents")
    if removed := remove_left_copies():
        said = f"removed {format_count(removed, 'copy')} of an agent's file that a killed `run` had left"
        yield DoctorFinding("agents", "fine", said, part="agents")


def _check_agent(name: AgentName, paths: InstallPaths, environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    place = shutil.which(AGENT_PROGRAMS[name], path=environ.get("PATH"))
    where = place or f"{AGENT_PROGRAMS[name]} is not on the PATH"
    again = f"`sevenfold install {name}`"
    changes = plan_install(name, paths)
    try:
        states = [_find_state(change) for change in changes]
    except SevenfoldError as error:
        if place:
            yield DoctorFinding(
                name, "worry", f"{where}: {error}", f"correct the file, then {again}", part="agents"
            )
        return
    if all(state == "missing" for state in states):
        if place:
            said = f"{where}: Sevenfold is not installed in it"
            todo = f"{again} adds memory{_name_hooks(name)}; `--dry-run` shows the changes first"
            yield DoctorFinding(name, "note", said, todo, part="agents")
    elif not place:
        said = f"{where}, and Sevenfold is installed in its files"
        yield DoctorFinding(name, "note", said, f"{again[:-1]} --uninstall` takes it out", part="agents")
    elif any(state != "complete" for state in states):
        wrong = ", ".join(
            str(c.path) for c, state in zip(changes, states, strict=True) if state != "complete"
        )
        said = f"{where}: an install of another version or place, or edited since: {wrong}"
        yield DoctorFinding(name, "worry", said, again, part="agents")
    else:
        parts = "hooks and the MCP server" if _name_hooks(name) else "the MCP server"
        yield DoctorFinding(name, "fine", f"{where}: Sevenfold is installed: {parts}", part="agents")


def _name_hooks(name: AgentName) -> str:
    return ", rules and learning" if name in ("claude-code", "codex") else ""


def _find_state(change: ConfigChange) -> str:
    """`missing`, `complete`, or `other` where what is there is not what an install would write now."""
    _, _, text = read_config(change)
    if text is None:
        return "missing"
    wanted = change.add(text, True)  # refuses a file that cannot be read
    if _parse(change.path, text) == _parse(change.path, wanted):
        return "complete"
    return "missing" if change.remove(text, True) == text else "other"


def _parse(path: Path, text: str) -> object:
    """Other programs write the same JSON with other spaces."""
    if path.suffix in (".json", ".jsonc") and text.strip():
        return loads(blank_comments(text))
    return text


def _check_startable(environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Agents that `sevenfold run` starts and nothing is installed into."""
    installable = {AGENT_PROGRAMS[name] for name in INSTALLABLE_AGENTS}
    for profile in PROFILES:
        if profile.program in installable or not profile.can_start:
            continue
        if place := shutil.which(profile.program, path=environ.get("PATH")):
            said = f"{place}: `sevenfold run {profile.name}` starts it, and ends with its bill"
            yield DoctorFinding(profile.name, "fine", said, part="agents")
