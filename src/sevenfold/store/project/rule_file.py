"""What a person allowed for always, written where their own settings for the project are.

The file is theirs: a line is added and nothing else moves. What comes out is parsed before it is written, so
that an odd file is left alone rather than broken.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import cast

from sevenfold.core.errors import SettingsError
from sevenfold.store.project.git import read_tracking
from sevenfold.store.project.settings_files import LOCAL_SETTINGS_FILE, MAX_SETTINGS_BYTES
from sevenfold.store.project.trust import TrustStore
from sevenfold.store.project.user_files import FileState, find_file_state, replace_file, resolve_path

_HEADER = re.compile(r"^[ \t]*\[[ \t]*permissions[ \t]*\][ \t]*(?:#.*)?$", re.MULTILINE)
_ALLOW = re.compile(r"^[ \t]*allow[ \t]*=[ \t]*\[", re.MULTILINE)


def add_allow_rule(root: Path, rule: str, trust: TrustStore | None = None) -> Path:
    """Add a rule to `permissions.allow` of the project-local file; the file.

    `SettingsError` where the file cannot be changed with certainty, or would not be trusted with it. Where
    `trust` is kept it goes on to the changed file; one that nobody has agreed to is left alone, as all of it
    would be agreed to by one answer about a rule.
    """
    path = root / LOCAL_SETTINGS_FILE
    real = resolve_path(str(path))
    if not Path(real).is_relative_to(root):
        raise SettingsError(f"{path} leads out of the project, to {real}; add {rule!r} there by hand")
    before = find_file_state(real, max_bytes=MAX_SETTINGS_BYTES)
    if trust is not None and before is not None and not trust.is_trusted(LOCAL_SETTINGS_FILE, before.data):
        raise SettingsError(
            f"nobody has agreed to {path} as it is, so it may not allow anything; agree to it at the next "
            f"start of `sevenfold chat`, or add {rule!r} to permissions.allow in your user file"
        )
    text = _decoded(path, before)
    known = _parsed(path, text)
    if rule in _allowed(known):
        return path
    if (
        read_tracking(root, frozenset({LOCAL_SETTINGS_FILE, LOCAL_SETTINGS_FILE.partition("/")[0]}))
        != "untracked"
    ):
        raise SettingsError(
            f"no git index shows that {path} is yours and not the repository's, so it may not allow "
            f"anything; add {rule!r} to permissions.allow in your user file"
        )
    after = _with_rule(text, known, rule)
    if after is None:
        raise SettingsError(
            f"{path} is written in a way of its own; add {rule!r} to permissions.allow by hand"
        )
    replace_file(real, after.encode(), expected=before, max_bytes=MAX_SETTINGS_BYTES)
    if trust is not None:
        trust.trust(LOCAL_SETTINGS_FILE, after.encode())
    return path


def _with_rule(text: str, known: dict[str, object], rule: str) -> str | None:
    """The text with the rule in it; None where no simple way leads to just that."""
    allowed = [rule, *_allowed(known)]
    table = cast("dict[str, object]", known.get("permissions", {}))
    wanted = {**known, "permissions": {**table, "allow": allowed}}
    spelled = json.dumps(rule, ensure_ascii=False)
    for made in _candidates(text, spelled, is_last=len(allowed) == 1):
        try:
            if tomllib.loads(made) == wanted:
                return made
        except tomllib.TOMLDecodeError:
            continue
    return None


def _candidates(text: str, spelled: str, *, is_last: bool) -> list[str]:
    header = _HEADER.search(text)
    if header is None:
        gap = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
        return [f"{text}{gap}[permissions]\nallow = [{spelled}]\n"]
    array = _ALLOW.search(text, header.end())
    made = [f"{text[: header.end()]}\nallow = [{spelled}]{text[header.end() :]}"]
    if array:
        comma = "" if is_last else ", "
        made.insert(0, f"{text[: array.end()]}{spelled}{comma}{text[array.end() :]}")
    return made


def _decoded(path: Path, state: FileState | None) -> str:
    try:
        return state.data.decode() if state else ""
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8; save it as UTF-8") from error


def _parsed(path: Path, text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(f"{path}: not TOML: {error}; correct it first") from error


def _allowed(known: dict[str, object]) -> list[object]:
    table = known.get("permissions")
    found = cast("dict[str, object]", table).get("allow") if isinstance(table, dict) else None
    return cast("list[object]", found) if isinstance(found, list) else []
