"""Messages with less in them."""

from __future__ import annotations

from sevenfold.core.json import EMPTY_OBJECT, JsonObject
from sevenfold.core.messages import (
    THINKING_PLACEHOLDER,
    Compaction,
    Document,
    Image,
    Message,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    ToolUseId,
)
from sevenfold.layers.compaction.keep_policy import RestoredFile, render_restored_file
from sevenfold.layers.compaction.trim import (
    ensure_user_first,
    with_short_results,
    without_compaction_blocks,
    without_media,
    without_restored,
    without_system_role,
    without_thinking,
)

SOURCE = JsonObject({"type": "url", "url": "https://example.org/a"})
USE = ToolUse(ToolUseId("a"), "Read", EMPTY_OBJECT)
PLAIN = Message("user", "Hello.")


def test_all_thinking_goes_and_other_messages_are_the_same_objects() -> None:
    thinks = Message("assistant", (Thinking("hm", "s"), RedactedThinking("x"), Text("So."), USE))
    alone = Message("assistant", (Thinking("hm", "s"),))
    plain, stripped, empty = without_thinking([PLAIN, thinks, alone])
    assert plain is PLAIN
    assert stripped.content == (Text("So."), USE)
    assert empty.content == (Text(THINKING_PLACEHOLDER),)


def test_media_is_named_inside_results_too() -> None:
    result = ToolResult(ToolUseId("a"), (Text("shot:"), Image(SOURCE)))
    message = Message("user", (result, Document(SOURCE), Text("look")))
    (named,) = without_media([message])
    assert named.content == (
        ToolResult(ToolUseId("a"), (Text("shot:"), Text("[image]"))),
        Text("[document]"),
        Text("look"),
    )
    assert without_media([PLAIN])[0] is PLAIN


def test_what_was_restored_before_goes() -> None:
    message = Message(
        "user", (Text("Summary."), render_restored_file(RestoredFile("/a.py", "code", is_cut=False)))
    )
    assert without_restored([message])[0].content == (Text("Summary."),)


def test_a_compaction_block_becomes_the_users_text() -> None:
    block = Message("assistant", (Compaction("All that was said."),))
    assert without_compaction_blocks([block, PLAIN]) == (
        Message("user", (Text("All that was said."),)),
        PLAIN,
    )


def test_system_messages_become_the_users() -> None:
    assert without_system_role([Message("system", "x"), PLAIN]) == (Message("user", "x"), PLAIN)


def test_long_results_keep_their_beginning_and_a_pointer() -> None:
    results = Message(
        "user",
        (
            ToolResult(ToolUseId("a"), "line\n" * 1_000, is_error=True),
            ToolResult(ToolUseId("b"), "short"),
            ToolResult(ToolUseId("c"), (Text("x" * 900), Image(SOURCE))),
        ),
    )
    (cut,) = with_short_results([results], 100, "all of it is in /t")
    first, second, third = cut.blocks
    assert isinstance(first, ToolResult)
    assert isinstance(first.content, str)
    assert first.content.startswith("line\n")
    assert first.content.endswith("4,900 characters; all of it is in /t]")
    assert first.is_error
    assert second is results.blocks[1]
    assert isinstance(third, ToolResult)
    assert isinstance(third.content, str)


def test_a_view_is_opened_by_the_user() -> None:
    answer = Message("assistant", "Done.")
    assert ensure_user_first([PLAIN, answer], "…") == (PLAIN, answer)
    assert ensure_user_first([answer], "…") == (Message("user", "…"), answer)
    assert ensure_user_first([], "…") == (Message("user", "…"),)
