"""Text that is safe to send or show: without lone surrogates, fenced where it is not ours, and cut to a size.

A string may hold half of a surrogate pair, from a tool that cut its output within a character or from
escaped JSON. No provider accepts that. A fence marks foreign text in a prompt so that the text cannot end it;
a reminder is what we say ourselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


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
    # Escapes for a terminal are needed by every command, fences by few.
    import hashlib

    whole = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    size = 8
    while size < len(whole) and whole[:size] in text:
        size += 8
    return whole[:size]


def _quoted(label: str) -> str:
    return label.replace("&", "&amp;").replace('"', "&quot;").replace("\n", "&#10;")


def _unquoted(label: str) -> str:
    return label.replace("&#10;", "\n").replace("&quot;", '"').replace("&amp;", "&")


# Text cut to a number of bytes, lines or tokens, and escaped for a terminal.
def truncate_bytes(text: str, max_bytes: int) -> str:
    """As much of the beginning of `text` as fits in `max_bytes` of UTF-8."""
    max_bytes = max(0, max_bytes)
    # No character takes less than a byte, so what lies beyond cannot fit and need not be encoded.
    data = text[:max_bytes].encode("utf-8", "surrogatepass")
    if len(data) <= max_bytes:
        return text[:max_bytes]
    end = max_bytes
    while end > 0 and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end].decode("utf-8", "surrogatepass")


def truncate_lines(text: str, max_bytes: int) -> str:
    """The same, ending with a whole line unless that would lose half of what fits."""
    kept = truncate_bytes(text, max_bytes)
    if len(kept) == len(text):
        return text
    end = kept.rfind("\n")
    return kept[: end + 1] if end + 1 > len(kept) // 2 else kept


REMINDER_TAG = "system-reminder"


def render_reminder(text: str) -> str:
    """A remark of the program's own, in words that it chose."""
    return f"<{REMINDER_TAG}>\n{text}\n</{REMINDER_TAG}>"


def escape_reminder_tags(text: str) -> str:
    """The text with no tag in it that would end or begin a reminder: what is ours is said by us alone."""
    return re.sub(rf"<(?=[\s/]*{REMINDER_TAG})", "&lt;", text, flags=re.IGNORECASE)


def escape_controls(text: str) -> str:
    """Without what would move a cursor or change a colour: such characters are spelled out instead."""
    if text.isprintable():
        return text
    return "".join(
        item if _is_shown(item) or _is_joiner(text, at) else repr(item)[1:-1] for at, item in enumerate(text)
    )


_NON_JOINER, _JOINER = "\u200c", "\u200d"
_JOINED_LETTERS = (("\u0600", "\u06ff"), ("\u0750", "\u077f"), ("\u0900", "\u0dff"))
"""Of Arabic, Persian, Urdu and the scripts of India, which are not written without joiners. Compiled to a
pattern they would take as long as a module to load."""


def _is_joiner(text: str, at: int) -> bool:
    """Whether a character that is not seen itself shapes what is: within an emoji, or between two letters of
    a script that needs it. Anywhere else it would only hide something."""
    if text[at] not in (_NON_JOINER, _JOINER) or not 0 < at < len(text) - 1:
        return False
    before, after = text[at - 1], text[at + 1]
    if _is_joined_letter(before) and _is_joined_letter(after):
        return True
    return text[at] == _JOINER and _is_emoji(before) and _is_emoji(after)


def _is_joined_letter(item: str) -> bool:
    return any(first <= item <= last for first, last in _JOINED_LETTERS)


def _is_emoji(item: str) -> bool:
    from unicodedata import category

    return item == "\ufe0f" or "\U0001f3fb" <= item <= "\U0001f3ff" or category(item) == "So"


def _is_shown(item: str) -> bool:
    if item.isprintable() or item == "\n":
        return True
    from unicodedata import category

    # Wide and unbreakable spaces are no controls, and text in several languages needs them.
    return category(item) == "Zs"


_PAINT = re.compile(r"(\x1b\[(?!0*8(?:;|m))[\d;]*m)")
"""Colours, but not the one that hides text: nothing of ours has it."""


def escape_painted(text: str) -> str:
    """The same for text that we have coloured: colours stay, and nothing else that a terminal obeys.

    Text of others has to be escaped before it is coloured, since it could bring colours that hide it.
    """
    parts = _PAINT.split(text)
    return "".join(part if at % 2 else escape_controls(part) for at, part in enumerate(parts))


def escape_json(text: str) -> str:
    """JSON of the same value in which nothing hides and nothing is obeyed by a terminal.

    JSON itself escapes the ASCII controls; this does the same with every other character that is not shown.
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(item if _is_shown(item) else _spell_json(item) for item in text)


def quote_name(name: str) -> str:
    """A file's name on one line of a listing: as it is, or as a JSON string where it holds a line break or
    another character that is not shown. No name can pass for two, or for a line that is no name."""
    is_plain = all(_is_shown(item) and item != "\n" for item in name) and not name.startswith(('"', "["))
    return name if is_plain else escape_json(json.dumps(name, ensure_ascii=False))


def _spell_json(item: str) -> str:
    units = item.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


CountTokens: TypeAlias = Callable[[str], int]
"""Tokens of a text."""


def truncate_tokens(text: str, max_tokens: int, count: CountTokens) -> str:
    """As much of the beginning as has about that many tokens, in whole lines."""
    tokens = count(text)
    if tokens <= max_tokens:
        return text
    size = len(text.encode("utf-8", "surrogatepass"))
    return truncate_lines(text, size * max(0, max_tokens) // tokens)
