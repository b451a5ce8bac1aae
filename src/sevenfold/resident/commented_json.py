"""JSON with comments and trailing commas, as some agents read it.

One entry of one table is added and removed in place, so that everything else stays as it was written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

_PARTS = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = re.compile(r'"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])')
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class _Member:
    """One of an object, by where it stands in the text."""

    key: str
    start: int
    value: int
    end: int


def has_comments(text: str) -> bool:
    """Whether it is JSON without its comments and trailing commas, and not with them."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        try:
            json.loads(blank_comments(text))
        except (ValueError, RecursionError):
            return False
        return True
    return False


def blank_comments(text: str) -> str:
    """The same text as plain JSON, each character where it was."""
    plain = _PARTS.sub(lambda found: found[0] if found[0][0] == '"' else _blank(found[0]), text)
    return _TRAILING.sub(lambda found: found[0] if found[0][0] == '"' else " ", plain)


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def add_json_entry(text: str, table: str, name: str, entry: Mapping[str, object]) -> str:
    """The text with the entry as the first one of the table, instead of one of that name."""
    if json.loads(blank_comments(text)).get(table, {}).get(name) == entry:
        return text
    text = remove_json_entry(text, table, name)
    plain, start = blank_comments(text), find_object(text)
    found = next((one for one in _list_members(plain, start) if one.key == table), None)
    indent = re.search(r"\n([ \t]+)\S", plain)
    step = indent[1] if indent else "  "
    if found is None:
        return _insert(text, plain, start, f"{json.dumps(table)}: {_render({name: entry}, step, 1)}", step)
    added = f"{json.dumps(name)}: {_render(entry, step, 2)}"
    return _insert(text, plain, found.value, added, step * 2)


def remove_json_entry(text: str, table: str, name: str) -> str:
    """The text without the entry, and without the table if nothing else was in it."""
    plain, start = blank_comments(text), find_object(text)
    found = next((one for one in _list_members(plain, start) if one.key == table), None)
    if found is None or plain[found.value] != "{":
        return text
    members = _list_members(plain, found.value)
    own = next((one for one in members if one.key == name), None)
    if own is None:
        return text
    if len(members) > 1 or text[found.value : own.start].strip("{ \t\r\n") or _has_more(text, own.end):
        return _cut(text, own)
    return _cut(text, found)


def find_object(text: str) -> int:
    """Where the object begins."""
    return blank_comments(text).index("{")


def _has_more(text: str, end: int) -> bool:
    """Whether a comment follows before the table ends."""
    return re.match(r",?\s*\}", text[end:]) is None


def _list_members(plain: str, start: int) -> list[_Member]:
    members: list[_Member] = []
    at = _skip(plain, start + 1)
    while plain[at] != "}":
        key, end = _DECODER.raw_decode(plain, at)
        value = _skip(plain, _skip(plain, end) + 1)
        _, after = _DECODER.raw_decode(plain, value)
        members.append(_Member(str(key), at, value, after))
        at = _skip(plain, after)
        if plain[at] == ",":
            at = _skip(plain, at + 1)
    return members


def _skip(plain: str, at: int) -> int:
    while plain[at].isspace():
        at += 1
    return at


def _insert(text: str, plain: str, brace: int, added: str, indent: str) -> str:
    """A member as the first one of an object, on a line of its own."""
    head, rest = text[: brace + 1], text[brace + 1 :]
    is_last = plain[_skip(plain, brace + 1)] == "}"
    if is_last and re.match(r"[ \t]*\}", rest):
        rest = "\n" + indent[: len(indent) // 2 if len(head.strip()) > 1 else 0] + rest.lstrip(" \t")
    shown = f"\n{indent}{added}{'' if is_last else ','}"
    if "\r\n" in text:
        shown = shown.replace("\n", "\r\n")
    return head + shown + rest


def _render(value: object, step: str, depth: int) -> str:
    shown = json.dumps(value, ensure_ascii=False, indent=step)
    return shown.replace("\n", f"\n{step * depth}")


def _cut(text: str, own: _Member) -> str:
    """Without a member, the space before it, and the comma that parts it from another."""
    start = len(text[: own.start].rstrip())
    following = re.match(r"\s*,", text[own.end :])
    if following is not None:
        return text[:start] + text[own.end + following.end() :]
    return text[: start - (text[start - 1] == ",")] + text[own.end :]
