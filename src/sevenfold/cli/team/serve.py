"""`sevenfold serve`: runs a team's server until it is stopped, and dispatches its admin actions.

`open_database` opens the database that a URL names.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import cast

from sevenfold.cli.screen import STDIO_SCREEN, Screen
from sevenfold.cli.workspace import open_workspace
from sevenfold.core.clock import SystemClock
from sevenfold.core.errors import DatabaseFailed, InputError, describe_missing
from sevenfold.team.server.database import Database
from sevenfold.team.server.people import list_orgs
from sevenfold.team.server.policy import ServerLimits


def open_database(url: str, *, is_there: bool = False) -> Database:
    """The database that a URL names, with its tables as this version wants them. `is_there`: or none."""
    scheme, _, place = url.partition("://")
    if scheme == "sqlite" and place:
        from sevenfold.team.server.sqlite import SqliteDatabase

        # sqlite:///a.db is a.db here, sqlite:////srv/a.db is /srv/a.db: as others spell it.
        path = place.removeprefix("/")
        if is_there and not Path(path).exists():
            raise InputError(f"there is no database {path}; check --db, or begin with `sevenfold serve init`")
        return SqliteDatabase(path)
    if scheme in {"postgresql", "postgres"}:
        from sevenfold.team.server.postgres import PostgresDatabase

        return PostgresDatabase(url)
    raise InputError(
        f"{redact_url(url)!r} names no database; expected sqlite:///FILE or postgresql://HOST/NAME"
    )


def redact_url(url: str) -> str:
    """Without what may be a password."""
    return f"{url.partition('://')[0]}://…" if "@" in url or "password" in url else url


CREATING_ACTIONS = ("run", "init", "org", "restore")
"""Actions that may find no database. To others its absence means a wrong name: an empty one helps nobody."""


def run_serve(options: Namespace, screen: Screen) -> int:
    action = cast("str", options.action)
    url = cast("str | None", options.db) or _default_url()
    database = open_database(url, is_there=action not in CREATING_ACTIONS)
    try:
        if action == "run":
            if options.words:
                raise InputError(f"{options.words[0]!r} is no action of serve; see sevenfold serve --help")
            return _serve(database, options, screen)
        from sevenfold.cli.team.serve_admin import run_admin_action

        return run_admin_action(database, options, screen)
    finally:
        database.close()


def _serve(database: Database, options: Namespace, screen: Screen) -> int:
    try:
        from sevenfold.cli.team.serve_admin import show_role_warning
        from sevenfold.team.server.app_state import AppState
        from sevenfold.team.server.http_api import ServerMetrics
        from sevenfold.team.server.http_server import TeamServer
        from sevenfold.team.server.repos import Forge, fetch_over_http

        forge = Forge(options.forge, fetch_over_http) if options.forge else None
        state = AppState(database, make_server_limits(options), SystemClock(), forge)
        meters = ServerMetrics(None if options.quiet else _log)
        host = TeamServer(state, meters, address=options.host, port=options.port)
    except ImportError as error:
        raise DatabaseFailed(
            describe_missing("sevenfold serve", [error.name or "starlette"], "server")
        ) from error
    screen.show_line(f"serving {host.url}")
    if not database.read(None, list_orgs).result():
        screen.show_line("There is no organisation yet. Make one, its owner and a token with:", "warning")
        screen.show_line(
            f"  sevenfold serve init ORG YOU{f' --db {redact_url(options.db)}' if options.db else ''}",
            "warning",
        )
    show_role_warning(database, screen)
    if options.host not in ("127.0.0.1", "::1", "localhost"):
        screen.show_line(
            "Tokens travel in the clear without TLS: put a proxy that has it in front.", "warning"
        )
    screen.flush()
    host.run()
    return 0


def make_server_limits(options: Namespace) -> ServerLimits:
    limits = ServerLimits()
    rate, entries = cast("int | None", options.rate), cast("int | None", options.max_entries)
    for name, value in (("--rate", rate), ("--max-entries", entries)):
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}; expected 1 or more")
    return ServerLimits(org_rate=rate or limits.org_rate, entries=entries or limits.entries)


def _log(line: str) -> None:
    STDIO_SCREEN.note(line)


def _default_url() -> str:
    home = open_workspace(trusts_local=True).home
    folder = home / "server"
    home.mkdir(0o700, parents=True, exist_ok=True)
    folder.mkdir(0o700, exist_ok=True)
    return f"sqlite:///{folder / 'team.db'}"
