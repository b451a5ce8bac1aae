"""One page from the web: by an address that was checked, within bounds of size and time."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from sevenfold.agent.permissions.rules import parse_host
from sevenfold.core.errors import InputError
from sevenfold.core.settings.web import WebSettings
from sevenfold.core.version import __version__

if TYPE_CHECKING:
    import httpx2

MAX_REDIRECTS = 5
MAX_URL_CHARS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPage:
    url: str
    status: int
    kind: str
    """Its media type, in lower case."""
    charset: str
    body: bytes
    is_cut: bool
    moved_to: str = ""
    """Where it sends the reader, on another host: that is another question to ask."""


def check_url(url: str) -> str:
    """The URL, if it is one that can be fetched."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InputError(f"{url!r:.120} is no URL: {error}") from error
    if len(url) > MAX_URL_CHARS or not url.isprintable() or any(sign.isspace() for sign in url):
        raise InputError(
            f"{url!r:.120} is no URL; leave out blanks, and keep it under {MAX_URL_CHARS:,} characters"
        )
    if parts.scheme.lower() not in ("http", "https") or not parse_host(url):
        raise InputError(f"{url!r:.120} cannot be fetched; expected http:// or https:// and a host")
    if parts.username is not None or parts.password is not None or port == 0:
        raise InputError(f"{url!r:.120} carries a name, a password or port 0; leave that out")
    return url


async def fetch_page(url: str, settings: WebSettings) -> FetchedPage:
    """The page, redirects on the same host followed and each checked anew."""
    import httpx2

    try:
        async with (
            asyncio.timeout(settings.timeout_seconds),
            httpx2.AsyncClient(
                trust_env=False, follow_redirects=False, timeout=settings.timeout_seconds
            ) as client,
        ):
            for _ in range(MAX_REDIRECTS + 1):
                page = await _get(client, check_url(url), settings)
                if not page.moved_to or parse_host(page.moved_to) != parse_host(url):
                    return page
                url = page.moved_to
    except TimeoutError as error:
        raise InputError(
            f"{url} did not answer within {settings.timeout_seconds} seconds; try another page"
        ) from error
    except httpx2.HTTPError as error:
        raise InputError(f"{url} cannot be fetched: {error or type(error).__name__}") from error
    raise InputError(f"{url} was redirected more than {MAX_REDIRECTS} times; try where it leads to")


async def resolve_public_address(url: str, settings: WebSettings) -> str:
    """The address to connect to: every one that the host has must be public, or allowed."""
    host, port = parse_host(url), urlsplit(url).port or 443
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise InputError(f"{host} cannot be found: {error}") from error
    addresses = [str(entry[4][0]) for entry in found]
    barred = [address for address in addresses if not is_public_address(address)]
    if barred and not settings.private:
        raise InputError(
            f"{host} is at {barred[0]}, which is no public address; fetch it with a command, or ask the user "
            "to set web.private"
        )
    if not addresses:
        raise InputError(f"{host} has no address; check the name")
    return addresses[0]


def is_public_address(address: str) -> bool:
    """Whether an address belongs to the internet, and neither to this machine nor to its network."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        # An IPv4 address in disguise is judged as what it is.
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is not None:
            return is_public_address(str(inner))
        if ip in _TRANSLATED:
            return is_public_address(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
    return ip.is_global and not ip.is_multicast


_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")


async def _get(client: httpx2.AsyncClient, url: str, settings: WebSettings) -> FetchedPage:
    import httpx2

    address = await resolve_public_address(url, settings)
    asked = httpx2.URL(url)
    # By address, so that the name cannot mean another machine by the time it is looked up again.
    request = client.build_request(
        "GET",
        asked.copy_with(host=address),
        headers={
            "Host": asked.netloc.decode("ascii"),
            "User-Agent": f"sevenfold/{__version__}",
            "Accept": "text/html, text/markdown, text/plain, application/json;q=0.9, */*;q=0.1",
            "Accept-Encoding": "identity",
        },
        extensions={"sni_hostname": parse_host(url)},
    )
    answer = await client.send(request, stream=True)
    try:
        body = bytearray()
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > settings.max_bytes:
                break
    finally:
        await answer.aclose()
    kind, _, rest = answer.headers.get("content-type", "").lower().partition(";")
    moved = answer.headers.get("location", "") if answer.status_code in (301, 302, 303, 307, 308) else ""
    return FetchedPage(
        url=url,
        status=answer.status_code,
        kind=kind.strip(),
        charset=rest.partition("charset=")[2].strip(" \"';"),
        body=bytes(body[: settings.max_bytes]),
        is_cut=len(body) > settings.max_bytes,
        moved_to=urljoin(url, moved) if moved else "",
    )
