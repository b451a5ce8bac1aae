"""The web application: the page, its files, its calls, the stream of events, and the server on a local port.

The page shares scripts with the page of `sevenfold replay`, which is one file with all its scripts in it, so
these are plain and not modules. Here they are one module, `parts.js`, that exports what they define.

`make_page_app` makes it of `PageRoute`s, and `PageServer` serves it in a thread, from `start` to `stop`. A
handler blocks and runs in a thread. An error of ours is an answer with its text; any other is a bug, and
the page gets its kind and no more.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from sevenfold.core import __version__
from sevenfold.core.errors import FileMissing, InputError, MemoryConflict, SevenfoldError, describe_missing
from sevenfold.core.system import LOCAL_SERVER_OPTIONS, listen, run_blocking
from sevenfold.ui.access import DATA_PREFIX, STREAM_PATH, GuardedApp, PageAccess

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route
    from uvicorn import Server

PageMethod: TypeAlias = Literal["GET", "POST"]
MAX_TEXT_CHARS = 20_000
"""Of a value that a page sends: a long prompt fits."""


@dataclass(frozen=True, slots=True)
class PageCall:
    """What a page asks for. GET has a query, POST has a body; both are plain fields here."""

    fields: Mapping[str, object] = field(default_factory=dict[str, object])

    def text(self, name: str, default: str | None = None) -> str:
        """A text; `InputError` where there is none and no default."""
        value = self.fields.get(name, default)
        if not isinstance(value, str) or (default is None and not value):
            raise InputError(f"the field {name!r} is missing; expected text")
        if len(value) > MAX_TEXT_CHARS:
            raise InputError(f"the field {name!r} has {len(value):,} characters; at most {MAX_TEXT_CHARS:,}")
        return value

    def number(self, name: str, default: int, most: int) -> int:
        """A whole number from 0 up to `most`."""
        value = self.fields.get(name, default)
        text = str(value)
        if not (text.isascii() and text.isdigit()):
            raise InputError(f"the field {name!r} is {text[:40]!r}; expected a whole number from 0 on")
        return min(int(text[:18]), most)


PageHandler: TypeAlias = Callable[[PageCall], object]
"""Answers with plain data. It may block: it runs in a thread."""


@dataclass(frozen=True, slots=True)
class PageRoute:
    method: PageMethod
    path: str
    """Below `/api/`."""
    handle: PageHandler


def route_get(path: str, handle: PageHandler) -> PageRoute:
    return PageRoute("GET", path, handle)


def route_post(path: str, handle: PageHandler) -> PageRoute:
    """For whatever changes something."""
    return PageRoute("POST", path, handle)


SHARED_SCRIPTS = (
    *("figures.js", "nodes.js", "tooltip.js", "bars.js", "tables.js", "scales.js", "marks.js"),
    *("plot.js", "sessions.js"),
)
SHARED_STYLES = ("colours.css", "page.css", "parts.css", "sessions.css", "screens.css")
OWN_STYLES = ("ui.css",)
OWN_SCRIPTS = (
    *("arrive.js", "main.js", "api.js", "sessions.js", "conversation.js"),
    *("memories.js", "background.js"),
)

_DEFINED = re.compile(r"^(?:async )?(?:function|class|const) ([A-Za-z_]\w*)", re.MULTILINE)
_SCRIPT, _STYLE, _ICON = "text/javascript; charset=utf-8", "text/css; charset=utf-8", "image/svg+xml"

ICON = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" '
    b'fill="#0f6b66"/><path d="M3.5 12V9h2v3zm3.5 0V6h2v6zm3.5 0V4h2v8z" fill="#fff"/></svg>'
)


@dataclass(frozen=True, slots=True)
class PageFile:
    kind: str
    """Its media type."""
    content: bytes


@cache
def read_page_files() -> dict[str, PageFile]:
    """Every file below `/assets/`, by name."""
    shared = _read("sevenfold.replay.page", SHARED_SCRIPTS)
    names = ", ".join(dict.fromkeys(_DEFINED.findall(shared)))
    styles = _read("sevenfold.replay.page", SHARED_STYLES) + _read("sevenfold.ui", OWN_STYLES)
    found = {
        "parts.js": PageFile(_SCRIPT, f"{shared}\nexport {{ {names} }};\n".encode()),
        "page.css": PageFile(_STYLE, styles.encode()),
        "icon.svg": PageFile(_ICON, ICON),
    }
    own = {name: PageFile(_SCRIPT, _read("sevenfold.ui", [name]).encode()) for name in OWN_SCRIPTS}
    return found | own


def render_shell(project: str) -> bytes:
    """The page itself, without any data: its scripts fetch that."""
    shell = _read("sevenfold.ui", ["index.html"])
    for name, value in (("project", project), ("version", __version__)):
        shell = shell.replace(f"{{{{{name}}}}}", escape(value))
    return shell.encode("utf-8", "replace")


def render_arrival(run_key: str) -> bytes:
    """What a link leads to: it puts the key of the run into the browser's storage and opens the page."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Sevenfold</title>'
        f'<meta name="sevenfold-run" content="{escape(run_key)}">'
        '<script type="module" src="/assets/arrive.js"></script></head>'
        "<body><noscript>This page needs scripts; they all come from this machine.</noscript></body></html>"
    ).encode()


def _read(package: str, names: Iterable[str]) -> str:
    folder = files(package) / "assets"
    return "".join((folder / name).read_text(encoding="utf-8") for name in names)


MAX_BODY_BYTES = 1024 * 1024

OpenStream = Callable[[], AsyncIterator[bytes]]


def make_page_app(
    routes: Iterable[PageRoute], access: PageAccess, *, project: str, stream: OpenStream
) -> GuardedApp:
    from starlette.applications import Starlette
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route

    files = read_page_files()

    async def show_page(_: Request) -> Response:
        return Response(render_shell(project), media_type="text/html")

    async def send_file(request: Request) -> Response:
        found = files.get(request.path_params["name"])
        if found is None:
            return Response("no such file", 404)
        return Response(found.content, headers={"content-type": found.kind})

    async def open_stream(_: Request) -> Response:
        return StreamingResponse(stream(), media_type="text/event-stream")

    async def make_ticket(_: Request) -> Response:
        return _answer({"ticket": access.make_ticket()})

    by_path: dict[str, dict[PageMethod, PageHandler]] = {}
    for one in routes:
        by_path.setdefault(one.path, {})[one.method] = one.handle
    app = Starlette(
        routes=[
            Route("/", show_page),
            Route("/assets/{name}", send_file),
            Route(STREAM_PATH, open_stream),
            Route(STREAM_PATH, make_ticket, methods=["POST"]),
            *(_route(path, handlers) for path, handlers in by_path.items()),
        ]
    )
    return GuardedApp(app, access, render_arrival(access.run_key))


def _route(path: str, handlers: Mapping[PageMethod, PageHandler]) -> Route:
    from starlette.routing import Route

    async def serve(request: Request) -> Response:
        handle = handlers[cast("PageMethod", request.method)]
        try:
            call = PageCall(await _read_fields(request))
            return _answer(await run_blocking(lambda: handle(call)))
        except SevenfoldError as error:
            return _answer({"error": str(error)}, _choose_status(error))
        except Exception as bug:  # the page says so; the process goes on
            return _answer(
                {"error": f"unexpected {type(bug).__name__}; this is a bug, please report it"}, 500
            )

    route = Route(f"{DATA_PREFIX}{path}", serve, methods=list(handlers))
    route.methods = {str(method) for method in handlers}  # without HEAD, which Starlette adds to GET
    return route


async def _read_fields(request: Request) -> Mapping[str, object]:
    if request.method == "GET":
        return dict(request.query_params)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise InputError(f"{kind[:80]!r} is not read here; send application/json")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise InputError(f"the request is over {MAX_BODY_BYTES:,} bytes")
    try:
        value: object = json.loads(body)
    except ValueError as error:
        raise InputError(f"the request is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise InputError("the request is no JSON object")
    return cast("dict[str, object]", value)


def _choose_status(error: SevenfoldError) -> int:
    if isinstance(error, FileMissing):
        return 404
    if isinstance(error, MemoryConflict):
        return 409
    return 422 if isinstance(error, InputError) else 503


def _answer(value: object, status: int = 200) -> Response:
    from starlette.responses import Response

    # ASCII, so that a name that is no Unicode text can be in it too.
    body = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Response(body, status, media_type="application/json")


PAGE_ADDRESS = "127.0.0.1"
"""Never any other: what is shown is everything that was said on this machine."""
PAGE_PORT = 7007
PAGE_STOP_SECONDS = 5.0


class PageServer:
    """Listens on loopback."""

    def __init__(self, make_app: Callable[[PageAccess], GuardedApp], port: int | None = None) -> None:
        """Without a port: `PAGE_PORT`, or any free one where that is taken."""
        try:
            import starlette
            import uvicorn
        except ImportError as error:
            raise InputError(describe_missing("the page", ["starlette", "uvicorn"], "ui")) from error
        del starlette
        self._listener = _listen(port)
        self.access = PageAccess(self._listener.getsockname()[1])
        config = uvicorn.Config(make_app(self.access), **LOCAL_SERVER_OPTIONS)
        self._server: Server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://{PAGE_ADDRESS}:{self.access.port}"

    def start(self) -> None:
        serve = self._server.serve
        self._thread = threading.Thread(
            target=lambda: asyncio.run(serve(sockets=[self._listener])), name="sevenfold-ui", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop listening and wait for the thread. Again does nothing."""
        thread, self._thread = self._thread, None
        self._server.should_exit = True
        if thread is not None:
            thread.join(PAGE_STOP_SECONDS)
        self._listener.close()


def _listen(port: int | None) -> socket.socket:
    if port is not None:
        return listen(PAGE_ADDRESS, port)
    try:
        return listen(PAGE_ADDRESS, PAGE_PORT)
    except InputError:
        return listen(PAGE_ADDRESS, 0)
