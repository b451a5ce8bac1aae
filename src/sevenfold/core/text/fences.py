"""Text in a fence that it cannot close itself, whatever it says: how foreign words stand inside ours."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fence:
    label: str
    text: str


def fence_text(tag: str, text: str, *, label: str = "") -> str:
    """The text between tags whose key does not occur in it. The same text always gets the same fence."""
    key = _key(text)
    named = f' name="{_quoted(label)}"' if label else ""
    return f"<{tag} {key}{named}>\n{text}\n</{tag} {key}>"


def find_fences(tag: str, text: str) -> tuple[Fence, ...]:
    """What stands in the fences of this tag, in order."""
    name = re.escape(tag)
    opening = re.compile(rf'<{name} ([0-9a-f]{{8,64}})(?: name="([^"\n]*)")?>\n')
    found: list[Fence] = []
    at = 0
    while start := opening.search(text, at):
        end = text.find(f"\n</{tag} {start[1]}>", start.end() - 1)
        at = start.end() if end < 0 else end
        if end >= 0:
            found.append(Fence(_unquoted(start[2] or ""), text[start.end() : max(end, start.end())]))
    return tuple(found)


def _key(text: str) -> str:
    whole = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    size = 8
    while size < len(whole) and whole[:size] in text:
        size += 8
    return whole[:size]


def _quoted(label: str) -> str:
    return label.replace("&", "&amp;").replace('"', "&quot;").replace("\n", "&#10;")


def _unquoted(label: str) -> str:
    return label.replace("&#10;", "\n").replace("&quot;", '"').replace("&amp;", "&")
