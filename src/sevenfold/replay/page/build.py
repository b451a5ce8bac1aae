"""Builds the page from template, styles, scripts and payload, and writes it to a path that the user gives."""

from __future__ import annotations

import json
import os
import secrets
from base64 import b64encode
from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from string import Template

from sevenfold.core.errors import InputError
from sevenfold.core.os_errors import map_os_errors
from sevenfold.replay.page.payload import describe_page
from sevenfold.replay.report import ReplayReport

PAGE_SCRIPTS = (
    *("figures.js", "nodes.js", "tooltip.js", "bars.js", "tables.js", "scales.js", "marks.js"),
    *("plot.js", "sessions.js", "breaks.js", "contents.js", "overview.js", "about.js", "main.js"),
)
"""In order: each uses only what stands before it."""
PAGE_STYLES = ("colours.css", "page.css", "parts.css", "sessions.css", "screens.css")
"""In order: a later rule of the same weight wins."""

_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def build_page(report: ReplayReport, *, made_at: datetime, remarks: Iterable[str] = ()) -> str:
    """One page of HTML with everything in it. What the report quotes is in it as data and nowhere else."""
    style, script = _assets(PAGE_STYLES), _assets(PAGE_SCRIPTS)
    payload = describe_page(report, made_at=made_at, remarks=remarks)
    return Template(_asset("template.html")).substitute(
        policy=_policy(style, script), style=style, script=script, payload=escape_html_json(payload)
    )


def escape_html_json(value: object) -> str:
    """JSON that ends no element and begins none, wherever in HTML it stands. ASCII, so that a name that is no
    Unicode text can be in it too."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def _policy(style: str, script: str) -> str:
    """Our own style and script by their digest: anything else, even inline, a browser refuses."""
    return "; ".join(
        [
            "default-src 'none'",
            f"style-src {_source(style)}",
            f"script-src {_source(script)}",
            "img-src data:",  # the icon
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _assets(names: Iterable[str]) -> str:
    return "".join(map(_asset, names))


def _asset(name: str) -> str:
    return (files("sevenfold.replay.page") / "assets" / name).read_text(encoding="utf-8")


# The path is chosen by the user, so these are plain files outside the store.

PAGE_OPENING = b"<!doctype html>"
"""Of every page. Only what begins so, or is empty, is written over: a transcript named by mistake is not."""


def resolve_page_path(path: Path) -> Path:
    """Where a page of that name would go, links followed."""
    try:
        target = path.expanduser().resolve()
        if target.is_dir():
            raise InputError(f"--html {str(path)!r} is a folder; name a file in it, such as replay.html")
        if target.exists() and not target.is_file():
            raise InputError(f"--html {str(path)!r} is no plain file; name one, such as replay.html")
        if not target.parent.is_dir():
            raise InputError(
                f"--html {str(path)!r}: the folder {str(target.parent)!r} does not exist; make it first"
            )
        if target.exists() and not _is_page(target):
            raise InputError(
                f"--html {str(path)!r} is there and is no page, so it is not written over; "
                "name the page to write, such as replay.html"
            )
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a NUL in the name, ~nobody
        raise InputError(f"--html {str(path)!r} cannot be used: {error}") from error
    return target


def write_page(path: Path, page: str) -> Path:
    """Put the page there, whole or not at all; where it went."""
    target = resolve_page_path(path)
    draft = target.with_name(f".sevenfold-{secrets.token_hex(8)}.tmp")
    with map_os_errors(f"write the page {str(target)!r}"):
        try:
            with draft.open("x", encoding="utf-8", newline="\n") as file:
                file.write(page)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                draft.chmod(target.stat().st_mode & 0o777)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    return target


def _is_page(target: Path) -> bool:
    with target.open("rb") as file:
        beginning = file.read(len(PAGE_OPENING))
    return not beginning or beginning.lower() == PAGE_OPENING
