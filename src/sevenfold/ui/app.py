"""The web application: the page, its files, the calls of `calls`, and the stream of events.

A handler blocks and runs in a thread. An error of ours is an answer with its text; any other is a bug, and
the page gets its kind and no more.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, cast

from sevenfold.core.errors import FileMissing, InputError, MemoryConflict, SevenfoldError
from sevenfold.core.system import run_blocking
from sevenfold.ui.access import DATA_PREFIX, STREAM_PATH, GuardedApp, PageAccess
from sevenfold.ui.calls import PageCall, PageHandler, PageMethod, PageRoute
from sevenfold.ui.files import read_page_files, render_arrival, render_shell

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

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
