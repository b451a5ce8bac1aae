"""The files that the page loads: its own, and the parts that it shares with the page of `sevenfold replay`.

The replay page is one file with all its scripts in it, so its scripts are plain and not modules. Here they
are one module, `parts.js`, that exports what they define.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files

from sevenfold.core import __version__

SHARED_SCRIPTS = (
    *("figures.js", "nodes.js", "tooltip.js", "bars.js", "tables.js", "scales.js", "marks.js"),
    *("plot.js", "sessions.js"),
)
SHARED_STYLES = ("colours.css", "page.css", "parts.css", "sessions.css", "screens.css")
OWN_STYLES = ("ui.css",)
OWN_SCRIPTS = (
    *("arrive.js", "main.js", "api.js", "sessions.js", "conversation.js"),
    *("memories.js", "background.js"),
)

_DEFINED = re.compile(r"^(?:async )?(?:function|class|const) ([A-Za-z_]\w*)", re.MULTILINE)
_SCRIPT, _STYLE, _ICON = "text/javascript; charset=utf-8", "text/css; charset=utf-8", "image/svg+xml"

ICON = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" '
    b'fill="#0f6b66"/><path d="M3.5 12V9h2v3zm3.5 0V6h2v6zm3.5 0V4h2v8z" fill="#fff"/></svg>'
)


@dataclass(frozen=True, slots=True)
class PageFile:
    kind: str
    """Its media type."""
    content: bytes


@cache
def read_page_files() -> dict[str, PageFile]:
    """Every file below `/assets/`, by name."""
    shared = _read("sevenfold.replay.page", SHARED_SCRIPTS)
    names = ", ".join(dict.fromkeys(_DEFINED.findall(shared)))
    styles = _read("sevenfold.replay.page", SHARED_STYLES) + _read("sevenfold.ui", OWN_STYLES)
    found = {
        "parts.js": PageFile(_SCRIPT, f"{shared}\nexport {{ {names} }};\n".encode()),
        "page.css": PageFile(_STYLE, styles.encode()),
        "icon.svg": PageFile(_ICON, ICON),
    }
    own = {name: PageFile(_SCRIPT, _read("sevenfold.ui", [name]).encode()) for name in OWN_SCRIPTS}
    return found | own


def render_shell(project: str) -> bytes:
    """The page itself, without any data: its scripts fetch that."""
    shell = _read("sevenfold.ui", ["index.html"])
    for name, value in (("project", project), ("version", __version__)):
        shell = shell.replace(f"{{{{{name}}}}}", escape(value))
    return shell.encode("utf-8", "replace")


def render_arrival(run_key: str) -> bytes:
    """What a link leads to: it puts the key of the run into the browser's storage and opens the page."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Sevenfold</title>'
        f'<meta name="sevenfold-run" content="{escape(run_key)}">'
        '<script type="module" src="/assets/arrive.js"></script></head>'
        "<body><noscript>This page needs scripts; they all come from this machine.</noscript></body></html>"
    ).encode()


def _read(package: str, names: Iterable[str]) -> str:
    folder = files(package) / "assets"
    return "".join((folder / name).read_text(encoding="utf-8") for name in names)
