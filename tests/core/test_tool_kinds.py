"""The one table of tools: what each does, under every name that agents use."""

from __future__ import annotations

import pytest

from sevenfold.core.json import JsonInput, JsonObject, freeze_object
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.core.tool_kinds import (
    CLAUDE_CODE_NAMES,
    EXPLORERS,
    MEMORY_WRITERS,
    OWN_READERS,
    ClearableTools,
    Effect,
    ShownResult,
    changes_memory,
    command_of,
    find_effect,
    find_shown,
    find_tool,
    is_clearable,
    own_tool_name,
    patch_of,
    read_path,
)

EDITOR = "str_replace_based_edit_tool"
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n*** End Patch"

EARLIER_EFFECTS: dict[Effect, str] = {
    "read": "read read_file readfile view view_file open_file notebookread cat",
    "edit": "edit multiedit notebookedit apply_patch str_replace replace texteditor str_replace_editor "
    "str_replace_based_edit_tool",
    "write": "write write_file create create_file",
    "list": "glob find findfiles ls list list_dir list_files file_search",
    "search": "grep ripgrep search searchfiles",
    "fetch": "webfetch websearch web_fetch web_search fetch browse",
    "run": "bash shell exec exec_command run_command local_shell terminal",
    "wait": "write_stdin taskoutput bashoutput",
    "plan": "todowrite update_plan taskcreate taskupdate exitplanmode todo plan",
    "delegate": "task agent",
    "message": "send_message sendmessage read_mail mail inbox",
    "memory": "memory",
}
"""Every name that some part of the program knew before there was one table."""

SEEN_EFFECTS: dict[str, dict[Effect, str]] = {
    "Claude Code": {
        "run": "Bash",
        "edit": "Edit MultiEdit NotebookEdit",
        "read": "Read",
        "delegate": "Agent Task",
    },
    "Codex": {
        "run": "exec_command shell",
        "edit": "apply_patch",
        "wait": "write_stdin",
        "fetch": "web_search",
    },
    "opencode": {"run": "bash", "edit": "edit", "list": "glob", "fetch": "webfetch", "plan": "todowrite"},
    "goose": {
        "run": "shell",
        "edit": "edit",
        "list": "tree",
        "delegate": "delegate",
        "plan": "todo__todo_write",
    },
    "qwen-code": {
        "run": "run_shell_command",
        "list": "list_directory",
        "search": "grep_search",
        "read": "read_file",
    },
    "Continue": {"list": "List", "fetch": "Fetch", "plan": "Checklist", "wait": "CheckBackgroundJob"},
}


def call(name: str, **given: JsonInput) -> ToolUse:
    return ToolUse(ToolUseId("use"), name, freeze_object(given))


@pytest.mark.parametrize("effect", EARLIER_EFFECTS)
def test_every_name_that_was_known_before_is_known(effect: Effect) -> None:
    names = EARLIER_EFFECTS[effect].split()
    assert {name: find_effect(call(name)) for name in names} == dict.fromkeys(names, effect)


@pytest.mark.parametrize("agent", SEEN_EFFECTS)
def test_tools_are_known_by_the_names_that_real_agents_declare(agent: str) -> None:
    for effect, names in SEEN_EFFECTS[agent].items():
        assert {name: find_effect(call(name)) for name in names.split()} == dict.fromkeys(
            names.split(), effect
        )


def test_spelling_makes_no_difference() -> None:
    assert find_tool("WebFetch") is find_tool("web_fetch") is find_tool("web-fetch") is not None


@pytest.mark.parametrize(
    ("name", "given", "effect"),
    [
        (EDITOR, {"command": "view", "path": "a.py"}, "read"),
        (EDITOR, {"command": "create", "path": "a.py", "file_text": "x"}, "write"),
        (EDITOR, {"command": "str_replace", "path": "a.py", "old_str": "x", "new_str": "y"}, "edit"),
        (EDITOR, {"command": "insert", "path": "a.py", "insert_line": 1, "insert_text": "x"}, "edit"),
        ("str_replace_editor", {"command": "undo_edit", "path": "a.py"}, "edit"),
        ("str_replace_editor", {"command": "view", "path": "a.py"}, "read"),
        ("developer__text_editor", {"command": "write", "path": "a.py"}, "write"),
        (EDITOR, {"command": "dance"}, "edit"),
        (EDITOR, {"command": ["view"]}, "edit"),
        (EDITOR, {}, "edit"),
        ("Bash", {"command": "view"}, "run"),
        ("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]}, "edit"),
        ("exec_command", {"cmd": f"apply_patch '{PATCH}'"}, "edit"),
        ("exec_command", {"cmd": "cat a.py"}, "run"),
    ],
)
def test_what_a_compound_tool_does_depends_on_its_arguments(
    name: str, given: dict[str, JsonInput], effect: Effect
) -> None:
    assert find_effect(call(name, **given)) == effect


@pytest.mark.parametrize(
    ("name", "given", "path"),
    [
        ("Read", {"file_path": "/a.py"}, "/a.py"),
        ("NotebookRead", {"notebook_path": "/a.ipynb"}, "/a.ipynb"),
        ("read", {"filePath": "/a.py"}, "/a.py"),
        ("read_file", {"target_file": "a.py"}, "a.py"),
        (EDITOR, {"command": "view", "path": "a.py"}, "a.py"),
        (EDITOR, {"command": "str_replace", "path": "a.py"}, None),
        ("Edit", {"file_path": "/a.py"}, None),
        ("Read", {"file_path": ""}, None),
        ("mcp__files__read", {"path": "a.py"}, None),
    ],
)
def test_a_read_names_its_file_in_the_argument_that_its_agent_uses(
    name: str, given: dict[str, JsonInput], path: str | None
) -> None:
    assert read_path(call(name, **given)) == path


@pytest.mark.parametrize(
    "tool",
    [
        *(
            "Read",
            "read_file",
            "Bash",
            "shell",
            "exec_command",
            "Grep",
            "glob",
            "WebSearch",
            "web_fetch",
            "Edit",
        ),
        *("Write", EDITOR, "str_replace_editor", "run_shell_command", "BashOutput"),
    ],
)
def test_results_of_the_usual_tools_may_be_cleared_however_they_are_spelled(tool: str) -> None:
    assert is_clearable(tool)


@pytest.mark.parametrize(
    "tool",
    [
        "mcp__files__read",
        "mcp__x__bash",
        "deploy",
        "send_message",
        "agent",
        "memory",
        "browse",
        "LSP",
        "write_stdin",
        "",
    ],
)
def test_results_that_a_second_call_may_not_bring_back_are_never_cleared(tool: str) -> None:
    assert not is_clearable(tool)


@pytest.mark.parametrize(
    ("tool", "is_allowed"),
    [
        ("Read", True),
        ("Bash", False),
        ("deploy", False),
        ("lookup", True),
        ("mcp__db__query", True),
        ("mcp__db__drop", False),
        ("mcp__mail__send", False),
        ("render", True),
        ("Grep", False),
        ("show_page", True),
    ],
)
def test_settings_come_before_what_the_caller_declares_and_that_before_the_table(
    tool: str, is_allowed: bool
) -> None:
    tools = ClearableTools(
        never=("Bash", "mcp__db__drop"),
        named=("lookup", "mcp__db__*", "render"),
        declared={"render": False, "Grep": False, "show_*": True, "Bash": True},
    )
    assert tools.allows(tool) is is_allowed


@pytest.mark.parametrize(
    ("name", "given", "changes"),
    [
        ("memory", {"action": "write"}, True),
        ("memory", {"action": "read"}, False),
        ("memory", {"command": "str_replace"}, True),
        ("memory", {"command": "view"}, False),
        ("memory", {"command": ["create"]}, False),
        ("write", {"action": "write"}, False),
    ],
)
def test_a_memory_tool_changes_memory_by_its_action(
    name: str, given: dict[str, JsonInput], changes: bool
) -> None:
    assert changes_memory(call(name, **given)) is changes


def test_a_command_is_a_text_or_a_list_of_words() -> None:
    assert command_of(JsonObject({"command": "make test"})) == "make test"
    assert command_of(JsonObject({"cmd": ("bash", "-lc", "make test")})) == "make test"
    assert command_of(JsonObject({"command": ("git", "status")})) == "git status"
    assert command_of(JsonObject({"url": "https://x.example"})) == ""


def test_a_patch_is_found_in_the_argument_that_holds_it() -> None:
    assert patch_of(JsonObject({"input": PATCH})) == patch_of(JsonObject({"patchText": PATCH})) == PATCH
    assert patch_of(JsonObject({"input": "hello"})) == ""


def test_a_tool_of_claude_code_is_one_of_ours() -> None:
    for own, theirs in CLAUDE_CODE_NAMES.items():
        assert own_tool_name(theirs) == own
    assert own_tool_name("MultiEdit") == "edit"
    assert own_tool_name("Unheard_Of") == "unheard_of"


def test_every_tool_that_is_named_for_our_own_use_is_in_the_table() -> None:
    for name in (*OWN_READERS, *MEMORY_WRITERS, *EXPLORERS, *CLAUDE_CODE_NAMES, *CLAUDE_CODE_NAMES.values()):
        assert find_tool(name) is not None, name


@pytest.mark.parametrize(
    ("line", "effect", "path"),
    [
        ("cat src/a.py", "read", "src/a.py"),
        ("sed -n '1,200p' /src/a.py", "read", "/src/a.py"),
        ("nl -ba src/a.py | sed -n '10,20p'", "read", "src/a.py"),
        ("head -5 src/a.py; tail -5 src/b.py", "read", ""),
        ("/bin/cat Makefile", "read", ""),
        ("LC_ALL=C cat src/a.py 2>/dev/null", "read", "src/a.py"),
        ("git diff", "read", ""),
        ("cd web && git -C /src show main:a.py | head -40", "read", ""),
        ("git log --oneline -5", "read", ""),
        ("rg -n 'a b' src | head -20", "search", ""),
        ("git grep -n main", "search", ""),
        ("ls -la && pwd", "list", ""),
        ("find . -name '*.py' | sort | head", "list", ""),
        ("git status --short", "list", ""),
        ("ls && cat src/a.py", "read", "src/a.py"),
        ("curl -s https://example.invalid | jq .", "fetch", ""),
        ("make test", "run", ""),
        ("go test ./... 2>&1 | tail -30", "run", ""),
        ("cat src/a.py && make", "run", ""),
        ("sed -i s/a/b/ src/a.py", "run", ""),
        ("cat <<EOF > src/a.py\nx\nEOF", "run", ""),
        ("cat $(make where)", "run", ""),
        ("git push", "run", ""),
        ("git", "run", ""),
        ("", "run", ""),
        ("cat 'unclosed", "read", ""),
    ],
)
def test_a_command_line_shows_what_its_programs_look_at(line: str, effect: str, path: str) -> None:
    shown = find_shown(call("Bash", command=line))
    assert (shown.effect, shown.path) == (effect, path)


def test_any_other_call_shows_what_it_does() -> None:
    assert find_shown(call("Read", file_path="a.py")) == ShownResult("read", "a.py")
    assert find_shown(call("Grep", pattern="x")).effect == "search"
    assert find_shown(call("exec_command", cmd=f"apply_patch '{PATCH}'")).effect == "edit"
    assert find_shown(call("unheard_of")).effect is None
