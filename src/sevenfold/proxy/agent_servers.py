"""Which server an agent's own configuration names, so that a run sends its requests to the same one.

The files are read and never written. They are data of the profile: a file, a key in it, and the API that it
is about. Where two files name a server, the later one in the profile counts, as it does for the agent.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from sevenfold.core.errors import InputError
from sevenfold.proxy.headers import is_local_host
from sevenfold.proxy.profiles import AgentProfile, ConfigKey, ProxiedApi

MAX_AGENT_FILE_BYTES = 4 * 1024 * 1024
_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
"""One that nothing closes ends with the file: looking for its end again at each `/*` takes hours."""
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\\n])*")|,(?=\s*[}\]])')
_REFERENCE = re.compile(r"\{(\w+)\}")
_URL = re.compile(r"https?://[^\s${\\]+", re.IGNORECASE)
_LINE = re.compile(r"^(?:export +)?([\w-]+) *[:=] *(\"[^\"\n]*\"|'[^'\n]*'|[^#\s]+)", re.MULTILINE)
_ESCAPE = re.compile(r"\\u([\da-fA-F]{4})")
_UNREADABLE: object = object()
_PARSED_SUFFIXES = (".json", ".jsonc", ".toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedServer:
    """A server that a file names."""

    path: Path
    api: ProxiedApi
    url: str
    """As the file has it; empty: it has one, or may have one, that cannot be read here."""
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
    """By API. A file that cannot be read names none, as the agent says what is wrong with it; one of the
    project may be read by the agent nevertheless, and names one without an address."""
    found: dict[ProxiedApi, NamedServer] = {}
    for key in profile.config_keys:
        path = _find_path(key, environ, project)
        if path is None:
            continue
        is_of_project = not key.file.startswith("~/") and path != _find_home(environ) / key.file
        server = _read_server(key, path, is_of_project=is_of_project)
        if server is not None and (server.url or is_of_project):
            found[key.api] = server
    return found


def refuse_project_servers(servers: Iterable[NamedServer]) -> None:
    """A file that came with a project must not send a key and all that is said to a server of its choice."""
    for server in servers:
        if server.is_of_project and not server.url:
            raise InputError(
                f"{server.path} lies in the project and sets {server.key} in a way that cannot be read here: "
                "your key and all that is said might go there. Take it out, or add --upstream with the "
                "address that requests are to go to"
            )
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
    if servers and _is_given(profile, given):
        named = next(iter(servers.values()))
        raise InputError(
            f"{named.path} names the server {named.url or 'in ' + named.key}, and a run has to name another "
            f"by {profile.override[0]}, which is among your arguments; leave it out, or start "
            f"`sevenfold proxy --agent {profile.name}` and put its address there"
        )


def make_arguments(
    profile: AgentProfile,
    servers: Mapping[ProxiedApi, NamedServer],
    url: str,
    given: Sequence[str] = (),
) -> tuple[str, ...]:
    """Arguments that lead the agent to this address of a run, whatever its files say.

    They are there also where no file names a server: the agent may read one that we cannot. An option that
    the user gives is theirs.
    """
    named = next(iter(servers.values()), None)
    needs_key = any("{key}" in word for word in profile.override)
    if not profile.override or (named is None and (needs_key or _is_given(profile, given))):
        return profile.make_arguments(url)
    words = (word.replace("{url}", f"{url}{named.version if named else ''}") for word in profile.override)
    return tuple(word.replace("{key}", named.key if named else "") for word in words)


def _is_given(profile: AgentProfile, given: Sequence[str]) -> bool:
    """Whether the user gives the option that has to lead the agent past its file."""
    option = profile.override[0] if profile.override else ""
    return option.startswith("--") and any(word == option or word.startswith(f"{option}=") for word in given)


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


def _read_server(key: ConfigKey, path: Path, *, is_of_project: bool) -> NamedServer | None:
    """None where it names none for certain."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_AGENT_FILE_BYTES + 1)
    except OSError:
        return None  # nor can the agent
    name, value = key.key, _UNREADABLE
    if len(data) <= MAX_AGENT_FILE_BYTES:
        try:
            name, value = _find_value(key, _parse(path.suffix, data.decode("utf-8-sig")))
        except (ValueError, RecursionError):
            value = _UNREADABLE if _may_hold(key, data) else None
        if is_of_project and path.suffix not in _PARSED_SUFFIXES and _has_more(key, data):
            value = _UNREADABLE
    if value is None or value == "":
        return None
    return NamedServer(
        path=path,
        api=key.api,
        url=value if isinstance(value, str) and _is_url(value) else "",
        key=name,
        beats_environ=key.beats_environ,
        is_of_project=is_of_project,
    )


def _is_url(value: str) -> bool:
    try:
        return bool(_URL.fullmatch(value) and urlsplit(value).netloc)
    except ValueError:
        return False


def _may_hold(key: ConfigKey, data: bytes) -> bool:
    """Whether a file that cannot be parsed has the key in it, in any encoding or spelling."""
    text = data.replace(b"\0", b"").decode("utf-8", "replace")
    return key.key.rpartition(".")[2] in _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)


def _has_more(key: ConfigKey, data: bytes) -> bool:
    """Whether a file of lines sets it anywhere but in one line that can be read."""
    text = data.replace(b"\0", b"").decode("utf-8", "replace")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    read = [found for found in _LINE.finditer("\n".join(lines)) if found[1] == key.key]
    named = sum(len(re.findall(rf"(?<![\w-]){re.escape(key.key)}\s*[:=]", line)) for line in lines)
    return named > len(read) or len({found[2] for found in read}) > 1


def _find_value(key: ConfigKey, fields: Any) -> tuple[str, object]:
    """The key with its references replaced, and what stands there."""
    top = cast("dict[str, object]", fields) if isinstance(fields, dict) else {}
    names = [_REFERENCE.sub(lambda found: str(top.get(found[1], "")), one) for one in key.key.split(".")]
    value: object = cast("object", fields)
    for name in names:
        value = cast("dict[str, object]", value).get(name) if isinstance(value, dict) else None
    return ".".join(names), value


def _parse(suffix: str, text: str) -> Any:
    if suffix in (".json", ".jsonc"):
        try:
            return json.loads(text)
        except ValueError:
            bare = _COMMENT.sub(lambda found: found[1] or "", text)
            return json.loads(_TRAILING_COMMA.sub(lambda found: found[1] or "", bare))
    if suffix == ".toml":
        return tomllib.loads(text)
    # Of YAML and of files with variables, what stands on a line of its own.
    return {found[1]: found[2].strip("\"'") for found in _LINE.finditer(text)}
