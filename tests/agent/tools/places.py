"""A project to act in, and calls of tools in it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from sevenfold.agent.tool import Tool, ToolOutput
from sevenfold.core.json import freeze_object
from sevenfold.core.tool_kinds import ToolContext


def make_place(tmp_path: Path) -> ToolContext:
    root = tmp_path / "project"
    session = tmp_path / "session"
    root.mkdir(exist_ok=True)
    session.mkdir(exist_ok=True)
    return ToolContext(root=root, cwd=root, session_folder=session, environ={"HOME": str(tmp_path)})


def call(tool: Tool, place: ToolContext, /, **given: object) -> ToolOutput:
    """What a call answers, with nobody judging it."""
    inputs = freeze_object(given)
    tool.need(inputs, place)
    return asyncio.run(tool.run(inputs, place, print))


def text_of(output: ToolOutput) -> str:
    """What went well, as text."""
    assert not output.is_error, output.content
    assert isinstance(output.content, str)
    return output.content


def fault_of(output: ToolOutput) -> str:
    """What went wrong."""
    assert output.is_error, output.content
    assert isinstance(output.content, str)
    return output.content
