"""JSON with comments and trailing commas, as some agents read it.

One entry of one table is added and removed in place, so that everything else stays as it was written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sevenfold.core.errors import InputError

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
    return _TRAILING.sub(lambda found: found[0] if found[0][0] == '"' else " ", _blank_comments(text))


def _blank_comments(text: str) -> str:
    """With its trailing commas."""
    return _PARTS.sub(lambda found: found[0] if found[0][0] == '"' else _blank(found[0]), text)


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def add_json_entry(text: str, table: str, name: str, entry: Mapping[str, object]) -> str:
    """The text with the entry as the first one of the table, instead of one of that name.

    What is added can be taken out again so that not a byte is different.
    """
    if _parse(text).get(table, {}).get(name) == entry:
        return text
    text = remove_json_entry(text, table, name)
    plain, start = blank_comments(text), find_object(text)
    found = _find_member(plain, start, table)
    step = _find_step(plain)
    if found is None:
        added = _insert(text, plain, start, _render_table(table, {name: entry}, step), f"\n{step}")
    else:
        shown = f"{json.dumps(name)}: {_render(entry, step, 2)}"
        # By this form `remove_json_entry` tells a table that was empty from one that came with the entry.
        is_empty = re.match(r"\{\s*\}", text[found.value :]) is not None
        added = _insert(text, plain, found.value, shown, "" if is_empty else f"\n{step * 2}")
    others = _parse(text)
    _check(added, {**others, table: {**others.get(table, {}), name: entry}}, table, name)
    return added


def remove_json_entry(text: str, table: str, name: str) -> str:
    """The text without the entry, and without the table if that came with it."""
    plain, start = blank_comments(text), find_object(text)
    found = _find_member(plain, start, table)
    if found is None or plain[found.value] != "{":
        return text
    own = _find_member(plain, found.value, name)
    if own is None:
        return text
    config = _parse(text)
    entries = {key: value for key, value in config[table].items() if key != name}
    step = text[text.rfind("\n", 0, found.start) + 1 : found.start]
    whole = _match_line_ends(_render_table(table, config[table], step), text)
    if text[found.start : found.end] == whole and not entries and step and step.isspace():
        removed = _cut(text, found)
        del config[table]
    else:
        removed = _cut(text, own)
        config[table] = entries
    _check(removed, config, table, name)
    return removed


def _parse(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(blank_comments(text))
    return found


def _check(text: str, expected: Mapping[str, object], table: str, name: str) -> None:
    """Nothing may be written that holds anything else than it should."""
    try:
        is_right = _parse(text) == expected
    except ValueError:
        is_right = False
    if not is_right:
        raise InputError(
            f"{table}.{name} cannot be changed in place, perhaps because {table} or {name} is there twice; "
            "nothing was changed. Change it by hand"
        )


def find_object(text: str) -> int:
    """Where the object begins."""
    return blank_comments(text).index("{")


def _find_member(plain: str, start: int, key: str) -> _Member | None:
    """The one that counts: the last of that name."""
    return next((one for one in reversed(_list_members(plain, start)) if one.key == key), None)


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


def _insert(text: str, plain: str, brace: int, added: str, lead: str) -> str:
    """A member as the first one of an object, directly behind the brace."""
    is_last = plain[_skip(plain, brace + 1)] == "}"
    shown = _match_line_ends(f"{lead}{added}{'' if is_last else ','}", text)
    return text[: brace + 1] + shown + text[brace + 1 :]


def _find_step(plain: str) -> str:
    """By which the text is indented."""
    indent = re.search(r"\n([ \t]+)\S", plain)
    return indent[1] if indent else "  "


def _render_table(table: str, entries: Mapping[str, object], step: str) -> str:
    """A table of our own, as a member of the outermost object."""
    return f"{json.dumps(table)}: {_render(entries, step, 1)}"


def _render(value: object, step: str, depth: int) -> str:
    shown = json.dumps(value, ensure_ascii=False, indent=step)
    return shown.replace("\n", f"\n{step * depth}")


def _match_line_ends(shown: str, text: str) -> str:
    return shown.replace("\n", "\r\n") if "\r\n" in text else shown


def _cut(text: str, own: _Member) -> str:
    """Without a member, the space before it, and the comma that parts it from another."""
    bare = _blank_comments(text)
    start, end = len(text[: own.start].rstrip()), own.end
    following = re.match(r"\s*,", bare[end:])
    comma = end + following.end() - 1 if following else len(bare[: own.start].rstrip()) - 1
    after = text[end:comma] + text[comma + 1 :] if following else text[end:]
    if bare[start - 1] != text[start - 1] and not re.match(r"[ \t]*\r?\n", after):
        start = own.start  # a comment lies before it, which the next line must not become a part of
    before = text[:start]
    if not following and bare[comma] == ",":
        before = text[:comma] + text[comma + 1 : start]
    return before + after
