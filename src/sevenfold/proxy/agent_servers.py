"""Which server an agent's own configuration names, so that a run sends its requests to the same one.

The files are read and never written. They are data of the profile: a file, a key in it, and the API that it
is about. Where two files name a server, the later one in the profile counts, as it does for the agent.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from sevenfold.core.errors import InputError
from sevenfold.proxy.headers import is_local_host
from sevenfold.proxy.profiles import AgentProfile, ConfigKey, ProxiedApi

MAX_AGENT_FILE_BYTES = 4 * 1024 * 1024
_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_REFERENCE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedServer:
    """A server that a file names."""

    path: Path
    api: ProxiedApi
    url: str
    """As the file has it."""
    key: str
    """Under which it stands there."""
    beats_environ: bool
    is_of_project: bool = False
    """It lies in the project or a folder above, and not in the home folder: anybody may have written it."""

    @property
    def upstream(self) -> str:
        """Without a version at its end."""
        return self.url.rstrip("/").removesuffix("/v1")

    @property
    def version(self) -> str:
        return "/v1" if self.url.rstrip("/").endswith("/v1") else ""


def find_named_servers(
    profile: AgentProfile, environ: Mapping[str, str], project: Path
) -> dict[ProxiedApi, NamedServer]:
    """By API. A file that cannot be read names none: the agent says what is wrong with it."""
    found: dict[ProxiedApi, NamedServer] = {}
    for key in profile.config_keys:
        path = _find_path(key, environ, project)
        server = _read_server(key, path) if path is not None else None
        if server is not None and path is not None:
            is_home = key.file.startswith("~/") or path == _find_home(environ) / key.file
            found[key.api] = replace(server, is_of_project=not is_home)
    return found


def refuse_project_servers(servers: Iterable[NamedServer]) -> None:
    """A file that came with a project must not send a key and all that is said to a server of its choice."""
    for server in servers:
        if server.is_of_project and not is_local_host(urlsplit(server.url).netloc):
            raise InputError(
                f"{server.path} names the server {server.url}, and lies in the project: your key and all "
                f"that is said would go there. If you want that, add --upstream {server.url}; --upstream "
                "with another address sends requests there instead"
            )


def refuse_override(
    profile: AgentProfile, servers: Mapping[ProxiedApi, NamedServer], given: Sequence[str]
) -> None:
    """Where the user gives the option that has to lead the agent past its file."""
    option = profile.override[0] if profile.override else ""
    is_given = any(word == option or word.startswith(f"{option}=") for word in given)
    if servers and option.startswith("--") and is_given:
        named = next(iter(servers.values()))
        raise InputError(
            f"{named.path} names the server {named.url}, and a run has to name another by {option}, "
            f"which is among your arguments; leave it out, or start `sevenfold proxy --agent {profile.name}` "
            "and put its address there"
        )


def make_arguments(
    profile: AgentProfile, servers: Mapping[ProxiedApi, NamedServer], url: str
) -> tuple[str, ...]:
    """Arguments that lead the agent to this address of a run, whatever its files say."""
    named = next(iter(servers.values()), None)
    if named is None or not profile.override:
        return profile.make_arguments(url)
    words = (word.replace("{url}", f"{url}{named.version}") for word in profile.override)
    return tuple(word.replace("{key}", named.key) for word in words)


def _find_path(key: ConfigKey, environ: Mapping[str, str], project: Path) -> Path | None:
    """Where a file is; one of the project may stand in a folder above."""
    if not key.file.startswith("~/"):
        folders = [project, *project.parents]
        return next((path for one in folders if (path := one / key.file).is_file()), None)
    home = _find_home(environ)
    moved = environ.get(key.folder_variable) if key.folder_variable else None
    return Path(moved).expanduser() / Path(key.file).name if moved else home / key.file.removeprefix("~/")


def _find_home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or Path.home())


def _read_server(key: ConfigKey, path: Path) -> NamedServer | None:
    try:
        if path.stat().st_size > MAX_AGENT_FILE_BYTES:
            return None
        fields = dict(_flatten(_parse(path), ""))
    except (OSError, ValueError, RecursionError):
        return None
    name = _REFERENCE.sub(lambda found: str(fields.get(found[1], "")), key.key)
    url = fields.get(name)
    if not isinstance(url, str) or not re.match(r"https?://[^${]+$", url):
        return None
    return NamedServer(path=path, api=key.api, url=url, key=name, beats_environ=key.beats_environ)


def _parse(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".json", ".jsonc"):
        try:
            return json.loads(text)
        except ValueError:
            return json.loads(_COMMENT.sub(lambda found: found[1] or "", text))
    if path.suffix == ".toml":
        return tomllib.loads(text)
    # Of YAML and of files with variables, what stands on a line of its own.
    lines = re.finditer(r"^(?:export +)?([\w-]+) *[:=] *(\"[^\"\n]*\"|'[^'\n]*'|[^#\s]+)", text, re.MULTILINE)
    return {found[1]: found[2].strip("\"'") for found in lines}


def _flatten(value: Any, start: str) -> Iterator[tuple[str, object]]:
    """The values in it, by the names that lead there."""
    if isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            yield from _flatten(inner, f"{start}.{name}" if start else name)
    else:
        yield start, value
