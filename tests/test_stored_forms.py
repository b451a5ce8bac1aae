"""The bytes of small state files and messages do not change, and files of earlier versions can be read.

`tests/golden/stored_forms.json` holds what each of them looks like on the disk or in a pipe. A change there
is a change of a format: old files must still be read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest

from sevenfold.agent.opening.workspace import StoredParams, read_stored_params, write_stored_params
from sevenfold.agent.subagents.messaging import Roster, RosterEntry
from sevenfold.agent.subagents.teammate_process import TeammateConfig, parse_teammate_config
from sevenfold.core.canonical import Digest
from sevenfold.core.fields import read_fields, write_fields
from sevenfold.core.json import JsonObject, read_object, write_json
from sevenfold.core.memories import Origin
from sevenfold.core.messages import Message, ToolUseId
from sevenfold.core.requests import RequestParams
from sevenfold.core.spills import SpillDecision
from sevenfold.layers.compaction.policy import BreakerState
from sevenfold.layers.dreams.publish import DreamRecord, DreamRecordStore
from sevenfold.layers.memory.extraction.policy import ExtractionSpend, Topic
from sevenfold.layers.memory.extraction.writer import (
    EXTRACTION_FILE,
    ExtractionRecord,
    read_extraction_record,
    write_extraction_record,
)
from sevenfold.layers.session_notes.notes_file import (
    NOTES_RECORD_FILE,
    NotesRecord,
    NotesVersion,
    read_notes_record,
    write_notes_record,
)
from sevenfold.layers.session_notes.sections import AddedLine, HandEdits
from sevenfold.session.budget import (
    Expense,
    SpendHold,
    SpendState,
    Strikes,
    write_spend_state,
)
from sevenfold.store.files import RecordId
from sevenfold.store.files.folder import Folder
from sevenfold.store.files.lock_state import (
    LockHolder,
    LockState,
    PidStamp,
)
from sevenfold.store.memory.changes import TransactionId
from sevenfold.store.memory.records import (
    FileStamp,
    LoggedChange,
    LoggedTransaction,
    format_log_line,
    read_log_entry,
)
from sevenfold.store.memory.sidecars import BrokenMark, MarkStore
from sevenfold.store.transcript.records import (
    BoundaryRecord,
    CutRecord,
    DecisionRecord,
    InjectedRecord,
    KeptSegment,
    MessageRecord,
    ParentRecord,
    Record,
    RecordBody,
    UsageRecord,
    read_line,
    write_line,
)
from sevenfold.team.client.local_state import (
    MEMBER_FILE,
    RETRY_FILE,
    SYNC_STATE_FILE,
    FolderLedger,
    Membership,
    read_membership,
    write_membership,
)
from sevenfold.team.client.sync_policy import PendingWrite, RefusedText, RetryState, SyncState
from sevenfold.team.protocol import Checksum, Commit, CommitId, RepoId, TeamChange, TeamEntry, TeamKey

GOLDEN = Path(__file__).parent / "golden" / "stored_forms.json"
NOW = datetime(2026, 11, 15, 9, 30, 0, 250, tzinfo=UTC)
LATER = datetime(2026, 11, 15, 11, 30, tzinfo=timezone(timedelta(hours=1)))
SHA = "9f0c2a61" * 8
SUM = Checksum(f"sha256:{SHA}")
HALF = "half a character: \ud83d"


@dataclass(frozen=True, slots=True)
class Form:
    """A value, how it becomes bytes, and how it comes back."""

    name: str
    value: object
    write: Callable[[Folder], bytes]
    read: Callable[[Folder, bytes], object]


def in_memory(name: str, value: object, data: bytes, read: Callable[[bytes], object]) -> Form:
    return Form(name, value, lambda _: data, lambda _, given: read(given))


def in_file(
    name: str, value: object, file: str, write: Callable[[Folder], None], read: Callable[[Folder], object]
) -> Form:
    def written(folder: Folder) -> bytes:
        write(folder)
        return folder.read(file, max_bytes=100_000)

    def loaded(folder: Folder, data: bytes) -> object:
        folder.replace(file, data)
        return read(folder)

    return Form(name, value, written, loaded)


LOCKS = (
    LockState(),
    LockState(
        token=7,
        holder=LockHolder(
            pid=4242,
            boot="5c1f",
            started=NOW,
            started_up=timedelta(seconds=12, microseconds=5),
            until=LATER,
            until_up=timedelta(hours=2),
            nonce="ab",
        ),
        last_success=NOW,
        last_attempt=LATER,
        strikes=2,
        stamps=(PidStamp(4242, 1_700_000_000_000_000_001), PidStamp(1, 0)),
    ),
)
SPENDS = (
    SpendState(),
    SpendState(
        {2_990_000: Expense(12, 34), 299_000: Expense(1)},
        (SpendHold("h1", "notes", Expense(5, 6), LATER),),
        {"notes": Strikes(3, NOW, "timed out"), "dream": Strikes(1, NOW, HALF)},
        "by hand",
    ),
)
SYNCS = (
    SyncState(device="d1"),
    SyncState(
        device="d1",
        etag='"5"',
        remote={TeamKey("team/a.md"): TeamEntry(3, SUM), TeamKey("team/b.md"): TeamEntry(4, None)},
        bases={TeamKey("team/a.md"): TeamEntry(2, SUM)},
        incoming=PendingWrite("m1", {TeamKey("team/a.md"): TeamEntry(3, SUM)}, {TeamKey("team/c.md"): SUM}),
        deleting={TeamKey("team/d.md"): SUM},
        refused={TeamKey("team/e.md"): RefusedText(SUM, "a secret")},
        pending=Commit(
            CommitId("c1"),
            (TeamChange(TeamKey("team/f.md"), 3, None), TeamChange(TeamKey("team/g.md"), 0, SUM)),
        ),
    ),
)
RETRIES = (
    RetryState(),
    RetryState(failures=(NOW, LATER), in_a_row=2, not_before=LATER, refusal="no", mark="m"),
)
NOTES = (
    NotesRecord(),
    NotesRecord(
        NotesVersion("# Notes\n", 12, "model"),
        NotesVersion(HALF, 3),
        HandEdits((AddedLine("tasks", "- one"),), frozenset({"b", "a"}), ("## Mine\n",)),
    ),
)
EXTRACTIONS = (
    ExtractionRecord(),
    ExtractionRecord(
        cursor="r1",
        turns=3,
        topic=Topic(
            opening="which port?",
            key="ports.md",
            statements=("8080", "9090"),
            recap="9090",
            is_amendment=True,
            earlier=("8080",),
        ),
    ),
    ExtractionRecord(cursor="r2", offset=4_096, spent=ExtractionSpend(own_usd=Decimal("0.03"))),
)
BREAKERS = (
    BreakerState(),
    BreakerState(
        failures_in_row=1, futile_in_row=2, last_length=3, limit_model="claude-opus-5", limit_tokens=4
    ),
)
ROSTER = (
    RosterEntry(name="ada", kind="fresh", session="s1"),
    RosterEntry(
        name="bob",
        kind="teammate",
        session="s2",
        definition="reviewer",
        description="reads",
        cwd="/project",
        model="claude-opus-5",
        plan="approved",
        socket="/run/s",
    ),
)
MATES = (
    TeammateConfig(
        name="ada",
        lead="main",
        cwd="/project",
        session="s1",
        model="m",
        mode="plan",
        lead_mode="ask",
        system="be brief",
        prompt="",
    ),
    TeammateConfig(
        name="ada",
        lead="main",
        cwd="/project",
        session="s1",
        model="m",
        mode="accept-edits",
        lead_mode="ask",
        system="be brief",
        prompt="go",
        definition="d",
        description="x",
        tools=("read", "grep"),
        memory="/project/.m",
        is_detached=True,
    ),
)
DREAMS = (
    DreamRecord(id="20261115-a", started="2026-11-15", writer="model"),
    DreamRecord(
        id="20261115-b",
        started="2026-11-15",
        writer="model",
        ended="2026-11-16",
        outcome="changed",
        reason="r",
        transaction="t1",
        changed=("a.md",),
        removed=("b.md", "c.md"),
        archived=("d.md",),
        waiting=("w",),
        left_alone=("e.md: pinned",),
        let_go=("f",),
        report="done",
        steps=("read a.md",),
        tools=9,
    ),
)
FRAMES = (
    StoredParams(RequestParams(model="m", max_tokens=10)),
    StoredParams(
        RequestParams(
            model="m",
            max_tokens=10,
            system=(JsonObject({"type": "text", "text": "hello"}),),
            tools=(JsonObject({"name": "read"}),),
            params=JsonObject({"thinking": JsonObject({"type": "adaptive"})}),
            betas=("b1",),
        ),
        "in /project",
    ),
)
MEMBER = Membership(url="https://t", repo=RepoId("r1"), repo_name="org/r", org="org", member="ada")
MARKS = {"a.md": BrokenMark(SHA, ("no file x.py",), NOW)}
RECORDS: tuple[RecordBody, ...] = (
    MessageRecord(Message("user", f"hello {HALF}")),
    InjectedRecord(Message("user", "remember"), "memory"),
    DecisionRecord(SpillDecision(tool_use_id=ToolUseId("t1"))),
    DecisionRecord(
        SpillDecision(tool_use_id=ToolUseId("t1"), preview="p", spill="s/1", digest=Digest(SHA), size_bytes=9)
    ),
    CutRecord(2, "clear", None),
    CutRecord(4, "compact", RecordId("r1"), JsonObject({"tokens": 1.5, "kept": ("a", None)})),
    BoundaryRecord(trigger="auto", tokens_before=100, last_message=None),
    BoundaryRecord(
        trigger="manual",
        tokens_before=100,
        last_message=RecordId("r2"),
        tools=("grep",),
        kept=KeptSegment(RecordId("r1"), RecordId("r3"), RecordId("r2"), 512),
    ),
    UsageRecord(model="m", who="main", wire=JsonObject({"input_tokens": 1})),
    UsageRecord(model="m", who="notes", wire=JsonObject({}), dialect="openai", frame="f1"),
    ParentRecord("s0"),
)
ORIGIN = Origin(who="user", why="said so", said_by="user")
TRANSACTIONS = (
    LoggedTransaction(
        id=TransactionId("t1"),
        at=NOW,
        kind="commit",
        origin=ORIGIN,
        changes=(LoggedChange(key="a.md", before=None, after=SHA, text="hello"),),
    ),
    LoggedTransaction(
        id=TransactionId("t2"),
        at=NOW,
        kind="commit",
        origin=Origin(
            who="fork",
            why="w",
            session="s",
            messages=("m1", "m2"),
            said_by="user",
            taint=frozenset({"tool", "web"}),
            is_accepted=True,
        ),
        changes=(
            LoggedChange(
                key="a.md",
                before=SHA,
                after=None,
                origin=ORIGIN,
                at=LATER,
                stamp=FileStamp(1, 2, 3),
                order=4,
            ),
        ),
        of="t1",
        reason="r",
        settles=("w1", "w2"),
        rejects=("w2",),
    ),
)


def lock_form(number: int, state: LockState) -> Form:
    data = write_json(write_fields(state))
    return in_memory(f"lock {number}", state, data, lambda given: read_fields(LockState, read_object(given)))


def spend_form(number: int, state: SpendState) -> Form:
    data = write_json(write_spend_state(state))
    return in_memory(
        f"spend {number}", state, data, lambda given: read_fields(SpendState, read_object(given))
    )


def breaker_form(number: int, state: BreakerState) -> Form:
    data = write_json(write_fields(state))
    return in_memory(
        f"breaker {number}", state, data, lambda given: read_fields(BreakerState, read_object(given))
    )


def sync_form(number: int, state: SyncState) -> Form:
    def write(folder: Folder) -> None:
        import asyncio

        asyncio.run(FolderLedger(folder).write(state))

    return in_file(
        f"sync {number}", state, SYNC_STATE_FILE, write, lambda folder: FolderLedger(folder).read_state()
    )


def retry_form(number: int, state: RetryState) -> Form:
    return in_file(
        f"retry {number}",
        state,
        RETRY_FILE,
        lambda folder: FolderLedger(folder).write_retry(state),
        lambda folder: FolderLedger(folder).read_retry(),
    )


def notes_form(number: int, record: NotesRecord) -> Form:
    return in_file(
        f"notes {number}",
        record,
        NOTES_RECORD_FILE,
        lambda folder: write_notes_record(folder, record),
        read_notes_record,
    )


def extraction_form(number: int, record: ExtractionRecord) -> Form:
    return in_file(
        f"extraction {number}",
        record,
        EXTRACTION_FILE,
        lambda folder: write_extraction_record(folder, record),
        lambda folder: read_extraction_record(folder, "s"),
    )


def roster_form(number: int, entry: RosterEntry) -> Form:
    return in_file(
        f"roster {number}",
        entry,
        f"agents/{entry.name}.json",
        lambda folder: Roster(folder).write(entry),
        lambda folder: Roster(folder).find(entry.name),
    )


def teammate_form(number: int, config: TeammateConfig) -> Form:
    return in_memory(f"teammate {number}", config, config.write(), parse_teammate_config)


def dream_form(number: int, record: DreamRecord) -> Form:
    def write(folder: Folder) -> None:
        store = DreamRecordStore(folder)
        store.write(record)
        store.close()

    def read(folder: Folder) -> DreamRecord:
        store = DreamRecordStore(folder)
        try:
            return store.read(record.id)
        finally:
            store.close()

    return in_file(f"dream {number}", record, f"dreams/{record.id}.json", write, read)


def frame_form(number: int, stored: StoredParams) -> Form:
    return in_file(
        f"frame {number}",
        stored,
        "frame.json",
        lambda folder: write_stored_params(folder, stored),
        read_stored_params,
    )


def record_form(number: int, body: RecordBody) -> Form:
    record = Record(body, NOW, RecordId("id1"))
    return in_memory(
        f"record {number}", record, write_line(record), lambda given: read_line(given.removesuffix(b"\n"))
    )


def log_form(number: int, entry: LoggedTransaction) -> Form:
    data = format_log_line(entry)
    return in_memory(f"log {number}", entry, data, lambda given: read_log_entry(given.removesuffix(b"\n")))


FORMS = [
    *(lock_form(number, state) for number, state in enumerate(LOCKS)),
    *(spend_form(number, state) for number, state in enumerate(SPENDS)),
    *(breaker_form(number, state) for number, state in enumerate(BREAKERS)),
    *(sync_form(number, state) for number, state in enumerate(SYNCS)),
    *(retry_form(number, state) for number, state in enumerate(RETRIES)),
    *(notes_form(number, record) for number, record in enumerate(NOTES)),
    *(extraction_form(number, record) for number, record in enumerate(EXTRACTIONS)),
    *(roster_form(number, entry) for number, entry in enumerate(ROSTER)),
    *(teammate_form(number, config) for number, config in enumerate(MATES)),
    *(dream_form(number, record) for number, record in enumerate(DREAMS)),
    *(frame_form(number, stored) for number, stored in enumerate(FRAMES)),
    *(record_form(number, body) for number, body in enumerate(RECORDS)),
    *(log_form(number, entry) for number, entry in enumerate(TRANSACTIONS)),
    in_file("member", MEMBER, MEMBER_FILE, lambda folder: write_membership(folder, MEMBER), read_membership),
    in_file(
        "marks",
        MARKS,
        "memory-marks.json",
        lambda folder: MarkStore(folder).put(MARKS),
        lambda folder: MarkStore(folder).read(),
    ),
]


def test_every_form_has_its_bytes_on_record() -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert sorted(golden) == sorted(form.name for form in FORMS)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_stored_form_does_not_change_and_comes_back(form: Form, tmp_path: Path) -> None:
    golden: str = json.loads(GOLDEN.read_text(encoding="utf-8"))[form.name]
    data = golden.encode()
    with Folder.open(tmp_path / "control", create=True) as folder:
        folder.subfolder("agents").close()
        folder.subfolder("dreams").close()
        assert form.write(folder) == data
        assert form.read(folder, data) == form.value
