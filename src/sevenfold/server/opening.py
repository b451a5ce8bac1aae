"""Which database a URL names."""

from __future__ import annotations

from sevenfold.core.errors import InputError
from sevenfold.server.database import Database


def open_database(url: str) -> Database:
    """The database that a URL names, with its tables as this version wants them."""
    scheme, _, place = url.partition("://")
    if scheme == "sqlite" and place:
        from sevenfold.server.sqlite import SqliteDatabase

        # sqlite:///a.db is a.db here, sqlite:////srv/a.db is /srv/a.db: as others spell it.
        return SqliteDatabase(place.removeprefix("/"))
    if scheme in {"postgresql", "postgres"}:
        from sevenfold.server.postgres import PostgresDatabase

        return PostgresDatabase(url)
    shown = url if "@" not in url else f"{scheme}://…"
    raise InputError(f"{shown!r} names no database; expected sqlite:///FILE or postgresql://HOST/NAME")
