"""What an agent's forks may do: the notes and living documents, each its own file and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sevenfold.agent.loop.agent import Agent
from sevenfold.agent.opening.background_work import add_doc_writer
from sevenfold.agent.opening.open_agent import AgentOptions
from sevenfold.agent.tools.file_changes import EditTool, WriteTool
from sevenfold.agent.tools.read import ReadTool
from sevenfold.core.events import DocSkipped, DocUpdated, NotesUpdated, ToolDenied
from sevenfold.core.requests import ModelRequest, ModelResponse
from sevenfold.core.settings.sections import PermissionMode
from sevenfold.layers.living_docs.policy import DocSettings
from sevenfold.providers.scripted import ScriptedProvider, make_response
from tests.agent.workshop import Plain, Shop

TOOLS = (ReadTool(), WriteTool(), EditTool(), Plain(name="shell", kind="run"))
CHEAPEST = "claude-haiku-5-5"
"""Of the models of that maker: it is asked for itself, since nobody else costs less."""
DOC = "# MAGIC DOC: Parser\n\nIt reads the old format.\n"


def denied_calls(inside: Path, target: str) -> dict[str, Mapping[str, object]]:
    """Everything that a fork must not do, beside an edit of a file that is not its own."""
    return {
        "read": {"file_path": str(inside)},
        "write": {"file_path": target, "content": "mine"},
        "shell": {"command": "touch owned"},
        "edit": {"file_path": str(inside), "old_string": "a", "new_string": "b"},
    }


def is_unchanged(requests: list[ModelRequest]) -> bool:
    """Whether every request declares the same tools under the same system prompt."""
    return len({(request.frame.tools, request.frame.system) for request in requests}) == 1


def notes_of(agent: Agent) -> Path:
    folder = agent.place.session_folder
    assert folder is not None
    return folder / "notes.md"


def with_model_notes(setup: AgentOptions) -> AgentOptions:
    return replace(setup, settings={"notes": {"writer": "model", "first_update_tokens": 0}})


def test_the_notes_are_written_by_a_fork_that_may_edit_them_and_nothing_else(tmp_path: Path) -> None:
    async def tell() -> None:
        other = tmp_path / "project" / "other.md"
        seen: list[str] = []

        def write_notes(request: ModelRequest) -> ModelResponse:
            directive = str(request.messages[-1].blocks[-1])
            path = directive.partition("The file is ")[2].partition(". You may use")[0]
            seen.append(path)
            old = {
                "file_path": path,
                "old_string": "# Current state",
                "new_string": "# Current state\nBy a model.",
            }
            calls = denied_calls(other, path)
            mine = make_response(calls={"edit": old})
            return replace(
                mine,
                message=replace(
                    mine.message, content=(*make_response(calls=calls).message.blocks, *mine.message.blocks)
                ),
            )

        with ScriptedProvider([make_response("Fine.")], by_purpose={"notes": write_notes}) as models:
            shop = Shop(home=tmp_path, provider=models, tools=TOOLS, change=with_model_notes)
            other.parent.mkdir()
            other.write_text("a", encoding="utf-8")
            agent = await shop.open()
            await agent.run_turn("Hello. " + "word " * 200)
            path = notes_of(agent)
            await agent.close()
        assert seen[:1] == [str(path)]
        assert "By a model." in path.read_text(encoding="utf-8")
        assert other.read_text(encoding="utf-8") == "a"
        denied = [
            event.tool
            for event in shop.noted.events
            if isinstance(event, ToolDenied) and event.who == "notes"
        ]
        assert denied[:4] == ["read", "write", "shell", "edit"]
        assert any(isinstance(event, NotesUpdated) and event.writer == "model" for event in shop.noted.events)
        assert is_unchanged(models.requests)

    asyncio.run(tell())


def doc_turn(path: Path) -> list[ModelResponse]:
    return [
        make_response(calls={"read": {"file_path": str(path)}}),
        make_response("It reads both formats now."),
    ]


@pytest.mark.parametrize("mode", ["accept-edits", "bypass"])
def test_a_living_document_is_edited_by_a_fork_that_may_do_nothing_else(
    tmp_path: Path, mode: PermissionMode
) -> None:
    async def tell() -> None:
        doc = tmp_path / "project" / "parser.md"
        other = tmp_path / "project" / "other.md"
        own = {"file_path": str(doc), "old_string": "the old format", "new_string": "both formats"}
        steps = [
            make_response(calls=denied_calls(other, str(doc))),
            make_response(calls={"edit": own}),
            make_response("Done."),
        ]
        with ScriptedProvider(doc_turn(doc), by_purpose={"living doc": steps}) as models:
            shop = Shop(home=tmp_path, provider=models, tools=TOOLS)
            doc.parent.mkdir()
            doc.write_text(DOC, encoding="utf-8")
            other.write_text("a", encoding="utf-8")
            agent = await shop.open(mode=mode, model=CHEAPEST)
            await agent.run_turn("What does the parser read?")
            await agent.settle()
            await agent.close()
        assert "both formats" in doc.read_text(encoding="utf-8")
        assert other.read_text(encoding="utf-8") == "a"
        assert DocUpdated(str(doc), 1) in shop.noted.events
        assert len(shop.noted.of("ToolDenied")) == 4
        assert is_unchanged(models.requests)
        assert "living doc" in [spent.who for spent in agent.session.spent]

    asyncio.run(tell())


def test_a_cheap_model_edits_a_document_where_that_costs_less_and_may_do_as_little(tmp_path: Path) -> None:
    async def tell() -> None:
        doc, other = tmp_path / "project" / "parser.md", tmp_path / "project" / "other.md"
        own = {"file_path": str(doc), "old_string": "the old format", "new_string": "both formats"}
        steps = [
            make_response(calls=denied_calls(other, str(doc))),
            make_response(calls={"edit": own}),
            make_response("Done."),
        ]
        with ScriptedProvider(doc_turn(doc), by_purpose={"living doc": steps}) as models:
            shop = Shop(home=tmp_path, provider=models, tools=TOOLS)
            doc.parent.mkdir()
            doc.write_text(DOC, encoding="utf-8")
            other.write_text("a", encoding="utf-8")
            agent = await shop.open(mode="accept-edits")
            await agent.run_turn("What does the parser read?")
            await agent.settle()
            await agent.close()
        assert "both formats" in doc.read_text(encoding="utf-8")
        assert other.read_text(encoding="utf-8") == "a"
        assert len(shop.noted.of("ToolDenied")) == 4
        asked = [request for request in models.requests if request.purpose == "living doc"]
        assert {request.frame.model for request in asked} == {CHEAPEST}
        assert {one.who: one.calls for one in agent.session.spent}["living doc"] == len(asked)
        assert [tool["name"] for tool in asked[0].frame.tools] == ["edit"]
        assert "What does the parser read?" in str(asked[0].messages[0])

    asyncio.run(tell())


@pytest.mark.parametrize(
    ("mode", "name"), [("ask", "parser.md"), ("ask", "AGENTS.md"), ("accept-edits", ".claude/notes.md")]
)
def test_the_heading_of_a_strangers_page_does_not_have_it_edited_where_a_person_would_be_asked(
    tmp_path: Path, mode: PermissionMode, name: str
) -> None:
    async def tell() -> None:
        doc = tmp_path / "project" / name
        with ScriptedProvider([*doc_turn(doc), make_response("Well.")]) as models:
            shop = Shop(home=tmp_path, provider=models, tools=TOOLS)
            doc.parent.mkdir(parents=True)
            doc.write_text(DOC, encoding="utf-8")
            agent = await shop.open(mode=mode, model=CHEAPEST)
            await agent.run_turn("What does the parser read?")
            await agent.settle()
            await agent.run_turn("And now?")
            await agent.settle()
            await agent.close()
        assert doc.read_text(encoding="utf-8") == DOC
        (skipped,) = [event for event in shop.noted.events if isinstance(event, DocSkipped)]
        assert "permissions.allow" in skipped.reason
        assert "living doc" not in [spent.who for spent in agent.session.spent]

    asyncio.run(tell())


@pytest.mark.parametrize("mode", ["plan", "read-only"])
def test_no_document_is_touched_in_a_mode_that_changes_nothing(tmp_path: Path, mode: PermissionMode) -> None:
    async def tell() -> None:
        doc = tmp_path / "project" / "parser.md"
        with ScriptedProvider(doc_turn(doc)) as models:
            shop = Shop(home=tmp_path, provider=models, tools=TOOLS)
            doc.parent.mkdir()
            doc.write_text(DOC, encoding="utf-8")
            agent = await shop.open(mode=mode)
            await agent.run_turn("What does the parser read?")
            await agent.settle()
            await agent.close()
        assert doc.read_text(encoding="utf-8") == DOC
        assert len(shop.noted.of("DocTracked")) == 1

    asyncio.run(tell())


def test_an_agent_without_an_edit_tool_keeps_no_documents(tmp_path: Path) -> None:
    async def tell() -> None:
        with ScriptedProvider() as models:
            agent = await Shop(home=tmp_path, provider=models, tools=(ReadTool(),)).open()
            assert not add_doc_writer(agent, DocSettings())
            await agent.close()

    asyncio.run(tell())
