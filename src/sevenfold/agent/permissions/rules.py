"""Permission rules as people write them: `edit(src/**)`, `shell(git status)`, `web_fetch(docs.python.org)`.

Rules that deny or ask are matched as widely as possible, rules that allow as narrowly as possible: anything
that a name could refer to counts for the first, only the exact meaning for the second. `add_allow_rule`
writes a rule that a person allowed for good to their own settings for the project.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from sevenfold.agent.permissions.command_patterns import is_wildcard, matches_command, suggest_pattern
from sevenfold.agent.sandbox.folders import fold_name
from sevenfold.agent.tool import AccessRequest
from sevenfold.core.errors import InputError, SettingsError
from sevenfold.core.settings.kinds import RULE_PATTERN
from sevenfold.core.text.globs import expand_braces, matches_parts
from sevenfold.store.project.git import read_tracking
from sevenfold.store.project.settings_files import LOCAL_SETTINGS_FILE, MAX_SETTINGS_BYTES
from sevenfold.store.project.trust import TrustStore
from sevenfold.store.project.user_files import (
    PRIVATE_MASK,
    FileState,
    find_file_state,
    replace_file,
    resolve_path,
)

_OPERATORS = re.compile(r"[;&|<>(){}`$\\\n\r\"'*?\[\]~#!]")
"""With any of these a command can be more than the words it starts with."""
_BREAKS = re.compile(r"[\s;&|<>(){}`$]+")


@dataclass(frozen=True, slots=True)
class PermissionRule:
    tool: str
    """Its name, or a pattern of names: `mcp__github__*`."""
    pattern: str = ""
    """Of paths, commands or hosts, as the tool goes; empty: every call."""

    def __str__(self) -> str:
        return f"{self.tool}({self.pattern})" if self.pattern else self.tool


@dataclass(frozen=True, slots=True)
class PermissionRules:
    """The strongest first: what is denied stays denied."""

    deny: tuple[PermissionRule, ...] = ()
    ask: tuple[PermissionRule, ...] = ()
    allow: tuple[PermissionRule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSubject:
    """One call, as rules look at it."""

    tool: str
    need: AccessRequest
    real: tuple[str, ...]
    """Its paths, links followed."""
    root: Path
    user_home: Path


def parse_permission_rule(text: str) -> PermissionRule:
    """A rule from its text."""
    found = RULE_PATTERN.fullmatch(text.strip())
    if found is None:
        raise InputError(f"{text[:80]!r} is no permission rule; expected a tool, or tool(pattern)")
    pattern = (found[2] or "").strip()
    # As others write them: a prefix with `:*` behind it, a host with `domain:` before it.
    return PermissionRule(found[1], pattern.removesuffix(":*").removeprefix("domain:"))


def parse_permission_rules(
    allow: Iterable[str] = (), ask: Iterable[str] = (), deny: Iterable[str] = ()
) -> PermissionRules:
    return PermissionRules(
        tuple(map(parse_permission_rule, deny)),
        tuple(map(parse_permission_rule, ask)),
        tuple(map(parse_permission_rule, allow)),
    )


def find_possible_rule(rules: Iterable[PermissionRule], case: RuleSubject) -> PermissionRule | None:
    """The first rule that could be meant: for `deny` and `ask`."""
    return next((rule for rule in rules if _names_tool(rule, case) and _is_touched(rule, case)), None)


def find_covering_rule(rules: Iterable[PermissionRule], case: RuleSubject) -> PermissionRule | None:
    """The first rule that covers all of the call: for `allow`."""
    return next((rule for rule in rules if _names_tool(rule, case) and _is_covered(rule, case)), None)


def suggest_rule(case: RuleSubject) -> PermissionRule | None:
    """What to allow so that such a call is not asked for again; None where no rule says it safely."""
    need = case.need
    if need.command:
        return PermissionRule(case.tool, need.command) if need.command.isprintable() else None
    if need.url:
        return PermissionRule(case.tool, parse_host(need.url)) if parse_host(need.url) else None
    match case.real:
        case ():
            return PermissionRule(case.tool)
        case (path,) if not set(path) & set("*?[]{}"):
            # Who may read one file of a folder will want the next one too; an edit is of one file.
            named = f"{Path(path).parent}/**" if need.kind == "read" else path
            return PermissionRule(case.tool, _relative(named, case.root))
        case _:
            return None


def suggest_wider_rule(case: RuleSubject) -> PermissionRule | None:
    """A pattern that covers commands like this one too; None where there is none that says what they do."""
    pattern = suggest_pattern(case.need.command) if case.need.command else None
    return PermissionRule(case.tool, pattern) if pattern else None


def parse_host(url: str) -> str:
    """The host that a URL leads to, in lower case; empty where it has none."""
    try:
        host = (urlsplit(url).hostname or "").rstrip(".").lower()
        return host if host.isascii() else host.encode("idna").decode("ascii")
    except ValueError:
        return ""


def _names_tool(rule: PermissionRule, case: RuleSubject) -> bool:
    """By its name; `read` and `edit` are also what many tools do, and name all of them."""
    is_deed = rule.tool in ("read", "edit") and rule.tool == case.need.kind
    return is_deed or fnmatchcase(case.tool, rule.tool)


def _is_touched(rule: PermissionRule, case: RuleSubject) -> bool:
    if not rule.pattern:
        return True
    if case.need.command:
        return _occurs(_words(rule.pattern), _words(case.need.command))
    if case.need.url:
        host = parse_host(case.need.url)
        return not host or _is_host(rule.pattern, host) or host.endswith(f".{rule.pattern.lower()}")
    paths = dict.fromkeys((*case.need.paths, *case.real))
    return any(_is_path(rule.pattern, path, case, is_wide=True) for path in paths)


def _is_covered(rule: PermissionRule, case: RuleSubject) -> bool:
    if not rule.pattern:
        return True
    if case.need.command:
        return _is_prefix(rule.pattern, case.need.command)
    if case.need.url:
        return _is_host(rule.pattern, parse_host(case.need.url))
    return bool(case.real) and all(_is_path(rule.pattern, path, case, is_wide=False) for path in case.real)


def _is_prefix(pattern: str, command: str) -> bool:
    """The very command, or the same words and more where nothing but words can follow."""
    command = command.strip()
    if command == pattern:
        return True
    if is_wildcard(pattern):
        return matches_command(pattern, command)
    return command.startswith(f"{pattern} ") and not _OPERATORS.search(command)


def _words(command: str) -> list[str]:
    """Every word of a command line, bare: no quotes, no backslashes, programs without their folder."""
    bare = re.sub(r"[\"'\\]", "", command)
    return [word.rpartition("/")[2] or word for word in _BREAKS.split(bare) if word and word != "*"]


def _occurs(wanted: list[str], words: list[str]) -> bool:
    size = len(wanted)
    return any(words[at : at + size] == wanted for at in range(len(words) - size + 1))


def _is_host(pattern: str, host: str) -> bool:
    return bool(host) and fnmatchcase(host, pattern.lower())


def _is_path(pattern: str, path: str, case: RuleSubject, *, is_wide: bool) -> bool:
    """Whether a pattern names this path or a folder above it."""
    return any(_is_below(one, path, case, is_wide=is_wide) for one in expand_braces(pattern))


def _is_below(pattern: str, path: str, case: RuleSubject, *, is_wide: bool) -> bool:
    names = _pattern_parts(pattern, case)
    parts = list(Path(path).parts[1:])
    if is_wide:
        names, parts = [_fold_pattern(name) for name in names], [fold_name(part) for part in parts]
    return any(matches_parts(names, parts[:depth]) for depth in range(1, len(parts) + 1))


def _pattern_parts(pattern: str, case: RuleSubject) -> list[str]:
    """A pattern from the top of the file system. Without a slash it names files at any depth."""
    bare = pattern.removeprefix("./").rstrip("/")
    if pattern == "~" or pattern.startswith("~/"):
        return [*map(_literal, case.user_home.parts[1:]), *bare.split("/")[1:]]
    if pattern.startswith("/"):
        return [part for part in bare.split("/") if part]
    depth = [] if "/" in pattern.rstrip("/") else ["**"]
    return [*map(_literal, case.root.parts[1:]), *depth, *bare.split("/")]


def _literal(part: str) -> str:
    """A name that may hold what a pattern would read as a sign."""
    return re.sub(r"([*?\[])", r"[\1]", part)


def _fold_pattern(name: str) -> str:
    # Brackets keep their ends, which folding would take for the end of a name.
    return name if name == "**" else name.casefold() if "[" in name else fold_name(name)


def _relative(real: str, root: Path) -> str:
    path = Path(real)
    if not path.is_relative_to(root):
        return real
    below = path.relative_to(root).as_posix()
    # A bare name would mean every file of that name.
    return below if "/" in below else f"./{below}"


# The settings file is the user's: one line is added and the rest stays. The result is parsed before it is
# written, so that an unusual file is left alone rather than broken.

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
            f"nobody has agreed to {path} as it is, so it may not allow anything; agree to it with "
            f"`sevenfold settings --trust {LOCAL_SETTINGS_FILE}`, or add {rule!r} to permissions.allow in "
            "your user file"
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
    replace_file(real, after.encode(), expected=before, max_bytes=MAX_SETTINGS_BYTES, mask=PRIVATE_MASK)
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
