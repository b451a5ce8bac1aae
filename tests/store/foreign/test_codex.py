"""Codex rollouts, as entries."""

from __future__ import annotations

import pytest

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import RedactedThinking, Text, Thinking, ToolResult, ToolUse, ToolUseId
from sevenfold.core.usage import Usage
from sevenfold.store.foreign.codex import CodexReader
from sevenfold.store.foreign.entries import (
    ForeignCompaction,
    ForeignEntry,
    ForeignInput,
    ForeignOutput,
    ForeignSession,
    JsonFields,
    UnknownLine,
)


def line(kind: str, **payload: object) -> JsonFields:
    return {"timestamp": "2026-06-18T04:58:04.814Z", "type": kind, "payload": payload}


def item(kind: str, **payload: object) -> JsonFields:
    return line("response_item", type=kind, **payload)


def count(prompt: int, cached: int, output: int, total: int) -> JsonFields:
    last = {"input_tokens": prompt, "cached_input_tokens": cached, "output_tokens": output}
    about = {"last_token_usage": last, "total_token_usage": {"total_tokens": total}}
    return line("event_msg", type="token_count", info=about)


def read(*lines: JsonFields) -> list[ForeignEntry]:
    reader = CodexReader()
    return [entry for each in lines for entry in reader.read(each)]


def calls(*lines: JsonFields) -> list[ForeignOutput]:
    return [entry for entry in read(*lines) if isinstance(entry, ForeignOutput)]


def test_the_session_introduces_itself_with_its_instructions() -> None:
    found = read(
        line("session_meta", id="s1", cwd="/srv", cli_version="0.142", base_instructions={"text": "Be good."})
    )
    assert found[0] == ForeignSession("s1", "/srv", "0.142")
    assert isinstance(found[1], ForeignInput)
    assert (found[1].source, found[1].blocks) == ("system_prompt", (Text("Be good."),))


def test_all_that_was_made_since_the_last_count_belongs_to_the_next() -> None:
    found = calls(
        line("turn_context", model="gpt-5.5"),
        item("reasoning", summary=[], encrypted_content="c2VhbGVk"),
        item("function_call", name="exec_command", arguments='{"cmd":"ls"}', call_id="c1"),
        item("function_call_output", call_id="c1", output="a b"),
        count(100, 60, 9, 109),
        item("message", role="assistant", content=[{"type": "output_text", "text": "Done."}]),
        count(130, 100, 3, 242),
    )
    assert [(part.call, part.model) for part in found] == [
        *[("call 0", "gpt-5.5")] * 3,
        *[("call 1", "gpt-5.5")] * 2,
    ]
    assert [part.usage for part in found if part.usage] == [
        Usage(fresh=40, read=60, output=9),
        Usage(fresh=30, read=100, output=3),
    ]
    assert found[0].blocks == (RedactedThinking("c2VhbGVk"),)
    assert all(part.dialect == "openai" for part in found)


def test_a_count_that_is_only_said_again_is_no_call() -> None:
    found = calls(
        count(100, 0, 9, 109), count(100, 0, 9, 109), line("event_msg", type="token_count", info=None)
    )
    assert len(found) == 1


def test_arguments_are_read_from_their_json_or_kept_as_text() -> None:
    ran, patched, searched = calls(
        item("function_call", name="exec_command", arguments='{"cmd":"ls"}', call_id="c1"),
        item("custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="c2"),
        item("web_search_call", action={"query": "tides"}, id="w1"),
    )
    assert ran.blocks == (ToolUse(ToolUseId("c1"), "exec_command", JsonObject({"cmd": "ls"})),)
    assert isinstance(patched.blocks[0], ToolUse)
    assert patched.blocks[0].input == JsonObject({"input": "*** Begin Patch"})
    assert isinstance(searched.blocks[0], ToolUse)
    assert searched.blocks[0].name == "web_search"


@pytest.mark.parametrize(
    ("output", "text"),
    [("plain", "plain"), ({"content": "inner"}, "inner"), ([{"type": "input_text", "text": "part"}], "part")],
)
def test_an_output_is_a_result_in_whatever_form_it_comes(output: object, text: str) -> None:
    (found,) = read(item("function_call_output", call_id="c1", output=output))
    assert isinstance(found, ForeignInput)
    assert isinstance(found.blocks[0], ToolResult)
    assert found.blocks[0].content == text


@pytest.mark.parametrize(
    ("role", "text", "source"),
    [
        ("user", "Fix it", "human"),
        ("user", "<environment_context>", "attachment"),
        ("user", "# AGENTS.md instructions for /srv", "attachment"),
        ("developer", "Fix it", "attachment"),
    ],
)
def test_who_wrote_a_message_is_told_by_its_role_and_beginning(role: str, text: str, source: str) -> None:
    (found,) = read(item("message", role=role, content=[{"type": "input_text", "text": text}]))
    assert isinstance(found, ForeignInput)
    assert found.source == source


def test_after_compaction_what_replaces_the_history_is_said() -> None:
    kept = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it"}]}
    sealed = {"type": "compaction", "encrypted_content": "c2VhbGVk"}
    cut, summary, said, block = read(
        line(
            "compacted",
            message="We fixed it.",
            replacement_history=[kept, sealed, {"type": "ghost_snapshot"}],
        )
    )
    assert isinstance(cut, ForeignCompaction)
    assert isinstance(summary, ForeignInput)
    assert summary.source == "summary"
    assert isinstance(said, ForeignInput)
    assert said.blocks == (Text("Fix it"),)
    assert isinstance(block, ForeignInput)


def test_reasoning_that_is_shown_is_thinking_and_an_empty_one_is_nothing() -> None:
    (shown,) = calls(
        item("reasoning", summary=[{"type": "summary_text", "text": "Hm."}]), item("reasoning", summary=[])
    )
    assert shown.blocks == (Thinking("Hm."),)


def test_rollouts_of_the_first_versions_hold_bare_items() -> None:
    found = read(
        {"id": "s0", "timestamp": "2025-05-01T00:00:00Z", "instructions": None},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"},
        {"record_type": "state"},
    )
    assert [type(entry).__name__ for entry in found] == [
        "ForeignSession",
        "ForeignInput",
        "ForeignOutput",
        "ForeignSession",
    ]


def test_what_nobody_knows_is_named_and_what_is_for_the_screen_is_not() -> None:
    found = read(
        line("event_msg", type="agent_message", message="hi"),
        line("event_msg", type="hologram"),
        item("hologram"),
        line("hologram"),
        {"payload": {}},
    )
    assert found == [
        UnknownLine("event_msg/hologram"),
        UnknownLine("response_item/hologram"),
        UnknownLine("hologram"),
        UnknownLine("(no type)"),
    ]
