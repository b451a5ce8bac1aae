"""Which database a URL names."""

from __future__ import annotations

from pathlib import Path

from sevenfold.core.errors import InputError
from sevenfold.team.server.database import Database


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
