"""The HTTP API: passes a request through access control to its operation, and returns an answer or an error.

Also here: metrics for Prometheus and the request log. Starlette and msgspec are imported when an application
is made, so that importing the package stays cheap.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, TypeAlias, cast

from sevenfold.core.errors import DatabaseFailed, InputError
from sevenfold.team.server import admin_endpoints, memory, messages
from sevenfold.team.server.app_state import (
    AccessControl,
    ApiRequest,
    ApiResponse,
    AppState,
    format_ms_time,
    inflate,
    read_capped,
)
from sevenfold.team.server.messages import ApiError, make_not_found
from sevenfold.team.server.operations import OPERATIONS, Method, Operation
from sevenfold.team.server.policy import MAX_SMALL_BODY_BYTES, Principal, RightsChanged

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route


# Metrics, and one line of JSON per request. Neither holds any content.

WriteLine: TypeAlias = Callable[[str], None]

HISTOGRAM_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Where the bars of a histogram end: from one read of SQLite to what a client waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLogEntry:
    """One request, for the log. Names of memories are not in it: they may tell something."""

    at: str
    operation: str
    status: int
    kind: str
    """Of a refusal; empty for an answer."""
    milliseconds: float
    bytes_in: int
    bytes_out: int
    org: str
    member: str
    token: str
    repo: str
    request: str


class ServerMetrics:
    def __init__(self, write_line: WriteLine | None) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self._registry = CollectorRegistry()
        self._write_line = write_line
        self._requests = Counter(
            "sevenfold_requests", "Requests", ["operation", "status"], registry=self._registry
        )
        self._refusals = Counter("sevenfold_refusals", "Refusals", ["kind"], registry=self._registry)
        self._seconds = Histogram(
            "sevenfold_request_seconds",
            "Time to answer",
            ["operation"],
            buckets=HISTOGRAM_SECONDS,
            registry=self._registry,
        )
        self._waiting = Gauge(
            "sevenfold_transactions_waiting", "Transactions under way or in line", registry=self._registry
        )

    def count(self, served: RequestLogEntry) -> None:
        import msgspec

        self._requests.labels(served.operation, str(served.status)).inc()
        self._seconds.labels(served.operation).observe(served.milliseconds / 1000)
        if served.kind:
            self._refusals.labels(served.kind).inc()
        if self._write_line is not None:
            self._write_line(msgspec.json.encode(served).decode())

    def log_event(self, event: str, **facts: str | int) -> None:
        """Something about the server itself."""
        if self._write_line is not None:
            self._write_line(json.dumps({"event": event, **facts}, separators=(",", ":")))

    def exposition(self, waiting: int) -> str:
        from prometheus_client import generate_latest

        self._waiting.set(waiting)
        return generate_latest(self._registry).decode()


ApiEndpoint: TypeAlias = Callable[[AppState, ApiRequest], Awaitable[ApiResponse]]

REPO_ID = re.compile(r"[a-z0-9]{1,40}", re.ASCII)
_JSON = "application/json"
RETRY_SECONDS = 1
"""A database that restarts is back in about that time."""
RIGHTS_TRIES = 5
"""A request is begun anew where the rights it was admitted by changed before it was carried out."""

ENDPOINTS: Mapping[str, ApiEndpoint] = {
    "read_memory": memory.handle_read_memory,
    "put_memory": memory.handle_put_memory,
    "send_bodies": memory.handle_send_bodies,
    "read_body": memory.handle_read_body,
    "commit": memory.handle_commit,
    "check_known": memory.handle_check_known,
    "whoami": admin_endpoints.handle_whoami,
    "list_repos": admin_endpoints.handle_list_repos,
    "claim_repo": admin_endpoints.handle_claim_repo,
    "prove_repo": admin_endpoints.handle_prove_repo,
    "list_members": admin_endpoints.handle_list_members,
    "add_member": admin_endpoints.handle_add_member,
    "change_member": admin_endpoints.handle_change_member,
    "remove_member": admin_endpoints.handle_remove_member,
    "list_tokens": admin_endpoints.handle_list_tokens,
    "add_token": admin_endpoints.handle_add_token,
    "revoke_token": admin_endpoints.handle_revoke_token,
    "start_device": admin_endpoints.handle_start_device,
    "poll_device": admin_endpoints.handle_poll_device,
    "approve_device": admin_endpoints.handle_approve_device,
    "allow_finding": admin_endpoints.handle_allow_finding,
    "read_audit": admin_endpoints.handle_read_audit,
}

RARE_OPERATIONS = frozenset({"start_device", "approve_device"})
"""Who does these often guesses codes, or uses up those that there are."""
BODY_TIME = timedelta(seconds=60)
"""To send a body: 4 KB a second for the largest ordinary one. Whoever is slower holds a connection."""
READY_TTL = timedelta(seconds=1)
"""So long an answer of the database stands for it: anybody may ask, and as often as they like."""


@dataclass(slots=True, kw_only=True)
class _Seen:
    """What is known of a request so far, for its line in the log."""

    began: float
    request: str
    principal: Principal | None = None
    repo: str = ""
    bytes_in: int = 0
    kind: str = ""


class TeamApi:
    def __init__(self, app: AppState, meters: ServerMetrics) -> None:
        self._app, self._meters = app, meters
        self.gate = AccessControl(app)
        self._ready_until = timedelta()
        self._prefix, self._numbers = secrets.token_hex(4), count()

    def make_app(self) -> Starlette:
        from starlette.applications import Starlette

        paths: dict[str, list[Operation]] = {}
        for operation in OPERATIONS:
            paths.setdefault(operation.path, []).append(operation)
        return Starlette(
            routes=[self._route(path, operations) for path, operations in paths.items()],
            exception_handlers={404: self._missing, 405: self._missing},
        )

    def _route(self, path: str, operations: list[Operation]) -> Route:
        """One for all methods of a path, so that a refused method is answered with all that there are."""
        from starlette.routing import Route

        served = {one.method: one for one in operations}

        async def serve(request: Request) -> Response:
            return await self._serve(served[cast("Method", request.method)], request)

        route = Route(path, serve, methods=list(served))
        route.methods = set(served)  # without HEAD, which Starlette adds to GET
        return route

    async def _serve(self, operation: Operation, request: Request) -> Response:
        seen = _Seen(began=time.perf_counter(), request=f"{self._prefix}{next(self._numbers):08x}")
        try:
            response = _respond(await self._perform(operation, request, seen))
        except ApiError as refusal:
            seen.kind = refusal.kind
            response = _refuse(refusal)
        if _has_two_lengths(request):
            response.headers["connection"] = "close"
        return self._counted(operation, seen, response)

    async def _perform(self, operation: Operation, request: Request, seen: _Seen) -> ApiResponse:
        try:
            if operation.name in ("is_alive", "is_ready", "metrics"):
                return await self._tell_health(operation.name)
            return await self._carry_out(operation, request, seen)
        except ApiError:
            raise
        except RightsChanged as error:  # again and again while one request was under way
            raise ApiError(
                status=503,
                kind="not ready",
                message="the rights of this token are being changed",
                advice="send the same again",
                retry=True,
                retry_after_seconds=RETRY_SECONDS,
            ) from error
        except InputError as error:
            raise ApiError(
                status=422, kind="bad request", message=str(error)[:500], advice="correct the request"
            ) from error
        except DatabaseFailed as error:
            self._meters.log_event("database failed", error=str(error)[:500], request=seen.request)
            raise ApiError(
                status=503,
                kind="not ready",
                message="the database does not answer; what was asked for may have been done or not",
                advice="send the same again: a commit with the same id is applied once",
                retry=True,
                retry_after_seconds=RETRY_SECONDS,
            ) from error
        except Exception as error:
            # Where, and no more: what an error says may be somebody's text.
            frames = traceback.extract_tb(error.__traceback__)[-4:]
            where = " < ".join(f"{one.filename.rpartition('/')[2]}:{one.lineno}" for one in reversed(frames))
            self._meters.log_event("bug", error=type(error).__name__, where=where, request=seen.request)
            raise ApiError(
                status=500,
                kind="server",
                message="the server has a bug",
                advice=f"report it, with the request id {seen.request}",
            ) from error

    async def _carry_out(self, operation: Operation, request: Request, seen: _Seen) -> ApiResponse:
        address = request.client.host if request.client else ""
        if _has_two_lengths(request):
            raise ApiError(
                status=400,
                kind="bad request",
                message="the request has Content-Length and Transfer-Encoding",
                advice="send one",
            )
        authorization, verb = _read_authorization(request), operation.verb
        if verb is None:
            self.gate.admit_stranger(address)
        else:
            seen.principal = await self.gate.admit(authorization, address, verb)
        if operation.name in RARE_OPERATIONS:
            self.gate.check_rare(seen.principal.org if seen.principal else address)
        if operation.needs_repo:
            seen.repo = _read_repo(request)
        body: object = None
        if operation.takes is not None:
            raw = await self._read_body(operation, request)
            seen.bytes_in = len(raw)
            body = _decode(raw, operation.takes)
        call = ApiRequest(
            principal=seen.principal,
            repo=seen.repo,
            query=request.query_params,
            headers=request.headers,
            path_params=request.path_params,
            body=body,
            raw_bytes=seen.bytes_in,
        )
        async with self._app.acquire_slot(seen.principal.org if seen.principal else ""):
            for _ in range(RIGHTS_TRIES):
                try:
                    return await ENDPOINTS[operation.name](self._app, call)
                except RightsChanged:
                    if verb is None:
                        raise
                    seen.principal = await self.gate.admit_again(authorization, address, verb)
                    call = replace(call, principal=seen.principal)
            raise RightsChanged

    async def _read_body(self, operation: Operation, request: Request) -> bytes:
        from starlette.requests import ClientDisconnect

        kind = request.headers.get("content-type", _JSON).partition(";")[0].strip().lower()
        if kind != _JSON:
            raise ApiError(
                status=415,
                kind="unsupported",
                message=f"{kind[:80]!r} is not read here",
                advice=f"send {_JSON}",
            )
        limit = self._app.limits.raw_bytes if operation.needs_repo else MAX_SMALL_BODY_BYTES
        try:
            async with asyncio.timeout(BODY_TIME.total_seconds()):
                raw = await read_capped(request.stream(), limit)
        except ClientDisconnect as error:  # nobody hears this; the log and the figures do
            raise ApiError(
                status=400, kind="cut off", message="the body ended before its end", advice="send it again"
            ) from error
        except TimeoutError as error:
            raise ApiError(
                status=408,
                kind="cut off",
                message=f"the body took longer than {BODY_TIME.seconds} s",
                advice="send less at a time",
            ) from error
        return inflate(raw, request.headers.get("content-encoding", "").strip().lower(), limit)

    async def _tell_health(self, name: str) -> ApiResponse:
        if name == "metrics":
            return ApiResponse(self._meters.exposition(self._app.waiting))
        now = self._app.clock.uptime()
        if name == "is_ready" and now >= self._ready_until:
            await self._app.read(None, lambda tx: tx.rows("SELECT 1 FROM meta"))
            self._ready_until = now + READY_TTL
        return ApiResponse(messages.HealthTold("ok"))

    async def _missing(self, request: Request, error: Exception) -> Response:
        seen = _Seen(began=time.perf_counter(), request=f"{self._prefix}{next(self._numbers):08x}")
        if getattr(error, "status_code", 404) == 405:
            refusal = ApiError(
                status=405,
                kind="method",
                message=f"{request.method[:20]} is not for this path",
                advice="see docs/openapi.json",
            )
        else:
            refusal = make_not_found("such path")
        seen.kind = refusal.kind
        response = _refuse(refusal)
        allowed = cast("Mapping[str, str] | None", getattr(error, "headers", None))
        response.headers.update(allowed or {})
        return self._counted(None, seen, response)

    def _counted(self, operation: Operation | None, seen: _Seen, response: Response) -> Response:
        who = seen.principal
        self._meters.count(
            RequestLogEntry(
                at=format_ms_time(self._app.now_ms),
                operation=operation.name if operation else "",
                status=response.status_code,
                kind=seen.kind,
                milliseconds=round((time.perf_counter() - seen.began) * 1000, 2),
                bytes_in=seen.bytes_in,
                bytes_out=len(response.body),
                org=who.org if who else "",
                member=who.member if who else "",
                token=who.token if who else "",
                repo=seen.repo,
                request=seen.request,
            )
        )
        if who is not None:
            self.gate.charge(who, seen.bytes_in, len(response.body))
        response.headers["x-request-id"] = seen.request
        return response


def _has_two_lengths(request: Request) -> bool:
    """A proxy may go by the other one, and what it takes for the body be a request here."""
    return "content-length" in request.headers and "transfer-encoding" in request.headers


def _read_authorization(request: Request) -> str:
    """`ApiError` 400 where there are several: a proxy may have checked another one than is read here."""
    found = request.headers.getlist("authorization")
    if len(found) > 1:
        raise ApiError(
            status=400,
            kind="bad request",
            message=f"the request has {len(found)} Authorization headers",
            advice="send one",
        )
    return found[0] if found else ""


_NO_REPO = "the request names no repository"


def _read_repo(request: Request) -> str:
    """`ApiError` 400 where there are several: a proxy may have checked another one than is read here."""
    named = request.query_params.getlist("repo")
    if len(named) != 1 or not named[0]:
        raise ApiError(
            status=400,
            kind="bad request",
            message=f"the request names {len(named)} repositories" if any(named) else _NO_REPO,
            advice="add ?repo=ID",
        )
    if not REPO_ID.fullmatch(named[0]):
        raise make_not_found("such repository")
    return named[0]


def _decode(raw: bytes, kind: type) -> object:
    import msgspec

    try:
        return cast("object", msgspec.json.decode(raw, type=kind))
    except msgspec.ValidationError as error:
        raise ApiError(
            status=422,
            kind="bad request",
            message=f"the JSON does not fit: {error}",
            advice="see docs/openapi.json",
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(
            status=400,
            kind="bad request",
            message=f"the body is no JSON: {error}",
            advice=f"send {_JSON} in UTF-8",
        ) from error


def _respond(answer: ApiResponse) -> Response:
    import msgspec
    from starlette.responses import Response

    headers = {"cache-control": "no-store"}
    if answer.etag is not None:
        headers = {"cache-control": "no-cache", "etag": f'"{answer.etag}"'}
    if answer.body is None:
        return Response(None, answer.status, headers)
    if isinstance(answer.body, str):
        return Response(answer.body, answer.status, headers, "text/plain; version=0.0.4; charset=utf-8")
    return Response(msgspec.json.encode(answer.body), answer.status, headers, _JSON)


def _refuse(refusal: ApiError) -> Response:
    import msgspec
    from starlette.responses import Response

    headers = {"cache-control": "no-store", **refusal.headers()}
    return Response(msgspec.json.encode(refusal.body()), refusal.status, headers, _JSON)
