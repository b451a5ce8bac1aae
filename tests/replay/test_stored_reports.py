"""Kept reports: the same report, and only what changed is read."""

from __future__ import annotations

import json
import os
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sevenfold.core.errors import StoreError
from sevenfold.core.prices import CATALOG
from sevenfold.replay import parallel, stored_reports
from sevenfold.replay.account import ReplayTerms
from sevenfold.replay.parallel import ReadOutcome, read_accounts
from sevenfold.replay.report import ReplayReport, SessionReport
from sevenfold.replay.stored_reports import StoredReports, read_plain, write_plain
from sevenfold.store.foreign.transcripts import find_transcripts
from sevenfold.store.session_index.database import DERIVED_FILE, DerivedValues
from tests.replay.logs import Row, answered, asked, usage, write_log
from tests.replay.reports import hostile_report, rich_report

SAMPLE = Path(__file__).parents[2] / "src" / "sevenfold" / "replay" / "sample" / "session.jsonl"


class Machine:
    """A folder of transcripts, and the reports that are kept of it."""

    def __init__(self, root: Path) -> None:
        self.folder, self.home = root / "sessions", root / "home"
        self.folder.mkdir()
        self.read: list[str] = []
        self._time = 0

    def write(self, name: str, *rows: Row) -> Path:
        path = write_log(self.folder / f"{name}.jsonl", *rows)
        # Two writes within one tick of the file system's clock would look like none.
        self._time += 1
        os.utime(path, ns=(self._time, self._time))
        return path

    def report(self, terms: ReplayTerms | None = None, *, keeps: bool = True) -> ReadOutcome:
        terms = terms or ReplayTerms()
        files = find_transcripts([self.folder]).files
        self.read.clear()
        if not keeps:
            return read_accounts(files, terms, jobs=1)
        with closing(DerivedValues.open(self.home)) as values:
            return read_accounts(files, terms, jobs=1, stored=StoredReports(values, terms))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    account = parallel.read_account

    def counting(path: Path, *rest: object, **more: object) -> object:
        made.read.append(path.stem)
        return account(path, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(parallel, "read_account", counting)
    return made


def session(name: str, *calls: str) -> list[Row]:
    rows: list[Row] = []
    for number, call in enumerate(calls):
        rows.append(asked(f"{name} {call}", 60 * number))
        rows += answered(call, usage(900, output=5), seconds=60 * number + 1)
    return rows


def test_a_second_run_reads_nothing_and_reports_the_same(machine: Machine) -> None:
    (machine.folder / "sample.jsonl").write_bytes(SAMPLE.read_bytes())
    machine.write("a", *session("a", "msg_1", "msg_2"))
    machine.write("b", *session("b", "msg_2", "msg_3"))
    machine.write("none", {"some": "thing"})
    plain = machine.report(keeps=False)
    assert machine.report() == plain
    assert sorted(machine.read) == ["a", "b", "sample"]
    assert machine.report() == plain
    assert machine.read == []


def test_a_transcript_that_grew_is_read_again(machine: Machine) -> None:
    machine.write("a", *session("a", "msg_1"))
    machine.write("b", *session("b", "msg_2"))
    machine.report()
    machine.write("a", *session("a", "msg_1", "msg_3"))
    assert machine.report() == machine.report(keeps=False)
    machine.write("a", *session("a", "msg_1", "msg_3", "msg_4"))
    machine.report()
    assert machine.read == ["a"]


def test_calls_that_another_file_counts_now_are_read_again(machine: Machine) -> None:
    machine.write("a", *session("a", "msg_1"))
    machine.write("b", *session("b", "msg_1", "msg_2"))
    machine.report()
    (machine.folder / "a.jsonl").unlink()
    assert machine.report() == machine.report(keeps=False)


@pytest.mark.parametrize(
    "terms",
    [
        ReplayTerms(since=datetime(2026, 11, 3, tzinfo=UTC)),
        ReplayTerms(reprice=CATALOG.find("claude-haiku-5-5")),
        ReplayTerms(catalog=replace(CATALOG, models=CATALOG.models[1:])),
    ],
    ids=["since", "reprice", "catalog"],
)
def test_other_terms_are_another_report(machine: Machine, terms: ReplayTerms) -> None:
    machine.write("a", *session("a", "msg_1"))
    machine.report()
    assert machine.report(terms) == machine.report(terms, keeps=False)
    machine.report()
    machine.report(terms)
    assert machine.read == ["a"]


def test_other_code_computes_it_anew(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.write("a", *session("a", "msg_1"))
    machine.report()

    def other(*packages: str) -> str:
        return f"other {packages}"

    monkeypatch.setattr(stored_reports, "hash_code", other)
    machine.report()
    assert machine.read == ["a"]


@pytest.mark.parametrize("value", [b"", b"{}", b"[]", b"null", b'{"foreign": 1}', b"\xff"])
def test_a_damaged_value_counts_as_none(machine: Machine, value: bytes) -> None:
    machine.write("a", *session("a", "msg_1"))
    plain = machine.report()
    files = find_transcripts([machine.folder]).files
    with closing(DerivedValues.open(machine.home)) as values:
        stored = StoredReports(values, ReplayTerms())
        values.write(stored.report_key, {files[0]: value})
        values.write(stored.calls_key, {files[0]: value})
    assert machine.report() == plain


def test_reports_of_transcripts_that_are_gone_are_deleted(machine: Machine) -> None:
    machine.write("a", *session("secret-name", "msg_1"))
    machine.write("b", *session("b", "msg_2"))
    machine.report()
    (machine.folder / "a.jsonl").unlink()
    machine.write("b", *session("b", "msg_2", "msg_3"))
    machine.report()
    kept = (machine.home / "index" / DERIVED_FILE).read_bytes()
    assert b"a.jsonl" not in kept
    assert b"b.jsonl" in kept


def test_the_digest_of_the_code_covers_prices_readers_and_accounts() -> None:
    covered = {path for package in stored_reports.CODE_PACKAGES for path in stored_reports.list_code(package)}
    for name in ("core/prices.py", "store/foreign/codex.py", "replay/account.py"):
        assert any(path.endswith(name) for path in covered), name


def test_a_store_that_fails_costs_no_report(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.write("a", *session("a", "msg_1"))
    plain = machine.report(keeps=False)
    told: list[str] = []

    def fail(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(DerivedValues, "write", fail)
    with closing(DerivedValues.open(machine.home)) as values:
        stored = StoredReports(values, ReplayTerms(), told.append)
        files = find_transcripts([machine.folder]).files
        assert read_accounts(files, ReplayTerms(), jobs=1, stored=stored) == plain
    assert told == ["the disk is full"]


def test_a_report_is_deleted_with_its_transcript_also_if_nothing_else_changed(machine: Machine) -> None:
    machine.write("a", *session("a", "msg_1"))
    machine.write("b", *session("b", "msg_2"))
    machine.report()
    (machine.folder / "a.jsonl").unlink()
    machine.report()
    assert b"a.jsonl" not in (machine.home / "index" / DERIVED_FILE).read_bytes()


@pytest.mark.parametrize("report", [rich_report(), hostile_report()], ids=["rich", "hostile"])
def test_a_session_is_read_as_it_was_written(report: ReplayReport) -> None:
    for session in report.sessions:
        wire = json.loads(json.dumps(write_plain(session)))
        assert read_plain(SessionReport, wire) == session
        with pytest.raises((TypeError, ValueError)):
            read_plain(SessionReport, wire[:-1])


def test_a_second_run_takes_a_small_part_of_the_first(machine: Machine) -> None:
    for number in range(8):
        calls = (f"msg_{number}_{place}" for place in range(80))
        machine.write(f"s{number}", *session(f"s{number}", *calls))
    times: list[float] = []
    for _ in range(2):
        began = time.process_time()
        machine.report()
        times.append(time.process_time() - began)
    # Without what is kept, both take the same.
    assert times[1] < times[0] / 3
