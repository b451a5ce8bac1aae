"""From what a model calls a file to the file that was allowed."""

from __future__ import annotations

import os
from pathlib import Path

from sevenfold.core.errors import AccessDenied, InputError
from sevenfold.core.json import JsonObject
from sevenfold.core.json_fields import get_string
from sevenfold.core.tool_context import ToolContext
from sevenfold.store.files.keys import check_path
from sevenfold.store.files.user_files import resolve_path

FILE_PATH_SCHEMA = {
    "type": "string",
    "description": "The file: absolute, or relative to the working directory.",
}


def resolve_asked_path(given: JsonObject, key: str, place: ToolContext, default: str | None = None) -> str:
    """The path that a call names, made absolute and otherwise as it stands: links and `..` are kept."""
    text = get_string(given, key, default)
    if not text:
        raise InputError(f"{key} is empty; name a file")
    check_path(text)
    home = place.environ.get("HOME", "")
    if home and (text == "~" or text.startswith("~/")):
        return home + text[1:]
    return os.path.join(place.cwd, text)


def allowed_path(asked: str, place: ToolContext) -> str:
    """Where the path leads now; refused unless that is what was allowed."""
    real = resolve_path(asked)
    if place.admitted is not None:
        if real not in place.admitted:
            raise AccessDenied(
                f"{asked} leads to {real}, which is not what was allowed; it was changed meanwhile: try again"
            )
        return real
    folders = [place.root, place.cwd, *([place.session_folder] if place.session_folder else [])]
    if not any(Path(real).is_relative_to(folder) for folder in folders):
        raise AccessDenied(
            f"{asked} leads to {real}, outside {place.root}; only files in there are used here"
        )
    return real


def display_path(real: str, place: ToolContext) -> str:
    """The path as a person would say it: relative where it lies in the working directory."""
    path = Path(real)
    return str(path.relative_to(place.cwd)) if path.is_relative_to(place.cwd) else real
