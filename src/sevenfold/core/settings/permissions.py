"""Permissions as settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, cast

from sevenfold.core.settings import choice, rules

PermissionMode: TypeAlias = Literal["ask", "accept-edits", "plan", "read-only", "bypass"]


PERMISSION_MODES: tuple[PermissionMode, ...] = ("ask", "accept-edits", "plan", "read-only", "bypass")


@dataclass(frozen=True, slots=True)
class PermissionSettings:
    SECTION: ClassVar[str] = "permissions"

    mode: str = choice("ask", *PERMISSION_MODES)
    """The mode that a session starts in: asking costs a key press, and not asking can cost a day's work."""

    allow: tuple[str, ...] = rules(is_strict=False)
    """Calls that nobody is asked for. Empty: what is safe to allow depends on the project."""

    ask: tuple[str, ...] = rules(is_strict=True)
    """Calls that are asked for in every mode. Empty: the mode knows what to ask for."""

    deny: tuple[str, ...] = rules(is_strict=True)
    """Calls that are refused in every mode, whatever allows them. Empty: nothing is bad for everybody."""

    @property
    def start_mode(self) -> PermissionMode:
        return cast("PermissionMode", self.mode)
