"""Claude Code's lines, as entries."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sevenfold.core.messages import Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.usage import Usage
from sevenfold.store.foreign.claude_code import SESSION_LINE_TYPES, ClaudeReader
from sevenfold.store.foreign.entries import (
    MAIN_CONVERSATION,
    ForeignClearing,
    ForeignCompaction,
    ForeignEntry,
    ForeignInput,
    ForeignOutput,
    ForeignSession,
    JsonFields,
    UnknownLine,
)

USAGE = {
    "input_tokens": 5,
    "cache_read_input_tokens": 900,
    "cache_creation_input_tokens": 95,
    "output_tokens": 2,
}


def line(kind: str, **more: object) -> JsonFields:
    return {
        "type": kind,
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": "s1",
        "timestamp": "2026-11-03T10:00:00.000Z",
        "isSidechain": False,
        **more,
    }


def answer(*content: object, **more: object) -> JsonFields:
    message = {"id": "msg_1", "model": "claude-opus-5-5", "role": "assistant", "content": list(content)}
    return line("assistant", message={**message, "usage": USAGE, **more})


def entries(*lines: JsonFields) -> list[ForeignEntry]:
    reader = ClaudeReader()
    return [entry for item in lines for entry in reader.read(item) if not isinstance(entry, ForeignSession)]


def only(*lines: JsonFields) -> ForeignEntry:
    (found,) = entries(*lines)
    return found


def test_a_users_text_is_said_by_a_person() -> None:
    found = only(line("user", message={"role": "user", "content": "Hello"}))
    assert isinstance(found, ForeignInput)
    assert (found.conversation, found.key, found.source) == (MAIN_CONVERSATION, "u1", "human")
    assert found.at == datetime(2026, 11, 3, 10, tzinfo=UTC)
    assert found.blocks == (Text("Hello"),)


@pytest.mark.parametrize(
    ("content", "flags", "source"),
    [
        ("<command-name>/model</command-name>", {}, "attachment"),
        ("<local-command-stdout>ok</local-command-stdout>", {}, "attachment"),
        ([{"type": "text", "text": "[Request interrupted by user]"}], {}, "attachment"),
        ("anything", {"isMeta": True}, "attachment"),
        ("This session is being continued", {"isCompactSummary": True}, "summary"),
        ([{"type": "text", "text": "Look <here>"}], {}, "human"),
    ],
)
def test_who_wrote_a_users_line_is_told_by_its_flags_and_its_beginning(
    content: object, flags: dict[str, object], source: str
) -> None:
    found = only(line("user", message={"role": "user", "content": content}, **flags))
    assert isinstance(found, ForeignInput)
    assert found.source == source


def test_an_assistants_line_is_part_of_a_call_with_its_usage() -> None:
    found = only(answer({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/x"}}))
    assert isinstance(found, ForeignOutput)
    assert (found.call, found.model, found.is_complete) == ("msg_1", "claude-opus-5-5", False)
    assert found.usage == Usage(fresh=5, read=900, written_5m=95, output=2)
    assert isinstance(found.blocks[0], ToolUse)


def test_a_stop_reason_makes_an_output_count_final() -> None:
    found = only(answer({"type": "text", "text": "Done."}, stop_reason="end_turn"))
    assert isinstance(found, ForeignOutput)
    assert found.is_complete


def test_what_the_provider_cleared_is_summed_up() -> None:
    edits = [{"type": "clear_tool_uses_20250919", "cleared_input_tokens": 700}, {"cleared_input_tokens": 30}]
    found = only(answer({"type": "text", "text": "x"}, context_management={"applied_edits": edits}))
    assert isinstance(found, ForeignOutput)
    assert found.cleared_tokens == 730


def test_an_answer_that_claude_code_made_up_is_no_call() -> None:
    found = only(answer({"type": "text", "text": "API Error"}, model="<synthetic>"))
    assert isinstance(found, ForeignInput)
    assert (found.role, found.source) == ("assistant", "attachment")


def test_usage_that_cannot_be_read_is_none_and_does_not_stop_the_next() -> None:
    bad = answer({"type": "text", "text": "x"}, usage={"input_tokens": "many"})
    good = answer({"type": "text", "text": "y"})
    first, second = entries(bad, good)
    assert isinstance(first, ForeignOutput)
    assert isinstance(second, ForeignOutput)
    assert first.usage is None
    assert second.usage is not None


def test_a_tool_result_keeps_the_id_it_answers() -> None:
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "42"}
    found = only(line("user", message={"role": "user", "content": [block]}))
    assert isinstance(found, ForeignInput)
    assert found.blocks == (ToolResult(ToolUseId("toolu_1"), "42"),)


def test_an_agents_id_is_its_lane() -> None:
    found = only(line("user", isSidechain=True, agentId="a1", message={"role": "user", "content": "Search"}))
    assert isinstance(found, ForeignInput)
    assert found.conversation == "a1"


def test_sidechains_without_an_id_are_kept_apart_by_their_parents() -> None:
    def side(uuid: str, parent: str | None) -> JsonFields:
        message = {"role": "user", "content": uuid}
        return {**line("user", isSidechain=True, message=message), "uuid": uuid, "parentUuid": parent}

    found = entries(side("a", None), side("x", None), side("b", "a"), side("y", "x"), side("c", "b"))
    conversations = [entry.conversation for entry in found if isinstance(entry, ForeignInput)]
    assert conversations == ["a", "x", "a", "x", "a"]


def test_a_sub_agents_lines_are_read_from_its_parents_file_too() -> None:
    mirrored = {"type": "assistant", "timestamp": "2026-11-03T10:00:01Z", "message": answer()["message"]}
    asked = {"type": "user", "message": {"role": "user", "content": "Search"}}
    first, second = entries(
        line("progress", data={"type": "agent_progress", "agentId": "a9", "message": asked}),
        line("progress", data={"type": "agent_progress", "agentId": "a9", "message": mirrored}),
    )
    assert isinstance(first, ForeignInput)
    assert isinstance(second, ForeignOutput)
    assert first.conversation == second.conversation == "a9"


@pytest.mark.parametrize("kind", ["bash_progress", "hook_progress", "query_update"])
def test_other_progress_is_nothing(kind: str) -> None:
    assert entries(line("progress", data={"type": kind, "message": "..."})) == []


def test_a_compact_boundary_names_the_lines_it_kept() -> None:
    about = {"trigger": "auto", "preTokens": 155_301, "preservedMessages": {"uuids": ["u7", "u8"]}}
    found = only(line("system", subtype="compact_boundary", compactMetadata=about))
    assert isinstance(found, ForeignCompaction)
    assert (found.before_tokens, found.kept, found.kept_from) == (155_301, {"u7", "u8"}, "")


def test_a_compact_boundary_names_the_first_of_a_run_that_it_kept() -> None:
    about = {"preTokens": 9, "preservedSegment": {"headUuid": "u7", "tailUuid": "u9"}}
    found = only(line("system", subtype="compact_boundary", compactMetadata=about))
    assert isinstance(found, ForeignCompaction)
    assert (found.kept, found.kept_from) == (frozenset(), "u7")


def test_a_microcompact_boundary_names_the_results_it_cleared() -> None:
    about = {"preTokens": 60_497, "tokensSaved": 21_279, "compactedToolIds": ["toolu_1", "toolu_2"]}
    found = only(line("system", subtype="microcompact_boundary", microcompactMetadata=about))
    assert isinstance(found, ForeignClearing)
    assert (found.tool_use_ids, found.saved_tokens) == ({"toolu_1", "toolu_2"}, 21_279)


@pytest.mark.parametrize(
    ("attachment", "source"),
    [("environment", "attachment"), ("instructions", "memory"), ("nested_memory", "memory")],
)
def test_an_attachment_counts_as_it_was_rendered(attachment: str, source: str) -> None:
    found = only(line("attachment", attachment={"type": attachment}, rendered=["Today is Tuesday."]))
    assert isinstance(found, ForeignInput)
    assert (found.source, found.blocks) == (source, (Text("Today is Tuesday."),))


@pytest.mark.parametrize("kind", sorted(SESSION_LINE_TYPES))
def test_lines_about_the_session_are_no_part_of_it(kind: str) -> None:
    assert entries(line(kind)) == []


def test_a_type_nobody_knows_is_named() -> None:
    assert entries(line("hologram"), {"uuid": "u"}) == [UnknownLine("hologram"), UnknownLine("(no type)")]


def test_what_a_file_says_of_itself_is_said_when_it_changes() -> None:
    reader = ClaudeReader()
    first = line("user", message={"role": "user", "content": "a"}, cwd="/srv/app", version="2.1.9")
    found = [
        item for each in (first, first) for item in reader.read(each) if isinstance(item, ForeignSession)
    ]
    assert found == [ForeignSession("s1", "/srv/app", "2.1.9")]


def test_printed_streams_are_read_as_well() -> None:
    message = {"role": "user", "content": "Hi"}
    main = {"type": "user", "message": message, "session_id": "s2", "parent_tool_use_id": None}
    sub = {**main, "parent_tool_use_id": "toolu_7"}
    found = entries(main, sub, {"type": "result", "total_cost_usd": 1.0})
    assert [entry.conversation for entry in found if isinstance(entry, ForeignInput)] == ["", "toolu_7"]


def test_the_session_is_introduced_again_where_it_moves_and_not_by_sub_agents() -> None:
    said = {"message": {"role": "user", "content": "Hello"}}
    reader = ClaudeReader()
    lines = (
        line("user", cwd="/here", version="1", **said),
        line("user", cwd="/agent", version="1", agentId="a1", isSidechain=True, **said),
        line("user", cwd="/there", version="1", **said),
    )
    found = [entry for item in lines for entry in reader.read(item) if isinstance(entry, ForeignSession)]
    assert [one.project for one in found] == ["/here", "/there"]
