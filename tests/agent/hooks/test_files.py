"""Which files may name hooks without a person having agreed."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

from sevenfold.agent.hooks.config import find_hooks
from sevenfold.core.events import Event, HooksIgnored
from sevenfold.core.settings.sections import HookSettings
from sevenfold.store.project.instructions import InstructionPaths


def test_a_local_file_that_git_does_not_track_is_agreed_to_first(tmp_path: Path) -> None:
    """A held command can write one, and so can whoever packed an archive with a repository in it."""
    project = tmp_path / "project"
    (project / ".claude").mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", str(project)], check=True)
    (project / "a.txt").write_text("tracked")
    subprocess.run(["git", "-C", str(project), "add", "a.txt"], check=True)
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}
    (project / ".claude/settings.local.json").write_text(json.dumps({"hooks": hooks}))
    folders = InstructionPaths(home=tmp_path / "home", user_home=tmp_path / "user", root=project)
    told: list[Event] = []
    asked: list[str] = []

    async def agree(question: str) -> bool:
        asked.append(question)
        return True

    assert asyncio.run(find_hooks(HookSettings(), folders, emit=told.append)) == ()
    assert [type(event) for event in told] == [HooksIgnored]
    assert len(asyncio.run(find_hooks(HookSettings(), folders, confirm=agree))) == 1
    assert len(asked) == 1
