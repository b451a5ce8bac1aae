"""The writer of living documents: what is tracked, what a fork may do to it, and when it is let go."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from sevenfold.agent.permissions.guard import Guard
from sevenfold.agent.permissions.rules import PermissionRules
from sevenfold.agent.tools.executor import ToolExecutor
from sevenfold.agent.tools.file_changes import EditTool, WriteTool
from sevenfold.agent.tools.read import ReadTool
from sevenfold.core.errors import Overloaded
from sevenfold.core.events import DocDropped, DocSkipped, DocTracked, DocUpdated, Event, ToolDenied
from sevenfold.core.messages import Message
from sevenfold.core.requests import ModelRequest, RequestParams
from sevenfold.core.tool_kinds import ReadState, ToolContext
from sevenfold.layers.forks.policy import ForkBrief
from sevenfold.layers.forks.runner import ForkResult, ToolRunner, run_fork
from sevenfold.layers.living_docs.policy import DocSettings
from sevenfold.layers.living_docs.writer import DocTools, DocWriter
from sevenfold.providers.scripted import ScriptedProvider, ScriptedStep, make_response
from sevenfold.store.files.folder import Folder

DOC = "# MAGIC DOC: Parser\n\n_Keep it short._\n\nIt reads teh old format.\n"
OLD, NEW = "It reads teh old format.", "It reads both formats."
TOOLS = (ReadTool(), WriteTool(), EditTool())


class Stage:
    """A project with a document in it, an agent that has read it, and a model that is told what to do."""

    def __init__(
        self, root: Path, steps: Sequence[ScriptedStep], settings: DocSettings | None = None
    ) -> None:
        self.heard: list[Event] = []
        self.models = ScriptedProvider(steps)
        self.root = root.resolve()
        self.place = ToolContext(root=self.root, cwd=self.root, emit=self.heard.append)
        self.box = ToolExecutor(
            TOOLS, self.place, Guard(mode="bypass", rules=PermissionRules(), root=self.root)
        )
        self.objection: str | None = None
        frame = RequestParams(model="claude-opus-5-5", max_tokens=1_000, system="", tools=self.box.declared())
        self.parent = ModelRequest(frame, (Message("user", "hello"), Message("assistant", "hi")))
        tools = DocTools("edit", self.box.runner, self.fork, lambda _path: self.objection)
        self.writer = DocWriter(self.place, tools, settings or DocSettings())

    async def fork(self, brief: ForkBrief, run_tool: ToolRunner) -> ForkResult:
        return await run_fork(self.parent, brief, self.models, run_tool=run_tool, emit=self.heard.append)

    def put(self, text: str = DOC, name: str = "parser.md") -> Path:
        """Write a file and have the agent read it."""
        path = self.root / name
        path.write_text(text, encoding="utf-8")
        mark = ReadState(hashlib.sha256(path.read_bytes()).hexdigest(), is_whole=True)
        self.place.reads.note(str(path), mark)
        return path

    def end(self, *, is_idle: bool = True, may_edit: bool = True) -> None:
        asyncio.run(self.writer.turn_ended(is_idle=is_idle, may_edit=may_edit))

    def told(self, *kinds: type[Event]) -> list[Event]:
        return [event for event in self.heard if isinstance(event, kinds)]


def edit(path: Path, old: str = OLD, new: str = NEW) -> dict[str, object]:
    return {"file_path": str(path), "old_string": old, "new_string": new}


def test_a_document_that_was_read_is_edited_after_the_turn(tmp_path: Path) -> None:
    path = tmp_path.resolve() / "parser.md"
    own = Stage(tmp_path, [make_response(calls={"edit": edit(path)}), make_response("Done.")])
    own.put()
    own.end()
    assert NEW in path.read_text(encoding="utf-8")
    assert own.told(DocTracked, DocUpdated) == [DocTracked(str(path), "Parser"), DocUpdated(str(path), 1)]
    directive = str(own.models.requests[0].messages[-1].blocks[-1])
    assert OLD in directive
    assert "Keep it short." in directive
    own.models.check_done()


def test_what_the_fork_saw_is_not_what_the_agent_saw(tmp_path: Path) -> None:
    path = tmp_path.resolve() / "parser.md"
    own = Stage(tmp_path, [make_response(calls={"edit": edit(path)}), make_response("Done.")])
    own.put()
    before = own.place.reads.find(str(path))
    own.end()
    assert own.place.reads.find(str(path)) == before
    (result,) = asyncio.run(
        own.box.at(own.place).run(make_response(calls={"edit": edit(path, NEW, "x")}).tool_uses)
    )
    assert result.is_error
    assert "was changed since it was read" in str(result.content)


def test_everything_else_is_denied_with_the_tools_as_they_were(tmp_path: Path) -> None:
    path, other = tmp_path.resolve() / "parser.md", tmp_path.resolve() / "other.md"
    wrong = [
        make_response(calls={"write": {"file_path": str(path), "content": "gone"}}),
        make_response(calls={"edit": edit(other)}),
        make_response(calls={"read": {"file_path": str(other)}}),
        make_response(calls={"edit": {**edit(path), "path": str(other)}}),
    ]
    own = Stage(tmp_path, [*wrong])
    own.put()
    other.write_text(OLD, encoding="utf-8")
    own.end()
    assert path.read_text(encoding="utf-8") == DOC
    assert other.read_text(encoding="utf-8") == OLD
    assert len(own.told(ToolDenied)) == 4
    assert own.told(DocUpdated) == []
    assert all(request.frame.tools == own.parent.frame.tools for request in own.models.requests)


def test_a_path_that_was_turned_into_a_link_is_let_go(tmp_path: Path) -> None:
    own = Stage(tmp_path, ())
    path = own.put()
    own.end(is_idle=False)
    path.rename(tmp_path / "elsewhere.md")
    path.symlink_to(tmp_path / "elsewhere.md")
    own.end()
    assert [type(event) for event in own.told(DocTracked, DocDropped)] == [DocTracked, DocDropped]
    assert own.models.requests == []


def test_a_document_whose_header_is_gone_is_let_go_before_anybody_is_asked(
    tmp_path: Path,
) -> None:
    own = Stage(tmp_path, ())
    path = own.put()
    own.end(is_idle=False)
    path.write_text("# Parser\n", encoding="utf-8")
    own.end()
    (dropped,) = own.told(DocDropped)
    assert "first heading" in str(dropped)
    assert own.writer.tracked == ()


def test_a_document_that_was_removed_is_let_go(tmp_path: Path) -> None:
    own = Stage(tmp_path, ())
    own.put().unlink()
    own.put(name="second.md")
    own.end(is_idle=False)
    (own.root / "second.md").unlink()
    own.end()
    assert len(own.told(DocTracked)) == len(own.told(DocDropped)) == 1


@pytest.mark.parametrize(("is_idle", "may_edit"), [(False, True), (True, False)])
def test_nothing_is_done_in_the_middle_of_work_or_where_nothing_may_be_changed(
    tmp_path: Path, is_idle: bool, may_edit: bool
) -> None:
    own = Stage(tmp_path, ())
    own.put()
    own.end(is_idle=is_idle, may_edit=may_edit)
    assert len(own.told(DocTracked)) == 1
    assert own.models.requests == []


def test_a_rule_that_says_no_is_told_and_holds(tmp_path: Path) -> None:
    own = Stage(tmp_path, ())
    path = own.put()
    own.objection = "a rule denies it"
    own.end()
    assert own.told(DocSkipped) == [DocSkipped(str(path), "a rule denies it")]


def test_a_model_that_fails_costs_this_update_alone(tmp_path: Path) -> None:
    own = Stage(tmp_path, [Overloaded("busy"), make_response("Nothing to change.")])
    own.put()
    own.end()
    own.end()
    assert [str(event) for event in own.told(DocSkipped) if "busy" in str(event)]
    assert own.writer.tracked
    own.models.check_done()


def test_only_so_many_are_kept_and_the_others_are_named(tmp_path: Path) -> None:
    own = Stage(tmp_path, (), DocSettings(documents=1))
    own.put(name="a.md")
    own.put(name="b.md")
    own.end(is_idle=False)
    assert own.writer.tracked == (str(own.root / "a.md"),)
    (skipped,) = own.told(DocSkipped)
    assert "b.md" in str(skipped)


def test_a_document_that_is_too_long_is_told(tmp_path: Path) -> None:
    own = Stage(tmp_path, (), DocSettings(limit_bytes=1_000))
    own.put(DOC + "word " * 1_000)
    own.end()
    assert "1,000 are shown" in str(own.told(DocSkipped)[0])


@pytest.mark.parametrize("name", ["notes.txt", "code.py"])
def test_only_markdown_is_looked_at(tmp_path: Path, name: str) -> None:
    own = Stage(tmp_path, ())
    own.put(name=name)
    own.end()
    assert own.heard == []


def test_a_file_outside_the_project_is_never_tracked(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    own = Stage(tmp_path / "project", ())
    outside = tmp_path.resolve() / "outside.md"
    outside.write_text(DOC, encoding="utf-8")
    own.place.reads.note(str(outside), ReadState("x", is_whole=True))
    own.end()
    assert own.heard == []


def test_a_prompt_of_the_users_own_takes_the_place_of_ours(tmp_path: Path) -> None:
    own = Stage(tmp_path, [make_response("No.")])
    templates = tmp_path / "templates"
    templates.mkdir()
    (templates / "living_doc.md").write_text("Mind {title} at {path}, please.", encoding="utf-8")
    with Folder.open(templates) as folder:
        tools = DocTools("edit", own.box.runner, own.fork, lambda _path: None)
        own.writer = DocWriter(own.place, tools, DocSettings(), folder)
        path = own.put()
        own.end()
    assert f"Mind Parser at {path}, please." in str(own.models.requests[0].messages[-1])
