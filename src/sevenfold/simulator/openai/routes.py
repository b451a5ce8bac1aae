"""The HTTP routes of the OpenAI endpoints."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING

from sevenfold.core.json import Json, JsonObject, write_json
from sevenfold.simulator.openai.exchange import (
    OpenAIEndpoint,
    OpenAIExchange,
    OpenAIResponse,
    parse_api_key,
    render_openai_error,
)
from sevenfold.simulator.state.faults import DropFault, SlowFault, StreamFault
from sevenfold.simulator.state.simulator_state import SimulatorState
from sevenfold.simulator.wire.error_response import ErrorResponse, RequestRefused

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

RouteHandler = Callable[["Request"], Awaitable["Response"]]

JSON_MEDIA_TYPE = "application/json"
_SSE = "text/event-stream; charset=utf-8"
DONE_EVENT = b"data: [DONE]\n\n"


class StreamDropped(Exception):
    """Raised in mid-answer so that the server closes the connection, as a `DropFault` asks."""


class OpenAIRoutes:
    def __init__(self, find_world: Callable[[], SimulatorState]) -> None:
        self._find_world = find_world

    def routes(self) -> list[BaseRoute]:
        from starlette.routing import Route

        return [
            Route("/v1/chat/completions", self.chat, methods=["POST"]),
            Route("/v1/responses", self.responses, methods=["POST"]),
        ]

    async def chat(self, request: Request) -> Response:
        return await self._serve(request, "chat")

    async def responses(self, request: Request) -> Response:
        return await self._serve(request, "responses")

    def models_or(self, other: RouteHandler) -> RouteHandler:
        """Both APIs list models at one address; Anthropic's clients name a version, OpenAI's do not."""

        async def models(request: Request) -> Response:
            if "anthropic-version" in request.headers or "authorization" not in request.headers:
                return await other(request)
            return self._models(request)

        return models

    def _models(self, request: Request) -> Response:
        world = self._find_world()
        try:
            parse_api_key({"authorization": request.headers.get("authorization", "")})
            asked = request.path_params.get("name")
            known = [model for model in world.catalog.models if asked is None or model.name == asked]
            if asked is not None and not known:
                raise RequestRefused(
                    ErrorResponse(
                        status=404, message=f"The model '{asked}' does not exist.", code="model_not_found"
                    )
                )
        except RequestRefused as refusal:
            return json_response(render_openai_error(refusal.problem), refusal.problem.status)
        listed = tuple(_model(model.name) for model in known)
        return json_response(
            listed[0] if asked is not None else JsonObject({"object": "list", "data": listed})
        )

    async def _serve(self, request: Request, endpoint: OpenAIEndpoint) -> Response:
        world = self._find_world()
        headers = {name.lower(): value for name, value in request.headers.items()}
        served = await OpenAIExchange(world).serve(endpoint, headers, await request.body())
        world.arrivals.looked_up()
        if served.events is not None:
            from starlette.responses import StreamingResponse

            return StreamingResponse(_events(served, endpoint), 200, dict(served.headers), _SSE)
        if isinstance(served.fault, DropFault):
            return _half(served)
        return json_response(served.body, served.status, dict(served.headers))


def _model(name: str) -> JsonObject:
    return JsonObject({"id": name, "object": "model", "created": 0, "owned_by": "sevenfold"})


def json_response(body: JsonObject, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    from starlette.responses import Response

    return Response(write_json(body), status, headers, JSON_MEDIA_TYPE)


def _half(served: OpenAIResponse) -> Response:
    """An answer that breaks off in the middle of its body."""
    from starlette.responses import StreamingResponse

    data = write_json(served.body)

    async def broken() -> AsyncIterator[bytes]:
        yield data[: len(data) // 2]
        raise StreamDropped

    headers = {**served.headers, "content-length": str(len(data))}
    return StreamingResponse(broken(), served.status, headers, JSON_MEDIA_TYPE)


async def _events(served: OpenAIResponse, endpoint: OpenAIEndpoint) -> AsyncIterator[bytes]:
    """The stream, with what its fault does to it: one planned for later than its end takes the last event."""
    fault, events = served.fault, served.events or ()
    breaks = min(fault.after_events, len(events) - 1) if isinstance(fault, (StreamFault, DropFault)) else None
    for at, event in enumerate(events):
        if at == breaks:
            if isinstance(fault, StreamFault):
                yield _sse(endpoint, _stream_error(endpoint, fault))
                return
            raise StreamDropped
        if isinstance(fault, SlowFault):
            await asyncio.sleep(fault.each.total_seconds())
        yield _sse(endpoint, event)
    if endpoint == "chat":
        yield DONE_EVENT


def _stream_error(endpoint: OpenAIEndpoint, fault: StreamFault) -> JsonObject:
    body = render_openai_error(ErrorResponse(status=fault.status, message=fault.message))
    if endpoint == "chat":
        return body
    fields: dict[str, Json] = {
        "type": "error",
        "code": "server_error",
        "message": fault.message,
        "param": None,
    }
    return JsonObject(fields)


def _sse(endpoint: OpenAIEndpoint, event: JsonObject) -> bytes:
    """Events of the Responses API have names, chunks have none."""
    data = b"data: " + write_json(event) + b"\n\n"
    if endpoint == "chat":
        return data
    kind = event.get("type")
    return b"event: " + (kind if isinstance(kind, str) else "").encode() + b"\n" + data
