"""Hooks that were written for Claude Code get the objects that Claude Code hands out; ours get text."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from sevenfold.agent.hooks.config import Hook, HookDialect, parse_hooks
from sevenfold.agent.hooks.runner import HookContext, SessionHooks
from sevenfold.core.json import freeze_object
from sevenfold.core.messages import ToolUse, ToolUseId
from sevenfold.resident.agent_configs import HOOK_SCRIPT

TOOK = timedelta(milliseconds=7)


def ask(folder: Path, use: ToolUse, response: str, dialect: HookDialect, change: str | None = None) -> object:
    """The `tool_response` that a hook is handed; the file changes between the two events."""
    heard = folder / "heard.json"
    hook = Hook(event="PostToolUse", command=f"cat > {heard}", dialect=dialect)
    hooks = SessionHooks([hook], HookContext(session="s", root=folder, cwd=folder))

    async def run() -> None:
        await hooks.ask_before(use)
        if change is not None:
            (folder / "a.txt").write_text(change)
        await hooks.ask_after(use, response, TOOK)

    asyncio.run(run())
    return cast("dict[str, object]", json.loads(heard.read_text()))["tool_response"]


def call(name: str, **given: object) -> ToolUse:
    return ToolUse(ToolUseId("t1"), name, freeze_object(given))


def test_an_edit_is_described_as_claude_code_describes_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\nfour\n")
    edit = call("edit", file_path="a.txt", old_string="two", new_string="TWO\nplus")
    after = "one\nTWO\nplus\nthree\nfour\n"
    assert ask(tmp_path, edit, "done", "claude", after) == {
        "filePath": str(tmp_path / "a.txt"),
        "oldString": "two",
        "newString": "TWO\nplus",
        "originalFile": "one\ntwo\nthree\nfour\n",
        "structuredPatch": [
            {
                "oldStart": 1,
                "oldLines": 4,
                "newStart": 1,
                "newLines": 5,
                "lines": [" one", "-two", "+TWO", "+plus", " three", " four"],
            }
        ],
        "userModified": False,
        "replaceAll": False,
    }
    assert ask(tmp_path, edit, "done", "own") == "done"


@pytest.mark.parametrize(
    ("use", "response", "expected"),
    [
        (
            call("shell", command="echo hi"),
            "hi",
            {"stdout": "hi", "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False},
        ),
        (
            call("write", file_path="new.txt", content="x\n"),
            "done",
            {
                "type": "create",
                "filePath": "{cwd}/new.txt",
                "content": "x\n",
                "structuredPatch": [],
                "originalFile": None,
                "userModified": False,
            },
        ),
        (
            call("read", file_path="a.txt", offset=2, limit=1),
            "2\ttwo",
            {
                "type": "text",
                "file": {
                    "filePath": "{cwd}/a.txt",
                    "content": "two",
                    "numLines": 1,
                    "startLine": 2,
                    "totalLines": 3,
                },
            },
        ),
        (call("mcp__db__query", sql="x"), "rows", [{"type": "text", "text": "rows"}]),
        (call("ask_user_question", question="x"), "yes", "yes"),
    ],
)
def test_each_tool_has_its_own_object(tmp_path: Path, use: ToolUse, response: str, expected: object) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    found = json.dumps(ask(tmp_path, use, response, "claude")).replace(str(tmp_path), "{cwd}")
    assert json.loads(found) == expected


def test_hooks_that_install_wrote_for_another_agent_are_not_run_in_a_chat() -> None:
    ours = {"type": "command", "command": f"/usr/bin/python3 -I -S /x/sevenfold/{HOOK_SCRIPT} Stop"}
    other = {"type": "command", "command": "./check.sh"}
    config = freeze_object({"hooks": {"Stop": [{"hooks": [ours, other]}]}})
    found = parse_hooks(config, source="settings.json", dialect="claude")
    assert [hook.command for hook in found.hooks] == ["./check.sh"]
    assert found.problems == []
