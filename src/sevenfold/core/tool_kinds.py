"""What a tool does, by the name that an agent gives it: the only place that lists tool names.

`find_tool` looks a name up, however it is spelled: `WebFetchTool`, `web_fetch` and `web-fetch` are one tool.
`find_effect` also looks at the arguments, for tools whose calls do different things, and `find_shown` at the
programs that a command line runs. Nothing is known of a tool that is not listed, nor of any tool of an MCP
server. `ToolContext` is what tools work with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import dropwhile
from pathlib import Path
from typing import Literal, TypeAlias

from sevenfold.core.clock import Clock, SystemClock
from sevenfold.core.events import Emit, ignore_event
from sevenfold.core.json import JsonObject
from sevenfold.core.messages import ToolUse
from sevenfold.core.text.globs import find_text_paths
from sevenfold.core.text.shell_parser import parse_commands

Effect: TypeAlias = Literal[
    "read",
    "edit",
    "write",
    "list",
    "search",
    "fetch",
    "run",
    "wait",
    "plan",
    "delegate",
    "message",
    "memory",
    "other",
]
"""`list` finds files by name and `search` by content; `fetch` brings words from the web; `wait` shows what a
command in the background has printed since; `delegate` hands a task to another agent."""

MCP_PREFIX = "mcp__"
_MCP_CALL = "mcpcall"
_PATCH_START = "*** Begin Patch"

PATH_KEYS = (
    *("file_path", "path", "notebook_path", "filename", "file"),
    *("filePath", "filepath", "absolute_path", "target_file"),
)
"""The arguments by which tools name the one file they touch."""
COMMAND_KEYS = ("command", "cmd", "script")
QUERY_KEYS = ("pattern", "query", "glob", "url", "prompt", "skill", "question")
"""What is looked for: a pattern, a question, an address."""
PATCH_KEYS = ("input", "patch", "patchText", "patch_text")
OLD_TEXT_KEYS = ("old_string", "old_str", "old_text", "oldString", "oldText")
NEW_TEXT_KEYS = ("new_string", "new_str", "new_text", "newString", "newText")
CONTENT_KEYS = ("content", "file_text", "new_source", "insert_text")
"""Text that goes into a file without replacing a quoted one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolKind:
    """What is known of a tool."""

    effect: Effect
    """Of a tool with `actions`: what it does when its action is not one of them."""
    is_clearable: bool = False
    """Whether its old results may be cleared: what they showed can be had again without harm."""
    replaces: bool = False
    """It replaces one quoted text by another (`OLD_TEXT_KEYS`, `NEW_TEXT_KEYS`)."""
    takes_patch: bool = False
    """It takes a patch (`PATCH_KEYS`) and names its files in there."""
    actions: Mapping[str, Effect] | None = None
    """What it does, by its `command` argument."""


_EDITOR_ACTIONS: Mapping[str, Effect] = {
    "view": "read",
    "create": "write",
    "write": "write",
    "str_replace": "edit",
    "insert": "edit",
    "undo_edit": "edit",
}

_MEMORY_CHANGES = frozenset({"write", "create", "str_replace", "insert", "delete", "rename"})
"""Actions of the memory tool, ours or Anthropic's, that change what is remembered."""

_ROWS: tuple[tuple[ToolKind, str], ...] = (
    (
        ToolKind(effect="read", is_clearable=True),
        "read read_file view view_file open_file notebook_read cat read_many_files",
    ),
    (
        ToolKind(effect="edit", is_clearable=True, replaces=True),
        "edit str_replace replace search_replace replace_string_in_file",
    ),
    (
        ToolKind(effect="edit", is_clearable=True),
        "multi_edit notebook_edit edit_file edit_notebook insert_edit_into_file replace_in_file apply_diff "
        "insert_content search_and_replace delete_file",
    ),
    (ToolKind(effect="edit", is_clearable=True, takes_patch=True), "apply_patch patch"),
    (
        ToolKind(effect="edit", is_clearable=True, replaces=True, actions=_EDITOR_ACTIONS),
        "str_replace_based_edit_tool str_replace_editor text_editor developer__text_editor",
    ),
    (ToolKind(effect="write", is_clearable=True), "write write_file create create_file write_to_file"),
    (
        ToolKind(effect="list", is_clearable=True),
        "glob find find_files file_search ls list list_dir list_directory list_files tree",
    ),
    (
        ToolKind(effect="search", is_clearable=True),
        "grep ripgrep search search_files grep_files grep_search search_file_content codebase_search "
        "semantic_search code_search list_code_definition_names analyze",
    ),
    # It asks for a line and a column, where something else stands after an edit.
    (ToolKind(effect="search"), "lsp"),
    (
        ToolKind(effect="fetch", is_clearable=True),
        "web_fetch web_search fetch fetch_webpage google_web_search",
    ),
    # A browser has state: the same call may show another page.
    (ToolKind(effect="fetch"), "browse browser_action"),
    (
        ToolKind(effect="run", is_clearable=True),
        "bash shell exec exec_command execute_command run_command run_terminal_cmd run_in_terminal "
        "run_shell_command shell_command local_shell unified_exec container.exec execute execute_bash "
        "developer__shell terminal",
    ),
    (ToolKind(effect="wait", is_clearable=True), "bash_output"),
    # Each call shows only what was printed since the last one.
    (ToolKind(effect="wait"), "write_stdin task_output check_background_job monitor"),
    (
        ToolKind(effect="plan"),
        "todo todo_write todo__todo_write write_todos checklist update_plan plan task_create task_update "
        "exit_plan_mode",
    ),
    (ToolKind(effect="delegate"), "task agent delegate spawn_agent"),
    (ToolKind(effect="message"), "send_message read_mail mail inbox"),
    (ToolKind(effect="memory"), "memory"),
    (ToolKind(effect="other"), "skill tool_search mcp_call task_stop kill_shell kill_bash ask_user_question"),
)
"""Names as agents spell them: Claude Code, Codex, the Anthropic API, opencode, goose, Gemini CLI and Qwen
Code, Continue, pi, Cursor, Cline, VS Code, OpenHands, and Sevenfold itself."""


_PROGRAM_ROWS: tuple[tuple[Effect, str], ...] = (
    ("read", "cat sed head tail nl less more bat awk jq yq diff"),
    ("search", "rg grep egrep fgrep ag ack"),
    ("list", "ls find fd tree wc stat file du"),
    ("fetch", "curl wget"),
)
"""Programs that only look at something, by what they look at."""
_PROGRAMS: Mapping[str, Effect] = {
    program: effect for effect, programs in _PROGRAM_ROWS for program in programs.split()
}
_GIT_VERBS: Mapping[str, Effect] = {
    **dict.fromkeys(("show", "diff", "log", "blame"), "read"),
    **dict.fromkeys(("status", "ls-files", "ls-tree", "branch", "rev-parse"), "list"),
    "grep": "search",
}
_FILTERS = frozenset(
    [
        *("cd", "pushd", "popd", "echo", "printf", "true", "pwd"),
        *("sort", "uniq", "cut", "tr", "column", "then", "do", "done", "fi"),
    ]
)
"""Commands that add nothing to what a line is about."""
_BY_VOLUME: tuple[Effect, ...] = ("read", "fetch", "search", "list")
"""Of a line with several commands: what most of its output is."""
_REDIRECTED = re.compile(r"(?<![0-9&<>-])>>?\s*(?!/dev/null)[\w./~$\"']")
"""Output goes to a file."""
_MAX_LINE_CHARS = 10_000


def normalize(name: str) -> str:
    """A tool name in the form by which tools are listed: in lower case and without separators."""
    return name.replace("_", "").replace("-", "").lower()


TOOLS: Mapping[str, ToolKind] = {normalize(name): kind for kind, names in _ROWS for name in names.split()}
"""By normalized name."""

OWN_READERS = ("read", "grep", "glob")
"""Tools of ours by which a fork may look around."""
MEMORY_WRITERS = ("memory", "write", "edit")
"""Tools of ours by which a fork may write a memory, the best first."""
EXPLORERS = ("read", "glob", "grep", "shell", "web_fetch")
"""Tools of the built-in agent that answers questions about a code base."""
SPILL_READERS = ("Read", "read")
"""Tools that bring a stored result back, as they are declared."""

CLAUDE_CODE_NAMES: Mapping[str, str] = {
    "agent": "Task",
    "edit": "Edit",
    "glob": "Glob",
    "grep": "Grep",
    "read": "Read",
    "shell": "Bash",
    "skill": "Skill",
    "todo": "TodoWrite",
    "web_fetch": "WebFetch",
    "write": "Write",
}
"""By the name of a tool of ours: what Claude Code calls it."""

_OWN_NAMES: Mapping[str, str] = {
    "bash": "shell",
    "multiedit": "edit",
    "notebookedit": "edit",
    "ls": "glob",
    "task": "agent",
    "todowrite": "todo",
    "webfetch": "web_fetch",
    "sendmessage": "send_message",
    "exitplanmode": "plan",
}
"""By Claude Code's name, normalized: the tool of ours that does its work, where it is called otherwise."""


@lru_cache(maxsize=500)
def find_tool(name: str) -> ToolKind | None:
    """What is known of a tool of this name; None: nothing."""
    return None if name.startswith(MCP_PREFIX) else TOOLS.get(normalize(name))


def find_effect(use: ToolUse) -> Effect | None:
    """What this call does; None for a tool that nothing is known of.

    An editor with several commands does what its command says, and a command line that applies a patch edits.
    Which files a command line names is a question for `core.text.command_lines`.
    """
    kind = find_tool(use.name)
    if kind is None:
        return None
    if kind.actions is not None:
        action = use.input.get("command")
        return kind.actions.get(action, kind.effect) if isinstance(action, str) else kind.effect
    if kind.effect == "run" and _PATCH_START in command_of(use.input):
        return "edit"
    return kind.effect


@dataclass(frozen=True, slots=True)
class ShownResult:
    """What the result of a call shows."""

    effect: Effect | None
    path: str = ""
    """The one file that it is about; empty where there is none, or more than one."""


def find_shown(use: ToolUse) -> ShownResult:
    """What the result of this call shows: `find_effect`, except for a command line all of whose programs only
    look at something, which shows what they look at."""
    effect = find_effect(use)
    if effect == "run":
        return _find_printed(command_of(use.input))
    return ShownResult(effect, first_text(use.input, PATH_KEYS))


def _find_printed(line: str) -> ShownResult:
    """What a command line prints. A program that is not listed may do and print anything."""
    effects, paths = set[Effect](), dict[str, None]()
    if _REDIRECTED.search(line):
        return ShownResult("run")
    for command in parse_commands(line[:_MAX_LINE_CHARS]):
        words = list(dropwhile(_is_assignment, command.words))
        if not words or words[0] in _FILTERS:
            continue
        effect = _find_program(words)
        if effect is None or command.substituted:
            return ShownResult("run")
        named = find_text_paths(" ".join(words[1:])) if words[0] != "git" else ()
        if effect == "read" and not named and effects and words[0] != "git":
            continue  # the end of a pipe: `rg x | head`
        effects.add(effect)
        paths.update(dict.fromkeys(named))
    seen: list[Effect] = [*(effect for effect in _BY_VOLUME if effect in effects), "run"]
    shown = seen[0]
    return ShownResult(shown, next(iter(paths)) if shown == "read" and len(paths) == 1 else "")


def _find_program(words: Sequence[str]) -> Effect | None:
    """What a program looks at, if it does nothing else."""
    program = words[0].rpartition("/")[2]
    if program == "git":
        verbs = [word for word in words[1:] if not word.startswith("-") and "/" not in word]
        return _GIT_VERBS.get(verbs[0]) if verbs else None
    if program == "sed" and any(word.startswith(("-i", "--in-place")) for word in words):
        return None
    return _PROGRAMS.get(program)


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


def is_clearable(name: str) -> bool:
    """Whether old results of this tool may be cleared. Calling an unknown tool again might do harm."""
    kind = find_tool(name)
    return kind is not None and kind.is_clearable


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearableTools:
    """Which tools' old results may be cleared in one session.

    Settings decide first, then what the caller declared, then the table of known tools. A name may contain
    `*`, as in `mcp__db__*`.
    """

    never: tuple[str, ...] = ()
    """Named by settings as not clearable, whatever else names them."""
    named: tuple[str, ...] = ()
    """Named by settings as clearable."""
    declared: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """What the caller said of its own tools. The first name that matches counts."""

    def allows(self, name: str) -> bool:
        if _matches(name, self.never):
            return False
        if _matches(name, self.named):
            return True
        declared = (said for pattern, said in self.declared.items() if _matches(name, (pattern,)))
        return next(declared, is_clearable(name))


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return bool(patterns) and any(fnmatchcase(name, pattern) for pattern in patterns)


def find_called_tool(use: ToolUse) -> str:
    """The tool that a call is about. The agent calls MCP tools that it has not declared through another."""
    called = use.input.get("tool")
    is_passed_on = normalize(use.name) == _MCP_CALL and isinstance(called, str) and called
    return called if is_passed_on and isinstance(called, str) else use.name


def changes_memory(use: ToolUse) -> bool:
    """Whether this is a call of a memory tool that changes what is remembered."""
    kind = find_tool(use.name)
    if kind is None or kind.effect != "memory":
        return False
    return use.input.get("action", use.input.get("command")) in _MEMORY_CHANGES


def own_tool_name(name: str) -> str:
    """The tool of ours that does the work of one that Claude Code calls by this name."""
    return _OWN_NAMES.get(normalize(name), name.lower())


def first_text(given: JsonObject, keys: tuple[str, ...]) -> str:
    """The first of these arguments that is a text with something in it; empty where there is none."""
    for key in keys:
        value = given.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def read_path(use: ToolUse) -> str | None:
    """The file that this call reads; None where it reads none, or does something else."""
    return (first_text(use.input, PATH_KEYS) or None) if find_effect(use) == "read" else None


def command_of(given: JsonObject) -> str:
    """The command line that a shell tool is to run, given as a text or as a list of words."""
    for key in COMMAND_KEYS:
        value = given.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, tuple):
            words = [word for word in value if isinstance(word, str)]
            # `bash -lc "…"` as a list: the last word is the line itself.
            return words[-1] if len(words) == 3 and words[1].startswith("-") else " ".join(words)
    return ""


def patch_of(given: JsonObject) -> str:
    """The patch among the arguments, in Codex's format; empty where there is none."""
    patch = first_text(given, PATCH_KEYS)
    return patch if _PATCH_START in patch else ""


# What tools work with: the folder, the files that the agent has read, the sandbox profile, and listeners. A
# fork gets a copy of its own.

SandboxProfile: TypeAlias = Literal["read-only", "workspace", "open"]
"""Strictest first. `read-only`: it changes nothing and reaches no network; `workspace`: it also writes in the
project's folder and in a scratch folder of its own; `open`: nothing holds it."""


@dataclass(frozen=True, slots=True)
class ReadState:
    """A file as it was when the agent last saw it: an edit of another state is refused."""

    sha256: str
    is_whole: bool
    """All of it was shown, and not a range."""


@dataclass(slots=True)
class FileReads:
    """What the agent has seen of which file, newest last; by absolute path."""

    marks: dict[str, ReadState] = field(default_factory=dict[str, ReadState])

    def note(self, path: str, mark: ReadState) -> None:
        self.marks.pop(path, None)
        self.marks[path] = mark

    def find(self, path: str) -> ReadState | None:
        return self.marks.get(path)

    def copy(self) -> FileReads:
        return FileReads(dict(self.marks))


def ignore_change(_path: str, _before: bytes | None, _after: bytes | None) -> None:
    """For a place where edits are not taken back."""


def ignore_edit(_path: str) -> str:
    """For a place where nobody minds which files are changed."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What every tool is handed. What only one tool needs is given to that tool when it is made."""

    root: Path
    """The project's folder: absolute, links resolved."""
    cwd: Path
    """Where relative paths and commands start; inside the root, or a worktree of its own."""
    session_folder: Path | None = None
    """Where this session's spills and plan lie; None when it lives in memory."""
    reads: FileReads = field(default_factory=FileReads)
    emit: Emit = ignore_event
    clock: Clock = field(default_factory=SystemClock)
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    confined_to: SandboxProfile = "open"
    """The most that a command may do here, whatever it asks for. A fork's is `read-only`."""
    admitted: tuple[str, ...] | None = None
    """Real paths that this one call may touch; None: nobody judged it, and it stays inside the root
    and the session's folder."""

    before_change: Callable[[str, bytes | None, bytes | None], None] = ignore_change
    """Told what a file holds and what it is about to hold, by its real path; None: there is no file."""
    on_edit: Callable[[str], str] = ignore_edit
    """Told of every file that was written or edited, by its real path; the agent reads what it says."""

    def clone(self, **changes: Path) -> ToolContext:
        """For a fork or an agent: what was read is known there too, and what it reads is not known here."""
        return replace(self, reads=self.reads.copy(), **changes)
