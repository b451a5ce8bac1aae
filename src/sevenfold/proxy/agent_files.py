"""Agents that read from a file where requests go: each run of one gets a copy of that file.

The user's own file is read and never written. The copy lies in a folder of the run, which is removed with it.
A run has one server for each API: models that use another one are left as they are, and the user is told.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Literal, TypeAlias, cast

from sevenfold.core.errors import InputError
from sevenfold.core.system import is_process_alive
from sevenfold.proxy.requests import ANTHROPIC_API, OPENAI_API, Fields, Upstreams
from sevenfold.store.files.folder import Folder

_Api: TypeAlias = Literal["anthropic", "openai"]

_PI_APIS: Mapping[str, _Api] = {
    "anthropic-messages": "anthropic",
    "openai-completions": "openai",
    "openai-responses": "openai",
}
_APIS: Mapping[str, _Api] = {"anthropic": "anthropic", "openai": "openai"}
_PI_OWN: Mapping[str, Fields] = {
    "anthropic": {"api": "anthropic-messages", "baseUrl": ANTHROPIC_API},
    "openai": {"api": "openai-responses", "baseUrl": f"{OPENAI_API}/v1"},
}
"""Providers that pi knows without a file."""
_PI_LINKED = ("auth.json", "settings.json", "sessions")
"""What pi writes: it goes to the user's own folder."""
COPY_PREFIX = "sevenfold-run-"
"""Of the folder of a run, before the number of its process."""
_ITEM = re.compile(r"^(?P<indent> *)- +")
_FIELD = re.compile(r"^(?P<start> *(?:- +)?)(?P<name>[A-Za-z]+): *(?P<value>\"[^\"]*\"|'[^']*'|[^#\n]*)")


@dataclass(frozen=True, slots=True)
class RunCopy:
    """What leads an agent to the copy of its file."""

    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Server:
    """Where one entry of the file sends its requests to."""

    name: str
    api: _Api
    url: str
    """Without the version; empty: one that cannot be told."""


@dataclass(slots=True, kw_only=True)
class AgentFile(ABC):
    """The file of an agent, as it was read."""

    given: str = ""
    """The one server that the user names for everything."""
    servers: list[_Server] = field(default_factory=list[_Server])
    """The first one of each API counts."""

    @property
    def upstreams(self) -> Upstreams:
        if self.given:
            return Upstreams(self.given, self.given)
        return Upstreams(
            self._first("anthropic") or ANTHROPIC_API,
            self._first("openai") or OPENAI_API,
        )

    @property
    def left_alone(self) -> list[str]:
        """Entries that go elsewhere, and not through the proxy."""
        return [one.name for one in self.servers if not self.leads(one)]

    def leads(self, server: _Server) -> bool:
        """Whether an entry is led to the proxy."""
        return bool(self.given) or bool(server.url and server.url == self._first(server.api))

    @abstractmethod
    def write_copy(self, folder: Folder, url: str) -> RunCopy:
        """Write the copy into a folder, with this address of a run."""

    def _first(self, api: _Api) -> str:
        return next((one.url for one in self.servers if one.api == api and one.url), "")


@dataclass(slots=True, kw_only=True)
class _PiFile(AgentFile):
    source: Path
    fields: Fields

    @classmethod
    def read(cls, environ: Mapping[str, str], given: str) -> _PiFile:
        named = environ.get("PI_CODING_AGENT_DIR")
        source = Path(named).expanduser() if named else _home(environ) / ".pi" / "agent"
        fields = _read_json(source / "models.json")
        settings = _read_json(source / "settings.json")
        made = cls(given=given, source=source, fields=fields)
        own = _object(fields.get("providers"))
        # What the user has chosen comes first, then what the user has added.
        order = dict.fromkeys([str(settings.get("defaultProvider")), *own, *_PI_OWN])
        made.servers = [found for name in order if (found := _read_pi_server(name, own)) is not None]
        return made

    def write_copy(self, folder: Folder, url: str) -> RunCopy:
        (self.source / "sessions").mkdir(parents=True, exist_ok=True)
        names = {*(one.name for one in self.source.iterdir()), *_PI_LINKED} - {"models.json"}
        for name in sorted(names):
            os.symlink(self.source / name, Path(folder.path) / name)
        providers = dict(_object(self.fields.get("providers")))
        for server in self.servers:
            if self.leads(server):
                base = url if server.api == "anthropic" else f"{url}/v1"
                providers[server.name] = {**_object(providers.get(server.name)), "baseUrl": base}
        copied = {**self.fields, "providers": providers}
        folder.create("models.json", json.dumps(copied, indent=2, ensure_ascii=False).encode())
        return RunCopy(variables={"PI_CODING_AGENT_DIR": str(folder.path)})


def _read_pi_server(name: str, own: Fields) -> _Server | None:
    known = {**_PI_OWN.get(name, {}), **_object(own.get(name))}
    api = _PI_APIS.get(str(known.get("api")))
    base = known.get("baseUrl")
    if api is None or not isinstance(base, str):
        return None
    # The SDK of Anthropic adds the version itself.
    return _Server(name, api, _plain(base) if api == "anthropic" else _unversioned(base))


@dataclass(slots=True, kw_only=True)
class _ContinueFile(AgentFile):
    lines: list[str]
    places: list[_ModelPlace] = field(default_factory=list["_ModelPlace"])

    @classmethod
    def read(cls, environ: Mapping[str, str], arguments: Sequence[str], given: str) -> _ContinueFile:
        named = _find_option(arguments, "--config")
        folder = environ.get("CONTINUE_GLOBAL_DIR")
        source = Path(folder).expanduser() if folder else _home(environ) / ".continue"
        path = Path(named).expanduser() if named else source / "config.yaml"
        try:
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        except (OSError, ValueError) as error:
            raise InputError(
                f"{path} cannot be read: {error}; expected the configuration of Continue, with models"
            ) from error
        made = cls(given=given, lines=lines, places=list(_find_models(lines)))
        made.servers = [place.server for place in made.places]
        if not made.servers:
            raise InputError(
                f"{path} has no model with provider: anthropic or openai, each on a line of its own; "
                "start `sevenfold proxy --agent continue`, and name its address as apiBase"
            )
        return made

    def write_copy(self, folder: Folder, url: str) -> RunCopy:
        lines = list(self.lines)
        for place in reversed(self.places):  # from the end, so that places stay where they are
            if self.leads(place.server):
                place.redirect(lines, f"{url}/v1/")
        folder.create("config.yaml", "".join(lines).encode())
        return RunCopy(arguments=("--config", str(Path(folder.path) / "config.yaml")))


@dataclass(frozen=True, slots=True)
class _ModelPlace:
    """A model in the file of Continue."""

    server: _Server
    provider: int
    """The line that names its provider."""
    base: int | None
    """The line that names its server."""

    def redirect(self, lines: list[str], url: str) -> None:
        at = self.provider if self.base is None else self.base
        found = _FIELD.match(lines[at])
        start = found["start"] if found else ""
        if self.base is None:
            line = lines[at] if lines[at].endswith("\n") else f"{lines[at]}\n"
            lines[at] = f'{line}{" " * len(start)}apiBase: "{url}"\n'
        else:
            lines[at] = f'{start}apiBase: "{url}"\n'


def _find_models(lines: Sequence[str]) -> Iterable[_ModelPlace]:
    """The models in block form under `models:` that use one of the two APIs."""
    for start, end in _split_models(lines):
        column, found = 0, dict[str, int]()
        for at in range(start, end):
            part = _FIELD.match(lines[at])
            if part is not None and (at == start or len(part["start"]) == column):
                column = column or len(part["start"])
                found.setdefault(part["name"], at)
            elif at == start:
                column = len(lines[at]) - len(lines[at].lstrip(" -"))
        provider = _APIS.get(_read_value(lines, found.get("provider")))
        if provider is not None:
            base = _read_value(lines, found.get("apiBase"))
            known = base or f"{ANTHROPIC_API if provider == 'anthropic' else OPENAI_API}/v1/"
            name = _read_value(lines, found.get("name")) or _read_value(lines, found.get("model"))
            yield _ModelPlace(
                _Server(name, provider, _unversioned(known)), found["provider"], found.get("apiBase")
            )


def _split_models(lines: Sequence[str]) -> Iterable[tuple[int, int]]:
    """From where to where each item of `models:` goes."""
    top = next((at for at, line in enumerate(lines) if line.split("#")[0].rstrip() == "models:"), None)
    if top is None:
        return
    end = next((at for at in range(top + 1, len(lines)) if re.match(r"[^\s#-]", lines[at])), len(lines))
    first = next((found for at in range(top + 1, end) if (found := _ITEM.match(lines[at]))), None)
    if first is None:
        return
    begins = f"{first['indent']}- "
    starts = [at for at in range(top + 1, end) if lines[at].startswith(begins)]
    yield from zip(starts, [*starts[1:], end], strict=True)


def _read_value(lines: Sequence[str], at: int | None) -> str:
    found = _FIELD.match(lines[at]) if at is not None else None
    return found["value"].strip().strip("\"'") if found else ""


def read_agent_file(
    agent: str, environ: Mapping[str, str], arguments: Sequence[str], given: str = ""
) -> AgentFile:
    """The file of an agent that has one; `given`: the server that the user names, without its version."""
    if agent == "pi":
        return _PiFile.read(environ, given)
    return _ContinueFile.read(environ, arguments, given)


def remove_left_copies() -> int:
    """Remove the folders of runs that were killed, and say how many: an agent's file may hold its keys."""
    removed = 0
    for path in Path(gettempdir()).glob(f"{COPY_PREFIX}*-*"):
        with suppress(OSError):
            pid = path.name.removeprefix(COPY_PREFIX).partition("-")[0]
            if path.lstat().st_uid == os.getuid() and pid.isdecimal() and not is_process_alive(int(pid)):
                shutil.rmtree(path)
                removed += 1
    return removed


def _find_option(arguments: Sequence[str], name: str) -> str:
    for at, argument in enumerate(arguments):
        if argument == name and at + 1 < len(arguments):
            return arguments[at + 1]
        if argument.startswith(f"{name}="):
            return argument.partition("=")[2]
    return ""


def drop_option(arguments: Sequence[str], name: str) -> list[str]:
    """Arguments without an option that takes a value."""
    kept: list[str] = []
    skips = False
    for argument in arguments:
        if not skips and argument != name and not argument.startswith(f"{name}="):
            kept.append(argument)
        skips = not skips and argument == name
    return kept


def _unversioned(url: str) -> str:
    """The address that stands before `/v1`; empty where it has no such ending."""
    base = _plain(url)
    return base.removesuffix("/v1") if base.endswith("/v1") else ""


def _plain(url: str) -> str:
    return url.rstrip("/") if re.match(r"https?://[^$]+$", url) else ""


def _read_json(path: Path) -> Fields:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}; expected JSON") from error
    return _object(found)


def _object(value: Any) -> Fields:
    return cast("Fields", value) if isinstance(value, dict) else {}


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or Path.home())
