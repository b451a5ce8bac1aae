"""Headers, paths and hosts of a request: what is passed on, and what belongs to one connection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias
from urllib.parse import urlsplit

RawHeaders: TypeAlias = list[tuple[bytes, bytes]]
BETA_HEADER = b"anthropic-beta"
LOOPBACK_ADDRESSES = frozenset({"127.0.0.1", "::1"})
_LOCAL_NAMES = frozenset({*LOOPBACK_ADDRESSES, "localhost"})

_CONNECTION_HEADERS = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer"),
        *("transfer-encoding", "upgrade", "host", "content-length", "proxy-connection", "expect"),
    }
)


def read_scope_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}


def is_local_host(host: str) -> bool:
    """Whether the request was made for this machine. A page in a browser that found us by a name of its own
    says that name."""
    with suppress(ValueError):
        return urlsplit(f"//{host}").hostname in _LOCAL_NAMES
    return False


def is_from_web_page(headers: Mapping[str, str]) -> bool:
    """Whether a page of another site sent it, which every page can do and no agent does. A browser says so
    itself; an editor's window has an origin of another kind."""
    if headers.get("sec-fetch-site", "") in ("cross-site", "same-site"):
        return True
    origin = headers.get("origin", "")
    return origin.startswith(("http://", "https://")) and not is_local_host(origin.partition("//")[2])


def read_raw_path(scope: Mapping[str, Any]) -> str:
    """As the client wrote it, escapes and all."""
    raw = scope.get("raw_path")
    return raw.decode("latin-1") if isinstance(raw, bytes) else str(scope["path"])


def make_forwarded_headers(raw: Iterable[tuple[bytes, bytes]], betas: Iterable[str] = ()) -> RawHeaders:
    """Without those of the connection; of encodings only what the usage can be read from."""
    kept = [(name, value) for name, value in raw if name.decode("latin-1").lower() not in _CONNECTION_HEADERS]
    named = ",".join(value.decode("latin-1") for name, value in kept if name.lower() == BETA_HEADER)
    missing = [beta for beta in betas if beta not in named]
    if missing:
        kept = [(name, value) for name, value in kept if name.lower() != BETA_HEADER]
        kept.append((BETA_HEADER, ",".join([*filter(None, [named]), *missing]).encode("latin-1")))
    return [
        (name, b"gzip" if b"gzip" in value else b"identity")
        if name.lower() == b"accept-encoding"
        else (name, value)
        for name, value in kept
    ]


def make_returned_headers(raw: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    """All but those of the connection. A length that was named still holds: the bytes are the same."""
    dropped = _CONNECTION_HEADERS - {"content-length"}
    return [(name, value) for name, value in raw if name.decode("latin-1").lower() not in dropped]
