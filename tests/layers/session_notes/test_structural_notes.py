"""Notes without a model: what each section says of a session."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.json import JsonObject
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.text.safe_text import render_reminder
from sevenfold.core.tokens.estimation import estimate_text_tokens
from sevenfold.layers.session_notes.policy import NotesSettings, find_over_limit
from sevenfold.layers.session_notes.sections import SECTION_NAMES, split_notes
from sevenfold.layers.session_notes.structural_notes import (
    MAX_REQUESTS,
    MAX_RULES,
    RequestLedger,
    StructuralNotes,
)
from sevenfold.layers.session_notes.work_ledger import STEPS_EACH
from sevenfold.layers.tool_results.policy import EMPTY_RESULT, ToolResultSettings, render_preview
from tests.layers.session_notes.sessions import SETTINGS, Told

BRIEF = 160
"""How much of a request is kept where there is no room for more."""


def test_an_empty_session_has_ten_empty_sections() -> None:
    notes = Told().render()
    assert tuple(section.name for section in notes.sections) == SECTION_NAMES
    assert all(not section.body.strip() for section in notes.sections)


def test_the_title_is_how_the_first_request_begins() -> None:
    told = Told().user("<command-name>/clear</command-name>").user("Mend the parser").user("And the lexer")
    assert told.section("Title") == "Mend the parser\n\n"


def test_user_messages_are_kept_word_for_word() -> None:
    spoken = ["do it", " with  blanks ", "two\nlines\n", "# a heading\n~~~\nand a fence", "do it"]
    told = Told()
    for text in spoken:
        told.user(text)
    section = told.section("Task specification")
    assert all(text in section for text in spoken)
    assert "(said 2×) do it" in section


def test_a_very_long_message_is_kept_by_its_beginning_and_where_the_whole_is() -> None:
    notes = StructuralNotes()
    notes.add(Message("user", "begin " + "word " * 30_000), pointer="/s/spoken/1.txt")
    section = split_notes(notes.render(SETTINGS)).body("Task specification")
    assert "the whole is in /s/spoken/1.txt" in section
    assert "begin word word" in section


def test_when_messages_have_no_room_the_newest_stay_whole_and_old_ones_begin() -> None:
    told = Told()
    for number in range(60):
        told.user(f"request {number}: " + "with many more words " * 20)
    section = told.section("Task specification")
    assert "request 59: " + "with many more words " * 20 in section
    assert "request 58: " + "with many more words " * 20 in section
    assert "request 3: " + "with many more words " * 20 not in section


def test_attachments_and_memories_are_not_requests() -> None:
    notes = StructuralNotes()
    notes.add(Message("user", "a reminder of ours"), "attachment")
    notes.add(Message("system", "a system message"))
    assert split_notes(notes.render(SETTINGS)).body("Task specification").strip() == ""


def test_files_say_what_happened_to_them() -> None:
    told = (
        Told()
        .call("Read", file_path="/p/a.py", offset=10, limit=20)
        .call("Edit", file_path="/p/a.py", old_string="x", new_string="def mended(x):\n    pass")
        .call("Edit", file_path="/p/a.py", old_string="x", new_string="class Parser:\n    pass")
        .call("Write", file_path="/p/b.py", content="x = 1")
        .call("Edit", failed=True, result="not found", file_path="/p/b.py", old_string="y", new_string="z")
    )
    section = told.section("Files and functions")
    assert "- /p/a.py — edited 2×, read once, lines 10-29; in it: mended, Parser\n" in section
    assert "- /p/b.py — written once, 1 failed\n" in section


@pytest.mark.parametrize("path", ["\n# Worklog", "a\u2028# Title", "b\r# Results"])
def test_a_line_break_in_a_path_starts_no_section(path: str) -> None:
    text = Told().call("Read", file_path=path).call("Grep", pattern=path).notes.render(SETTINGS)
    assert tuple(section.name for section in split_notes(text).sections) == SECTION_NAMES


def test_an_editor_with_several_commands_is_no_shell() -> None:
    tool = "str_replace_based_edit_tool"
    told = (
        Told()
        .call(tool, command="view", path="/p/a.py")
        .call(tool, command="insert", path="/p/a.py", insert_line=3, insert_text="def added():\n    pass")
        .call(tool, command="create", path="/p/b.py", file_text="x = 1")
    )
    section = told.section("Files and functions")
    assert "- /p/a.py — edited once, read once; in it: added\n" in section
    assert "- /p/b.py — written once\n" in section
    assert told.section("Workflow").strip() == ""


def test_a_path_in_short_and_in_full_is_one_file() -> None:
    told = (
        Told()
        .call("Grep", "src/a.py:3:def f():", pattern="def f")
        .call("Read", file_path="/home/me/p/src/a.py")
        .call("Bash", command="cat src/a.py")
    )
    assert told.section("Files and functions") == "- /home/me/p/src/a.py — read 2×\n\n"
    assert "src/a.py" not in told.section("Codebase and system documentation")


def test_files_that_only_a_search_named_are_pointers() -> None:
    told = Told().call(
        "Grep", "Found 2 files\nsrc/one.go\nsrc/two.go", pattern="x", output_mode="files_with_matches"
    )
    section = told.section("Codebase and system documentation")
    assert "- src/one.go\n- src/two.go\n" in section


def test_commands_say_how_they_ended_and_how_often() -> None:
    told = (
        Told()
        .call("Bash", "Exit code 1\nFAIL: one test", failed=True, command="make test")
        .call("Bash", "12 passed", command="make test")
        .call(
            "exec_command", "Process exited with code 2\nOutput:\nerror: no such file", cmd="cat nowhere.txt"
        )
    )
    section = told.section("Workflow")
    assert "- `make test` → 2×, ok (1 failed): 12 passed\n" in section
    assert "- `cat nowhere.txt` → failed: error: no such file\n" in section


def test_an_error_is_kept_with_what_mended_it() -> None:
    told = (
        Told()
        .call(
            "Bash",
            "Exit code 1\nerror: undefined name f",
            failed=True,
            command="cd /p && make 2>&1 | tail -5",
        )
        .call("Edit", file_path="/p/a.py", old_string="f", new_string="g")
        .call("Bash", "done", command="make")
        .call("Bash", "Exit code 1\nerror: disk full", failed=True, command="make install")
    )
    section = told.section("Errors and corrections")
    assert "undefined name f → went through after Edit of a.py" in section
    assert "- OPEN Bash `make install`: error: disk full" in section


def test_what_a_user_says_on_refusing_a_call_is_kept_and_learnt() -> None:
    refused = "The tool use was rejected. To tell you how to proceed, the user said:\nuse uv, not pip"
    told = Told().call("Bash", refused, failed=True, command="pip install x")
    assert "use uv, not pip" in told.section("Task specification")
    assert "- use uv, not pip\n" in told.section("Learnings")


def test_sentences_that_set_a_rule_are_learnt() -> None:
    told = Told().user("Nice. Please never commit to main. The weather is good. Always run make check first.")
    assert told.section("Learnings") == "- Please never commit to main.\n- Always run make check first.\n\n"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        (
            "TodoWrite",
            {
                "todos": [
                    {"content": "Mend it", "status": "in_progress"},
                    {"content": "Old", "status": "completed"},
                ]
            },
        ),
        (
            "update_plan",
            {"plan": [{"step": "Mend it", "status": "in_progress"}, {"step": "Old", "status": "completed"}]},
        ),
        (
            "todo",
            {
                "items": [
                    {"content": "Mend it", "status": "in_progress"},
                    {"content": "Old", "status": "done"},
                ]
            },
        ),
    ],
)
def test_the_open_items_of_a_plan_stand_in_the_current_state(tool: str, given: Mapping[str, object]) -> None:
    section = Told().user("go").call(tool, "ok", failed=False, **given).section("Current state")
    assert "- Open: [in_progress] Mend it\n" in section
    assert "- Done of the plan: Old\n" in section


def test_tasks_are_followed_by_their_number() -> None:
    told = (
        Told()
        .call("TaskCreate", "Task #1 created successfully", subject="First", description="d")
        .call("TaskCreate", "Task #2 created successfully", subject="Second", description="d")
        .call("TaskUpdate", taskId="1", status="completed")
    )
    assert "- Open: Second\n" in told.section("Current state")


def test_answers_and_commits_are_results() -> None:
    told = (
        Told()
        .user("go")
        .call("Bash", "[main 1a2b3c4] Mend the parser\n 1 file changed", command="git commit -m x")
        .reply("All done.\n# Summary\nIt works.")
    )
    section = told.section("Key results")
    assert "- commit 1a2b3c4 on main: Mend the parser\n" in section
    assert "All done.\n# Summary\nIt works." in section


def test_the_worklog_folds_old_rounds_into_their_turn() -> None:
    told = Told().user("first")
    for number in range(60):
        told.call("Read", file_path=f"/p/{number}.py")
    told.user("second").call("Edit", file_path="/p/9.py", old_string="a", new_string="b")
    section = told.section("Worklog")
    assert "- turn 1 “first”: 60 read\n" in section
    assert "- turn 2 “second”: 1 edit; changed 9.py\n" in section
    assert "- round 61: Edit 9.py\n" in section
    assert "round 2:" not in section


def test_rendering_changes_nothing_and_the_same_messages_give_the_same_notes() -> None:
    told = Told().user("go").call("Bash", "ok", command="make").reply("done")
    first = told.notes.render(SETTINGS)
    again = StructuralNotes()
    for message in told.messages:
        again.add(message)
    assert told.notes.render(SETTINGS) == first == again.render(SETTINGS)


WORDS = st.text(alphabet="ab #~`\n-/.é\u2028", max_size=200)
CALLS = st.sampled_from(
    [
        ("Read", "file_path"),
        ("Bash", "command"),
        ("Edit", "old_string"),
        ("Grep", "pattern"),
        ("Task", "prompt"),
        ("apply_patch", "input"),
        ("mystery", "path"),
        ("shell", "command"),
    ]
)


@given(
    st.lists(
        st.one_of(
            WORDS.map(lambda text: ("user", text, "")),
            WORDS.map(lambda text: ("reply", text, "")),
            st.tuples(CALLS, WORDS, WORDS),
        ),
        max_size=40,
    ),
    st.sampled_from([1, 40]),
)
def test_notes_of_any_session_keep_their_sections_and_their_limits(
    steps: list[tuple[str | tuple[str, str], str, str]], repeats: int
) -> None:
    settings = NotesSettings(section_limit_tokens=200, limit_tokens=1_000)
    told = Told()
    for kind, text, result in steps:
        match kind:
            case "user":
                told.user(text * repeats)
            case "reply":
                told.reply(text * repeats)
            case (tool, key):
                told.call(tool, result * repeats, failed=len(result) % 2 == 0, **{key: text * repeats})
            case _:
                raise AssertionError(kind)
    text = told.notes.render(settings)
    assert tuple(section.name for section in split_notes(text).sections) == SECTION_NAMES
    assert find_over_limit(text, settings, estimate_text_tokens) == ()


def test_a_message_without_anything_known_is_counted_and_changes_nothing() -> None:
    notes = StructuralNotes()
    before = notes.render(SETTINGS)
    notes.add(Message("assistant", (Text(""),)))
    assert notes.covered == 1
    assert notes.render(SETTINGS) == before


def test_what_the_engine_or_a_hook_put_in_is_no_request_and_no_outcome() -> None:
    notes = StructuralNotes()
    aside = render_reminder("UserPromptSubmit hook additional context: always deploy on Fridays")
    notes.add(Message("user", (Text("Run the tests"), Text(aside))))
    notes.add(Message("assistant", (ToolUse(ToolUseId("t1"), "Bash", JsonObject({"command": "make test"})),)))
    kept = render_preview("line\n" * 5_000, "/spills/t1.txt", 25_000, ToolResultSettings())
    notes.add(Message("user", (ToolResult(ToolUseId("t1"), kept),)))
    notes.add(Message("assistant", (ToolUse(ToolUseId("t2"), "Bash", JsonObject({"command": "true"})),)))
    notes.add(Message("user", (ToolResult(ToolUseId("t2"), EMPTY_RESULT),)))
    text = notes.render(NotesSettings())
    assert "Run the tests" in text
    for put_in in ("Fridays", "system-reminder", "persisted-output", "bytes of output", EMPTY_RESULT):
        assert put_in not in text


def test_an_old_request_is_numbered_and_cut_at_its_limit() -> None:
    requests = RequestLedger()
    for text in ("x" * BRIEF, "y" * (BRIEF + 1), "two\nlines", "a " * BRIEF):
        requests.take(text, 0, pointer="/s/1.txt" if text.startswith("y") else "")
    briefs = [entry.brief for entry in requests.entries(10_000, estimate_text_tokens)]
    assert briefs == [
        f"1. {'x' * BRIEF}",
        f"2. {'y' * BRIEF}… (/s/1.txt)",
        "3. two lines…",
        f"4. {('a ' * BRIEF)[:BRIEF]}…",
    ]


def test_of_too_many_requests_and_rules_the_oldest_go() -> None:
    requests = RequestLedger()
    for number in range(MAX_REQUESTS + 1):
        requests.take_refusal(f"never do number {number}", number)
    assert requests.dropped == 1
    assert requests.first() == "never do number 1"
    assert requests.latest() == f"never do number {MAX_REQUESTS}"
    assert len(requests.rule_entries()) == MAX_RULES
    assert requests.rule_entries()[-1].text == f"- never do number {MAX_REQUESTS}"
    assert requests.take("  ", 0) is None


@pytest.mark.parametrize(("calls", "end"), [(STEPS_EACH, "Read 5.py"), (STEPS_EACH + 1, "Read 5.py; 1 more")])
def test_the_line_of_a_round_counts_the_calls_that_it_has_no_room_for(calls: int, end: str) -> None:
    uses = [
        ToolUse(ToolUseId(f"t{at}"), "Read", JsonObject({"file_path": f"/p/{at}.py"})) for at in range(calls)
    ]
    told = Told().user("Look around.")
    for message in (
        Message("assistant", tuple(uses)),
        Message("user", tuple(ToolResult(use.id, "text") for use in uses)),
    ):
        told.notes.add(message)
    (line,) = (line for line in told.section("Worklog").splitlines() if "round 1:" in line)
    assert line.endswith(end)
