"""A call of the page as a value, and the table of what can be called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sevenfold.core.errors import InputError

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
