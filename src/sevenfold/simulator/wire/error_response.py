"""How a request is refused: one value for every error the API can answer with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from sevenfold.core.json import EMPTY_OBJECT, JsonObject

ERROR_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""The type that stands in the body of each status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorResponse:
    """An error answer, before it is written down."""

    status: int
    message: str
    code: str | None = None
    """`error.details.error_code`, the part that clients are told to branch on."""
    details: JsonObject = EMPTY_OBJECT
    """What else stands beside the code."""
    retry_after: timedelta | None = None
    should_retry: bool | None = None
    """`x-should-retry`: overrules what a client makes of the status."""

    @property
    def kind(self) -> str:
        return ERROR_TYPES.get(self.status, "api_error" if self.status >= 500 else "invalid_request_error")

    def body(self, request_id: str) -> JsonObject:
        """The wire form."""
        error: dict[str, JsonObject | str] = {"type": self.kind, "message": self.message}
        if self.code is not None:
            error["details"] = JsonObject({"error_code": self.code, **self.details})
        return JsonObject({"type": "error", "error": JsonObject(error), "request_id": request_id})

    def headers(self) -> dict[str, str]:
        told: dict[str, str] = {}
        if self.retry_after is not None:
            # Whole seconds are all that the header can say; SDKs look at the finer one first.
            told["retry-after"] = str(self.retry_after // timedelta(seconds=1))
            if self.retry_after % timedelta(seconds=1):
                told["retry-after-ms"] = str(self.retry_after // timedelta(milliseconds=1))
        if self.should_retry is not None:
            told["x-should-retry"] = "true" if self.should_retry else "false"
        return told


class RequestRefused(Exception):
    """Unwinds a request to the front, which writes the problem down. No caller of the package meets it."""

    def __init__(self, problem: ErrorResponse) -> None:
        super().__init__(problem.message)
        self.problem = problem


def make_invalid_request(
    message: str, code: str | None = None, details: JsonObject = EMPTY_OBJECT
) -> RequestRefused:
    """A request that breaks a rule of the contract."""
    return RequestRefused(ErrorResponse(status=400, message=message, code=code, details=details))
