"""Reading some kinds of records alone finds what a whole reading finds of those kinds."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.json import EMPTY_OBJECT
from sevenfold.core.messages import Message
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.reader import StoredRecord, scan_transcript
from sevenfold.store.transcript.records import (
    BoundaryRecord,
    CutRecord,
    MessageRecord,
    Record,
    RecordBody,
    UsageRecord,
)
from sevenfold.store.transcript.transcript import Transcript

AT = datetime(2026, 11, 15, tzinfo=UTC)
BODIES = st.sampled_from(
    [
        MessageRecord(Message("user", 'a text with "k":"usage" and {"c":"00000000","k":"cut" in it')),
        CutRecord(2, "x", None),
        UsageRecord(model="m", who="main", wire=EMPTY_OBJECT),
        BoundaryRecord(trigger="auto", tokens_before=1, last_message=None),
    ]
)


@given(st.lists(BODIES, max_size=12), st.booleans())
def test_only_those_kinds_and_all_of_them(bodies: list[RecordBody], has_torn_line: bool) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as place, Folder.open(Path(place)) as folder:
        with Transcript.open(folder, "s") as transcript:
            for body in bodies:
                transcript.append(Record(body, AT), durable=False)
        if has_torn_line:
            with (Path(place) / "s.jsonl").open("ab") as file:
                file.write(b'{"c":"12345678","k":"usage","id":"x"\n')
        wanted = [line for line in scan_transcript(folder, "s") if _is_wanted(line)]
        found = [
            line
            for line in scan_transcript(folder, "s", kinds=("usage", "cut"))
            if isinstance(line, StoredRecord)
        ]
    assert found == wanted


def _is_wanted(line: object) -> bool:
    return isinstance(line, StoredRecord) and isinstance(line.record.body, UsageRecord | CutRecord)
