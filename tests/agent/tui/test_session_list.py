"""Sessions are listed by their first words, age and cost, and the end of one is shown again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.cells import cell_len

from sevenfold.agent.loop.rewind import TASK_TAG
from sevenfold.agent.subagents.messaging import StartedAgent, write_started_agent
from sevenfold.agent.tui.choice_menu import FilterMenu
from sevenfold.agent.tui.cost_text import CacheState, merge_spent
from sevenfold.agent.tui.session_list import (
    NO_PAST_USAGE,
    SHOWN_TURNS,
    UNREADABLE_TITLE,
    PastUsage,
    SessionCard,
    describe_mail,
    find_past_miss,
    find_session_card,
    list_session_choices,
    read_messages,
    read_past_usage,
    read_session_cards,
    read_session_preview,
    render_age,
    render_history_tail,
    render_session_cards,
)
from sevenfold.agent.tui.text_renderer import TextRenderer
from sevenfold.core.clock import ManualClock
from sevenfold.core.events import CutRegistered, MemoryRecalled
from sevenfold.core.json import freeze_object
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.core.prices import CATALOG, sum_costs
from sevenfold.core.text.safe_text import fence_text
from sevenfold.core.usage import Usage
from sevenfold.session.cache.monitor import UsageLedger
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.records import (
    BoundaryRecord,
    MessageRecord,
    ParentRecord,
    Record,
    SentRecord,
    UsageRecord,
    write_line,
)
from sevenfold.store.transcript.transcript import EventLog, SessionEntry, SessionId

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
        (card,) = read_session_cards(sessions, [entry], CATALOG)
        return card


def write_lines(folder: Path, name: str, *records: Record) -> None:
    (folder / f"{name}.jsonl").write_bytes(b"".join(write_line(record) for record in records))


def bill(at: datetime, **counts: object) -> Record:
    wire = freeze_object({"output_tokens": 10, **counts})
    return Record(UsageRecord(model="claude-opus-5-5", who="main", wire=wire), at)


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
    cards = [
        SessionCard(entry=SessionEntry(SessionId(name), 0, NOW), title="x", spent_usd=0.0)
        for name in ("ab1", "ab2", "9c")
    ]
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


def test_a_long_turn_is_shown_again_by_its_end_and_its_failures_as_such() -> None:
    history = [Message("user", "\n".join(f"pasted {number}" for number in range(50)))]
    for number in range(1_000):
        use = ToolUse(ToolUseId(f"t{number}"), "read", freeze_object({"file_path": f"{number}.txt"}))
        result = ToolResult(use.id, "no such file", is_error=number == 998)
        history += [Message("assistant", (use,)), Message("user", (result,))]
    tail = render_history_tail([*history, Message("assistant", "Done.")], TextRenderer(80)).split("\n")
    assert [line for line in tail if line] == [
        *("› pasted 0", "  pasted 1", "  pasted 2", "  pasted 3", "  pasted 4", "  … 45 more lines"),
        *("… 995 earlier rounds", "● read 995.txt", "● read 996.txt", "● read 997.txt"),
        *("✗ read 998.txt  failed", "● read 999.txt", "Done."),
    ]


def test_a_session_that_goes_on_knows_its_bill_its_context_and_its_cache(tmp_path: Path) -> None:
    sent, answered = NOW, NOW + timedelta(minutes=2)
    cached = {"input_tokens": 20, "cache_creation_input_tokens": 9_000}
    write_lines(
        tmp_path, "one", Record(SentRecord("claude-opus-5-5", "main"), sent), bill(answered, **cached)
    )
    write_lines(tmp_path, "agent-1", bill(answered, input_tokens=1_000_000))
    for started in (StartedAgent("agent-1", "agent"), StartedAgent("agent-1", "background agent")):
        write_started_agent(tmp_path / "one", started)
    with Folder.open(tmp_path) as sessions:
        past = read_past_usage(sessions, "one", CATALOG)
        (card,) = read_session_cards(sessions, [SessionEntry(SessionId("one"), 1, NOW)], CATALOG)
    assert [(one.who, one.calls) for one in past.spent] == [("main", 1), ("agent", 1)], "each agent once"
    total = sum_costs(one.cost for one in past.spent)
    assert total is not None
    assert card.spent_usd == float(total.total)
    assert past.context_tokens == 9_030
    assert past.caches == {"claude-opus-5-5": CacheState(9_000, sent, timedelta(minutes=5))}, (
        "since it was sent"
    )
    assert past.unbilled == 0


def test_a_request_that_was_never_answered_has_no_bill(tmp_path: Path) -> None:
    lost = Record(SentRecord("claude-opus-5-5", "main"), NOW)
    refused = (lost, Record(SentRecord("claude-opus-5-5", "main", is_refused=True), NOW))
    write_lines(tmp_path, "one", lost, bill(NOW, input_tokens=5), *refused, lost)
    with Folder.open(tmp_path) as sessions:
        assert read_past_usage(sessions, "one", CATALOG).unbilled == 1


def test_after_a_compaction_nobody_has_counted_the_context(tmp_path: Path) -> None:
    boundary = BoundaryRecord(trigger="manual", tokens_before=9_000, last_message=None)
    cached = bill(NOW, input_tokens=20, cache_creation_input_tokens=9_000)
    write_lines(tmp_path, "one", cached, Record(boundary, NOW))
    with Folder.open(tmp_path) as sessions:
        past = read_past_usage(sessions, "one", CATALOG)
    assert past.context_tokens == 0
    assert past.caches == {}


@pytest.mark.parametrize(
    ("model", "minutes", "cause"),
    [("claude-opus-5-5", 6, "idle"), ("claude-opus-5-5", 1, "resumed"), ("claude-haiku-4-5", 1, "model")],
)
def test_what_the_cache_lost_while_a_session_was_closed_has_a_cause(
    model: str, minutes: int, cause: str
) -> None:
    state = CacheState(9_000, NOW, timedelta(minutes=5))
    past = PastUsage(model="claude-opus-5-5", caches={"claude-opus-5-5": state})
    missed = find_past_miss(past, model, Usage(written_5m=9_100), NOW + timedelta(minutes=minutes))
    assert missed is not None
    assert (missed.cause, missed.expected_tokens, missed.read_tokens) == (cause, 9_000, 0)
    assert find_past_miss(past, model, Usage(read=9_000, written_5m=10), NOW) is None, "all of it was read"
    assert find_past_miss(NO_PAST_USAGE, model, Usage(written_5m=9_100), NOW) is None


def test_what_layers_did_is_known_after_a_restart(tmp_path: Path) -> None:
    write_lines(tmp_path, "one", bill(NOW, input_tokens=5))
    (tmp_path / "one").mkdir()
    with Folder.open(tmp_path) as sessions, sessions.subfolder("one") as own:
        log = EventLog(own, ManualClock(NOW))
        recalled = MemoryRecalled(key="a.md", percent=90, ranked_by="words", size_bytes=10, is_late=False)
        log.add(recalled)
        log.add(CutRegistered("main", 4, "compaction by notes", 0))
        log.flush()
        write_lines(
            tmp_path, "one", bill(NOW + timedelta(1), input_tokens=5, cache_creation_input_tokens=700)
        )
        past = read_past_usage(sessions, "one", CATALOG)
    assert [act.event for act in past.acts] == [recalled, CutRegistered("main", 4, "compaction by notes", 0)]
    assert past.bill_after_cut is not None
    assert past.bill_after_cut.tokens == 700


def test_what_a_summary_stands_for_is_read_from_the_transcript(tmp_path: Path) -> None:
    boundary = BoundaryRecord(trigger="manual", tokens_before=9_000, last_message=None)
    hello, goodbye = said("Hello."), said("Goodbye.")
    first, last = Record(hello, NOW), Record(goodbye, NOW)
    write_lines(tmp_path, "one", first, Record(boundary, NOW), first, last)
    write_lines(tmp_path, "two", first, last)
    with Folder.open(tmp_path) as sessions:
        assert read_messages(sessions, "one") == (hello.message, goodbye.message)
        assert read_messages(sessions, "two") == (), "the history has it"
        assert read_messages(sessions, "three") == ()


def test_a_call_without_a_result_was_interrupted() -> None:
    use = ToolUse(ToolUseId("toolu_1"), "shell", freeze_object({"command": "make"}))
    history = [Message("user", "build it"), Message("assistant", (use,))]
    assert "✗ shell make  interrupted" in render_history_tail(history, TextRenderer())


def test_old_sessions_are_listed_by_their_titles_alone(tmp_path: Path) -> None:
    entries = [write_session(tmp_path, f"s{at}", said(f"question {at}")) for at in range(25)]
    with Folder.open(tmp_path) as sessions:
        cards = read_session_cards(sessions, entries, CATALOG)
        assert [card.title for card in cards] == [f"question {at}" for at in range(25)]
        assert (cards[0].cost, cards[24].cost) == ("$0.00", "")
        assert read_session_preview(sessions, cards[24], CATALOG).startswith("$0.00")
    assert "and 5 older ones" in render_session_cards(cards, NOW)[-1]


def test_what_was_told_by_the_program_is_not_shown_as_typed() -> None:
    told = Message("user", fence_text(TASK_TAG, "Background task-1 (Count): ended with exit code 0"))
    history = [Message("user", "Count."), Message("assistant", "I do."), told, Message("assistant", "Done.")]
    tail = render_history_tail(history, TextRenderer(80))
    assert "› Background" not in tail
    assert "a message came in: Background task-1 (Count): ended with exit code 0\n\nDone." in tail
    assert describe_mail(told) == ": Background task-1 (Count): ended with exit code 0"


def test_a_call_of_an_agent_that_works_is_no_interrupted_one() -> None:
    use = ToolUse(ToolUseId("u1"), "shell", freeze_object({"command": "make"}))
    history = [Message("user", "Build."), Message("assistant", (use,))]
    assert "○ shell make  running" in render_history_tail(history, TextRenderer(), is_running=True)


def test_a_title_or_a_branch_that_has_no_room_is_in_the_remark() -> None:
    entry = SessionEntry(SessionId("s1"), 9, NOW - timedelta(hours=3))
    title, branch = "look at the parser and all of its tests", "feature/long-branch-name"
    (row,) = list_session_choices(
        [SessionCard(entry=entry, title=title, branch=branch, spent_usd=0.1)], NOW, "", TextRenderer(40)
    )
    assert cell_len(row.label) <= 38
    assert title not in row.label
    assert row.remark == f"{title}  {branch}"
