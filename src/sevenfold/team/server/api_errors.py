"""What the server says when it does not do what was asked: one shape, with the next thing to try."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

ApiErrorKind: TypeAlias = Literal[
    "bad request",
    "commit reused",
    "conflict",
    "cut off",
    "exists",
    "expired",
    "forbidden",
    "key",
    "method",
    "missing",
    "not found",
    "not ready",
    "pending",
    "quota",
    "rate",
    "secret",
    "server",
    "stale",
    "too large",
    "unauthorised",
    "unsupported",
]

ErrorExtra: TypeAlias = "int | list[str] | Mapping[str, object]"


@dataclass(eq=False, kw_only=True)  # not frozen: Python itself writes the traceback into it
class ApiError(Exception):
    """Raised where it is found, answered in one place. It never holds a body, a token or a secret."""

    status: int
    kind: ApiErrorKind
    message: str
    advice: str
    retry: bool = False
    """Whether the same request may succeed later."""
    retry_after_seconds: int | None = None
    extras: Mapping[str, ErrorExtra] = field(default_factory=dict[str, ErrorExtra])

    def body(self) -> dict[str, object]:
        error = {"kind": self.kind, "message": self.message, "try": self.advice, "retry": self.retry}
        return {"error": error, **self.extras}

    def headers(self) -> dict[str, str]:
        headers = {"www-authenticate": "Bearer"} if self.status == 401 else {}
        if self.status == 408:
            headers["connection"] = "close"  # what comes late is not waited for
        if self.retry_after_seconds is not None:
            headers["retry-after"] = str(self.retry_after_seconds)
        return headers


def make_not_found(what: str) -> ApiError:
    """The same words for what is not there and for what is somebody else's."""
    return ApiError(
        status=404,
        kind="not found",
        message=f"there is no {what}",
        advice="list what your organisation has: GET /api/v1/repos",
    )
