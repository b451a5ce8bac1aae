"""Sessions are listed by their first words, age and cost, and the end of one is shown again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.cells import cell_len

from sevenfold.agent.tui.choice_menu import FilterMenu
from sevenfold.agent.tui.session_list import (
    SHOWN_TURNS,
    UNREADABLE_TITLE,
    SessionCard,
    find_session_card,
    list_session_choices,
    merge_spent,
    read_session_card,
    render_age,
    render_history_tail,
    render_session_cards,
)
from sevenfold.agent.tui.text_renderer import TextRenderer
from sevenfold.core.json import freeze_object
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.prices import CATALOG
from sevenfold.core.usage import Usage
from sevenfold.session.cache.monitor import UsageLedger
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.records import MessageRecord, ParentRecord, Record, UsageRecord, write_line
from sevenfold.store.transcript.transcript import SessionEntry, SessionId

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
USAGE = UsageRecord(
    model="claude-opus-4-5",
    who="main",
    wire=freeze_object({"input_tokens": 1_000_000, "output_tokens": 0}),
)


def write_session(
    folder: Path, name: str, *bodies: MessageRecord | UsageRecord | ParentRecord
) -> SessionEntry:
    folder.joinpath(f"{name}.jsonl").write_bytes(b"".join(write_line(Record(body, NOW)) for body in bodies))
    return SessionEntry(SessionId(name), 9, NOW - timedelta(hours=3))


def read_card(folder: Path, entry: SessionEntry) -> SessionCard:
    with Folder.open(folder) as sessions:
        return read_session_card(sessions, entry, CATALOG)


def said(text: str) -> MessageRecord:
    return MessageRecord(Message("user", text))


def test_a_session_is_called_by_the_first_words_of_a_person(tmp_path: Path) -> None:
    reminder = said("<system-reminder>\nthe date\n</system-reminder>")
    entry = write_session(tmp_path, "a1", reminder, said("Mend the\nparser"), said("and go on"), USAGE, USAGE)
    card = read_card(tmp_path, entry)
    assert card.title == "Mend the parser"
    assert card.spent_usd == pytest.approx(10.0)
    (line,) = render_session_cards([card], NOW, "a1")
    assert line.split() == ["1", "Mend", "the", "parser", "3", "h", "$10.00", "a1", "(this", "one)"]


@pytest.mark.parametrize("columns", [40, 60, 100, 160])
def test_the_menu_of_sessions_has_columns_that_fit(tmp_path: Path, columns: int) -> None:
    titles = (
        "Mend the parser",
        "日本語の長い質問です" * 8,
        "Why does the build fail on the oldest Python? " * 3,
    )
    entries = [write_session(tmp_path, f"s{at}", said(text)) for at, text in enumerate(titles)]
    cards = [replace(read_card(tmp_path, entry), branch="feature/a-long-name") for entry in entries]
    rows = list_session_choices(cards, NOW, "s1", TextRenderer(columns))
    menu = FilterMenu(title="sessions", choices=rows)
    assert all(cell_len(line) <= columns for line in menu.render(TextRenderer(columns)).split("\n"))
    assert len({cell_len(row.label.partition("3 h")[0]) for row in rows}) == 1, "ages stand below each other"
    for sign in "oldest":
        menu.type(sign)
    assert [row.label.split()[0] for row in menu.choices] == ["Why"], "what was cut is found all the same"


def test_calls_from_before_a_branch_are_the_other_sessions(tmp_path: Path) -> None:
    entry = write_session(tmp_path, "b", said("hi"), USAGE, ParentRecord("a"), USAGE)
    assert read_card(tmp_path, entry).spent_usd == pytest.approx(5.0)


def test_a_session_that_cannot_be_read_is_listed_without_a_title(tmp_path: Path) -> None:
    card = read_card(tmp_path, SessionEntry(SessionId("gone"), 0, NOW))
    assert (card.title, card.spent_usd) == (UNREADABLE_TITLE, 0.0)


def test_a_bill_that_cannot_be_read_leaves_no_sum(tmp_path: Path) -> None:
    broken = UsageRecord(model="claude-opus-4-5", who="main", wire=freeze_object({"input_tokens": "many"}))
    entry = write_session(tmp_path, "c", said("hi"), USAGE, broken)
    assert read_card(tmp_path, entry).spent_usd is None


def test_a_session_is_found_by_number_or_by_the_beginning_of_its_id() -> None:
    cards = [SessionCard(SessionEntry(SessionId(name), 0, NOW), "x", 0.0) for name in ("ab1", "ab2", "9c")]
    assert find_session_card(cards, "2") is cards[1]
    assert find_session_card(cards, "ab1") is cards[0]
    assert find_session_card(cards, "9c") is cards[2]
    assert find_session_card(cards, "ab") == "2 sessions begin with 'ab' or have it in the title"
    assert find_session_card(cards, "7") == "no sessions begin with '7' or have it in the title"


def test_ages_are_rounded_down() -> None:
    ages = (timedelta(seconds=-5), timedelta(seconds=59), timedelta(minutes=59), timedelta(days=2, hours=23))
    assert [render_age(age) for age in ages] == ["just now", "just now", "59 min", "2 d"]


def test_spending_of_two_processes_is_one_sum_by_caller() -> None:
    before, after = UsageLedger(), UsageLedger()
    before.add_usage("main", "claude-opus-4-5", Usage(fresh=10), NOW.date())
    after.add_usage("main", "claude-opus-4-5", Usage(fresh=5), NOW.date())
    after.add_usage("notes", "claude-opus-4-5", Usage(fresh=1), NOW.date())
    merged = merge_spent(before.spent(), after.spent())
    assert [(one.who, one.calls, one.usage.fresh) for one in merged] == [("main", 2, 15), ("notes", 1, 1)]


def test_the_last_turns_are_shown_again() -> None:
    use = ToolUse(ToolUseId("t"), "shell", freeze_object({"command": "ls\nrm"}))
    history = [Message("user", f"question {number}") for number in range(5)]
    history += [
        Message("assistant", (Text("I look."), use)),
        Message("user", (ToolResult(ToolUseId("t"), "out"),)),
        Message("assistant", "It is **done**."),
    ]
    tail = render_history_tail(history, TextRenderer(80)).split("\n")
    assert tail[0] == f"… {5 - SHOWN_TURNS} earlier turns"
    assert [line for line in tail[1:] if line] == [
        *(f"› question {number}" for number in (2, 3, 4)),
        *("I look.", "● shell ls", "It is done."),
    ]


def test_a_session_without_a_persons_words_shows_nothing() -> None:
    assert render_history_tail([Message("assistant", "x")], TextRenderer(80)) == ""
