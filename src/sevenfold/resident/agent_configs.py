"""What `sevenfold install` writes into the configuration of other agents, as pure functions over text.

`plan_install` says which files an agent gets, and what each is to hold. Files in JSON are parsed and written
with their own indentation, and edited in place if they have comments; in TOML and YAML a block between two
comments is added and removed as text.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast

from sevenfold.core.errors import InputError
from sevenfold.resident.commented_json import (
    add_json_entry,
    blank_comments,
    has_comments,
    remove_json_entry,
)

AgentName: TypeAlias = Literal["claude-code", "codex", "opencode", "goose", "continue", "cursor"]
INSTALLABLE_AGENTS: tuple[AgentName, ...] = (
    "claude-code",
    "codex",
    "opencode",
    "goose",
    "continue",
    "cursor",
)

SERVER_NAME = "sevenfold"
"""Of the MCP server, in every configuration."""

HOOK_SCRIPT = "resident/hook_script.py"
"""How the path of the program ends that hooks run: by it our entries are told from others."""

_BEGIN, _END = "# >>> sevenfold install >>>", "# <<< sevenfold install <<<"

_HOOK_TIMEOUTS: Mapping[str, int] = {"SessionStart": 5, "SessionEnd": 1}
"""Seconds that an agent waits for a hook at most. Ours give up long before that."""

_WATCHED_TOOLS = "WebFetch|WebSearch|Write|Edit|MultiEdit|mcp__.*"
"""After which a hook is run: those that bring in foreign words, and those that may write a memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallPaths:
    """Where configurations are, and what they are to run."""

    user_home: Path
    python: str
    script: str
    server: tuple[str, ...]
    """The command that runs the MCP server. Its last word is `mcp`."""
    claude_home: Path | None = None
    """`CLAUDE_CONFIG_DIR`."""
    codex_home: Path | None = None
    config_home: Path | None = None
    """`XDG_CONFIG_HOME`."""
    continue_home: Path | None = None
    """`CONTINUE_GLOBAL_DIR`."""

    def in_config(self, path: str) -> Path:
        """A file in the folder for configurations."""
        return (self.config_home or self.user_home / ".config") / path

    def hook_command(self, event: str) -> str:
        """For a shell, in which agents run hooks. It ends with 0 also where the script or the interpreter is
        gone: Python would end with 2, which denies every call and drops every prompt."""
        return f"{shlex.join([self.python, '-I', '-S', self.script, event])} || exit 0"


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A file, what is added to it, and how that is taken out again."""

    path: Path
    add: Callable[[str | None, bool], str]
    """The content with our entries; gets None where there is no file, and whether a record says that we have
    changed it before. Adding twice changes nothing. `InputError` if our name is taken."""
    remove: Callable[[str, bool], str | None]
    """The content without our entries; None: nothing but ours was in it. Without a record only what is
    exactly ours goes. A text that holds nothing of ours is returned as it is."""


def plan_install(agent: AgentName, paths: InstallPaths) -> tuple[ConfigChange, ...]:
    """The files that an agent is configured by."""
    return _PLANS[agent](paths)


# The plans.


def _plan_claude_code(paths: InstallPaths) -> tuple[ConfigChange, ...]:
    home = paths.claude_home or paths.user_home / ".claude"
    registry = (paths.claude_home or paths.user_home) / ".claude.json"
    server = {"type": "stdio", "command": paths.server[0], "args": list(paths.server[1:])}
    command = shlex.join(paths.server[:-1])
    return (
        _plan_hooks(home / "settings.json", paths),
        _plan_entry(registry, "mcpServers", server),
        *(
            _plan_page(home / "commands" / f"sevenfold-{name}.md", text.replace("{command}", command))
            for name, text in _PAGES.items()
        ),
    )


def _plan_codex(paths: InstallPaths) -> tuple[ConfigChange, ...]:
    home = paths.codex_home or paths.user_home / ".codex"
    command, arguments = json.dumps(paths.server[0]), json.dumps(paths.server[1:])
    block = f"[mcp_servers.{SERVER_NAME}]\ncommand = {command}\nargs = {arguments}\n"
    return (_plan_hooks(home / "hooks.json", paths), _plan_toml(home / "config.toml", block))


def _plan_opencode(paths: InstallPaths) -> tuple[ConfigChange, ...]:
    server = {"type": "local", "command": list(paths.server), "enabled": True}
    return (_plan_entry(paths.in_config("opencode/opencode.json"), "mcp", server, takes_comments=True),)


def _plan_goose(paths: InstallPaths) -> tuple[ConfigChange, ...]:
    lines = (
        f"  {SERVER_NAME}:",
        "    type: stdio",
        f"    name: {SERVER_NAME}",
        "    enabled: true",
        f"    cmd: {json.dumps(paths.server[0])}",
        f"    args: {json.dumps(paths.server[1:])}",
        "    timeout: 300",
    )
    return (_plan_yaml(paths.in_config("goose/config.yaml"), "extensions", lines),)


def _plan_continue(paths: InstallPaths) -> tuple[ConfigChange, ...]:
    lines = (
        f"  - name: {SERVER_NAME}",
        f"    command: {json.dumps(paths.server[0])}",
        f"    args: {json.dumps(paths.server[1:])}",
    )
    home = paths.continue_home or paths.user_home / ".continue"
    return (_plan_yaml(home / "config.yaml", "mcpServers", lines, new_file=_CONTINUE_HEAD),)


def _plan_cursor(paths: InstallPaths) -> tuple[ConfigChange, ...]:
    server = {"command": paths.server[0], "args": list(paths.server[1:])}
    return (_plan_entry(paths.user_home / ".cursor/mcp.json", "mcpServers", server, takes_comments=True),)


_CONTINUE_HEAD = "name: Main Config\nversion: 1.0.0\nschema: v1\n"
"""What Continue asks of every configuration, and writes itself into a new one."""

_PLANS: Mapping[AgentName, Callable[[InstallPaths], tuple[ConfigChange, ...]]] = {
    "claude-code": _plan_claude_code,
    "codex": _plan_codex,
    "opencode": _plan_opencode,
    "goose": _plan_goose,
    "continue": _plan_continue,
    "cursor": _plan_cursor,
}

_PAGES: Mapping[str, str] = {
    "recall": """\
---
description: What is remembered of this project about a topic
argument-hint: [topic]
---
Call the `recall` tool of the MCP server `sevenfold` with this query: $ARGUMENTS
Show each memory it returns with its name and whose words it is. If it returns none, say so.
""",
    "review": """\
---
description: Changes of memory that wait for you
allowed-tools: Bash({command} memory review:*)
---
!`{command} memory review --json`

List what waits, each with its text and where it came from. Accept or reject nothing yourself: the user runs
`sevenfold memory review`.
""",
    "spend": """\
---
description: What background work of Sevenfold has spent
allowed-tools: Bash({command} spend:*)
---
!`{command} spend`

Show this as it is.
""",
    "why-break": """\
---
description: Why the prompt cache broke in sessions of this project
allowed-tools: Bash({command} replay:*)
---
!`{command} replay`

Say which cache breaks cost most, what caused each, and what would avoid it.
""",
}
"""Slash commands. `{command}` runs the command line by its path: the agent may have another search path."""


# Hooks, as Claude Code and Codex read them.


def _plan_hooks(path: Path, paths: InstallPaths) -> ConfigChange:
    groups = {
        event: {
            **({"matcher": _WATCHED_TOOLS} if event == "PostToolUse" else {}),
            "hooks": [
                {
                    "type": "command",
                    "command": paths.hook_command(event),
                    "timeout": _HOOK_TIMEOUTS.get(event, 2),
                }
            ],
        }
        for event in (
            *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"),
            *("PreCompact", "Stop", "SessionEnd"),
        )
    }

    def add(text: str | None, _is_known: bool) -> str:
        config = _read_json(path, text)
        hooks = _get_table(path, config, "hooks")
        for event, group in groups.items():
            listed = hooks.get(event, [])
            if not isinstance(listed, list):
                raise InputError(f"{path}: hooks.{event} is no list; correct it, then install again")
            others = [one for one in cast("list[object]", listed) if not is_own_group(one)]
            hooks[event] = [*others, group]
        config["hooks"] = hooks
        return _write_json(config, text)

    def remove(text: str, _is_known: bool) -> str | None:
        config = _read_json(path, text)
        before = _get_table(path, config, "hooks")
        hooks = {
            event: [one for one in cast("list[object]", listed) if not is_own_group(one)]
            if isinstance(listed, list)
            else listed
            for event, listed in before.items()
        }
        if hooks == before:
            return text
        config["hooks"] = {event: left for event, left in hooks.items() if left or left == before[event]}
        if not config["hooks"]:
            del config["hooks"]
        return _write_json(config, text) if config else None

    return ConfigChange(path, add, remove)


def is_own_group(group: object) -> bool:
    """Whether a group of hooks is ours: each command in it runs our program."""
    hooks = cast("dict[str, object]", group).get("hooks") if isinstance(group, dict) else None
    if not isinstance(hooks, list) or not hooks:
        return False
    return all(is_own_hook(one) for one in cast("list[object]", hooks))


def is_own_hook(hook: object) -> bool:
    command = cast("dict[str, object]", hook).get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and is_own_command(command)


def is_own_command(command: str) -> bool:
    """Whether a hook's command is the one that `sevenfold install` writes."""
    return bool(re.search(rf"sevenfold/{re.escape(HOOK_SCRIPT)}['\"]?(\s|$)", command))


# One entry of a table in JSON.


def _plan_entry(
    path: Path, table: str, entry: Mapping[str, object], *, takes_comments: bool = False
) -> ConfigChange:
    """`takes_comments`: whether the agent reads a file with comments."""

    def is_own(found: object, is_known: bool) -> bool:
        return found == entry or (is_known and is_own_server(found))

    def add(text: str | None, is_known: bool) -> str:
        config = _read_json(path, text, takes_comments=takes_comments)
        entries = _get_table(path, config, table)
        if SERVER_NAME in entries and not is_own(entries[SERVER_NAME], is_known):
            raise _refuse_taken(path)
        if takes_comments and has_comments(text or ""):
            return add_json_entry(text or "", table, SERVER_NAME, entry)
        config[table] = {**entries, SERVER_NAME: dict(entry)}
        return _write_json(config, text)

    def remove(text: str, is_known: bool) -> str | None:
        config = _read_json(path, text, takes_comments=takes_comments)
        entries = _get_table(path, config, table)
        if SERVER_NAME not in entries or not is_own(entries[SERVER_NAME], is_known):
            return text
        if takes_comments and has_comments(text):
            return remove_json_entry(text, table, SERVER_NAME)
        del entries[SERVER_NAME]
        config[table] = entries
        if not entries:
            del config[table]
        return _write_json(config, text) if config else None

    return ConfigChange(path, add, remove)


def is_own_server(entry: object) -> bool:
    """Whether an MCP server is one that an install of ours, here or elsewhere, may have written."""
    if not isinstance(entry, dict):
        return False
    fields = cast("dict[str, object]", entry)
    words: list[object] = []
    for value in (fields.get("command"), fields.get("args")):
        words += cast("list[object]", value) if isinstance(value, list) else [value] if value else []
    first, rest = str(words[0]) if words else "", words[1:]
    return rest == ["-m", "sevenfold", "mcp"] or (Path(first).name == "sevenfold" and rest == ["mcp"])


def _refuse_taken(path: Path) -> InputError:
    return InputError(f"{path} has an MCP server {SERVER_NAME} that is not ours; rename or remove it first")


def _read_json(path: Path, text: str | None, *, takes_comments: bool = False) -> dict[str, object]:
    if text is None or not text.strip():
        return {}
    try:
        found: object = json.loads(blank_comments(text) if takes_comments else text)
    except (ValueError, RecursionError) as error:
        advice = "Take its comments and trailing commas out" if has_comments(text) else "Correct it"
        raise InputError(
            f"{path} is no JSON ({error}); nothing was changed. {advice}, then try again"
        ) from error
    if not isinstance(found, dict):
        raise InputError(f"{path} holds no object; nothing was changed. Correct it, then try again")
    return cast("dict[str, object]", found)


def _get_table(path: Path, config: Mapping[str, object], key: str) -> dict[str, object]:
    found = config.get(key, {})
    if not isinstance(found, dict):
        raise InputError(f"{path}: {key} is no object; nothing was changed. Correct it, then try again")
    return dict(cast("dict[str, object]", found))


def _write_json(config: Mapping[str, object], before: str | None) -> str:
    """With the indentation and the line ends of the text that was there."""
    indent = re.search(r"\n([ \t]+)\S", before or "")
    is_flat = before is not None and bool(before.strip()) and indent is None and before.strip() != "{}"
    text = json.dumps(config, ensure_ascii=False, indent=None if is_flat else indent[1] if indent else 2)
    # A surrogate without its pair can only be written as an escape, and was one.
    text = re.sub(r"[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)
    text = text if before is not None and before.strip() and not before.endswith("\n") else f"{text}\n"
    return text.replace("\n", "\r\n") if before is not None and "\r\n" in before else text


# Blocks of text, in TOML and YAML.


def _plan_toml(path: Path, block: str) -> ConfigChange:
    def add(text: str | None, _is_known: bool) -> str:
        bare = _without_block(text or "")
        config = _read_toml(path, bare)
        servers = config.get("mcp_servers")
        if isinstance(servers, dict) and SERVER_NAME in servers:
            raise _refuse_taken(path)
        start = "" if not bare or bare.endswith("\n") else "\n"
        added = f"{bare}{start}{_BEGIN}\n{block}{_END}\n"
        try:
            tomllib.loads(added)
        except tomllib.TOMLDecodeError as error:
            raise InputError(
                f"{path}: mcp_servers is written as an inline table, to which nothing can be added; nothing "
                "was changed. Write it as [mcp_servers.NAME] tables, then try again"
            ) from error
        return added

    return ConfigChange(path, add, lambda text, _is_known: _without_block(text) or None)


def _read_toml(path: Path, text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"{path} is no TOML ({error}); nothing was changed. Correct it, then try again"
        ) from error


def _without_block(text: str) -> str:
    block = rf"^[ \t]*{re.escape(_BEGIN)}\r?\n.*?^[ \t]*{re.escape(_END)}(\r?\n)?"
    return re.sub(block, "", text, flags=re.M | re.S)


def _plan_yaml(path: Path, key: str, lines: tuple[str, ...], *, new_file: str = "") -> ConfigChange:
    block = "\n".join((f"  {_BEGIN}", *lines, f"  {_END}")) + "\n"
    is_list = lines[0].lstrip().startswith("- ")

    def take_out(text: str, is_known: bool) -> str:
        return _without_entry(text, key) if is_known and _BEGIN not in text else _without_block(text)

    def add(text: str | None, is_known: bool) -> str:
        bare = take_out(text or "", is_known) or new_file
        found = re.search(rf"^{key}:(.*)$", bare, flags=re.M)
        if found is None:
            start = "" if not bare or bare.endswith("\n") else "\n"
            return f"{bare}{start}{key}:\n{block}"
        if found[1].split("#")[0].strip():
            raise InputError(f"{path}: write {key} on lines of its own, then try again; nothing was changed")
        at = found.end() + 1
        head = bare[:at] if bare[found.end() :].startswith("\n") else f"{bare[: found.end()]}\n"
        children = _list_children(bare[at:])
        pattern = r"( *)-( |$)" if is_list else r"( *)[^\s\[{&*!|>%@`#-][^\n]*:(\s|$)"
        first = re.match(pattern, children[0]) if children else None
        if children and first is None:
            raise InputError(
                f"{path}: {key} is written in a way that nothing can be added to; "
                f"nothing was changed. Write it as a plain {'list' if is_list else 'table'}, then try again"
            )
        spaces = first[1] if first else "  "
        named = rf"[ -]*name:\s*['\"]?{SERVER_NAME}\b" if is_list else rf"{spaces}['\"]?{SERVER_NAME}['\"]?:"
        if any(re.match(named, line) for line in children):
            raise _refuse_taken(path)
        return f"{head}{_indent(block, len(spaces))}{bare[at:]}"

    def remove(text: str, is_known: bool) -> str | None:
        bare = take_out(text, is_known)
        found = re.search(rf"^{key}:[ \t]*\r?(\n|\Z)", bare, flags=re.M)
        if found and text != bare and not _list_children(bare[found.end() :]):
            bare = bare[: found.start()] + bare[found.end() :]
        return bare if bare not in ("", new_file) else None

    return ConfigChange(path, add, remove)


def _without_entry(text: str, key: str) -> str:
    """Without our entry of a table, where an agent has written the file again and lost the comments."""
    section = re.search(rf"^{key}:[ \t]*\r?\n", text, flags=re.M)
    lines = text[section.end() :].splitlines(keepends=True) if section else []
    named = (re.match(rf"( +)['\"]?{SERVER_NAME}['\"]?:\s*$", line) for line in lines)
    start, found = next(((at, one) for at, one in enumerate(named) if one), (0, None))
    if section is None or found is None:
        return text
    deeper = f"{found[1]} "
    after = (
        at for at, line in enumerate(lines) if at > start and line.strip() and not line.startswith(deeper)
    )
    end = next(after, len(lines))
    is_ours = re.search(rf"{SERVER_NAME}['\"]?\s*\n(.*\n)*.*\bmcp\b", "".join(lines[start + 1 : end]))
    return text[: section.end()] + "".join([*lines[:start], *lines[end:]]) if is_ours else text


def _list_children(text: str) -> list[str]:
    """Lines up to the next key of the file that are neither blank nor a comment."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    end = (number for number, line in enumerate(lines) if not re.match(r"[ \t]|-( |$)", line))
    return lines[: next(end, len(lines))]


def _indent(block: str, spaces: int) -> str:
    """The block, which is indented by two, as deep as its neighbours."""
    return "".join(f"{' ' * spaces}{line[2:]}" for line in block.splitlines(keepends=True))


def _plan_page(path: Path, text: str) -> ConfigChange:
    """A file of our own."""

    def remove(found: str, is_known: bool) -> str | None:
        return None if found == text and is_known else found

    return ConfigChange(path, lambda _before, _is_known: text, remove)
