"""Error responses, and functions that read unchecked JSON: the right type of value, or a refusal with its
path.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from sevenfold.core.json import EMPTY_OBJECT, Json, JsonObject

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
        headers: dict[str, str] = {}
        if self.retry_after is not None:
            # Whole seconds are all that the header can say; SDKs look at the finer one first.
            headers["retry-after"] = str(self.retry_after // timedelta(seconds=1))
            if self.retry_after % timedelta(seconds=1):
                headers["retry-after-ms"] = str(self.retry_after // timedelta(milliseconds=1))
        if self.should_retry is not None:
            headers["x-should-retry"] = "true" if self.should_retry else "false"
        return headers


class RequestRefused(Exception):
    """Ends a request with an error response. It never leaves the package."""

    def __init__(self, problem: ErrorResponse) -> None:
        super().__init__(problem.message)
        self.problem = problem


def make_invalid_request(
    message: str, code: str | None = None, details: JsonObject = EMPTY_OBJECT
) -> RequestRefused:
    """A request that breaks a rule of the contract."""
    return RequestRefused(ErrorResponse(status=400, message=message, code=code, details=details))


# Reading unchecked JSON.


def require_field(path: str, holder: JsonObject, key: str) -> Json:
    """A field that must be there."""
    if key not in holder:
        raise make_invalid_request(f"{_under(path, key)}: Field required")
    return holder[key]


def as_object(path: str, value: Json) -> JsonObject:
    if not isinstance(value, JsonObject):
        raise make_invalid_request(f"{path}: Input should be an object")
    return value


def as_list(path: str, value: Json) -> tuple[Json, ...]:
    if not isinstance(value, tuple):
        raise make_invalid_request(f"{path}: Input should be a valid list")
    return value


def as_text(path: str, value: Json) -> str:
    if not isinstance(value, str):
        raise make_invalid_request(f"{path}: Input should be a valid string")
    return value


def as_switch(path: str, value: Json) -> bool:
    if not isinstance(value, bool):
        raise make_invalid_request(f"{path}: Input should be a valid boolean")
    return value


def as_count(path: str, value: Json, at_least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise make_invalid_request(f"{path}: Input should be a valid integer")
    if value < at_least:
        raise make_invalid_request(f"{path}: Input should be greater than or equal to {at_least}")
    return value


def as_one_of(path: str, value: Json, allowed: Collection[str]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise make_invalid_request(f"{path}: Input should be {_either(allowed)}")
    return value


def as_texts(path: str, value: Json) -> tuple[str, ...]:
    return tuple(as_text(f"{path}.{index}", item) for index, item in enumerate(as_list(path, value)))


def as_objects(path: str, value: Json) -> tuple[JsonObject, ...]:
    """A list of objects."""
    found = as_list(path, value)
    return tuple(
        [
            item if isinstance(item, JsonObject) else as_object(f"{path}.{index}", item)
            for index, item in enumerate(found)
        ]
    )


def optional_object(path: str, holder: JsonObject, key: str) -> JsonObject | None:
    """A field that may be absent or null."""
    value = holder.get(key)
    return None if value is None else as_object(_under(path, key), value)


def refuse_extra(path: str, holder: JsonObject, allowed: Collection[str]) -> None:
    for key in holder:
        if key not in allowed:
            raise make_extra_refusal(_under(path, key))


def make_extra_refusal(path: str) -> Exception:
    """What a field is met with that the API does not know, or not without a beta header."""
    return make_invalid_request(f"{path}: Extra inputs are not permitted")


def _under(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _either(words: Iterable[str]) -> str:
    quoted = [f"'{word}'" for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
