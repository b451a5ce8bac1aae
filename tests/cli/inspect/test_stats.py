"""`sevenfold stats`, from sessions on disk to what is on the screen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sevenfold.cli import main
from sevenfold.core.clock import SystemClock
from sevenfold.core.events import PrefixBroken, RuleAnswered, RuleShown
from sevenfold.core.memories import Origin
from sevenfold.core.messages import Message
from sevenfold.session.blocking import BlockingSession
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.changes import Write
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.sidecars import BrokenMark, MarkStore
from sevenfold.store.transcript.transcript import EventLog, SessionId, fork_transcript, new_agent_session
from tests.core.events.test_events import example
from tests.session.talk import FRAME, call, reply, result

SAID = Origin(who="fork", why="the user said so", said_by="user")
LARGE = "some words of a long result\n" * 3_000


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SEVENFOLD_HOME", raising=False)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / ".sevenfold"


def talk(home: Path, rounds: int = 3, *, compacts: bool = False, session_id: str | None = None) -> str:
    place = {"HOME": str(home.parent)}
    with BlockingSession.open(
        FRAME, project=home.parent / "project", environ=place, session=session_id
    ) as session:
        session.history.append(Message("user", "Please mend the parser."))
        for number in range(rounds):
            session.prepare()
            session.record(call(number, "Read", tokens=5_000, file_path=f"/src/{number}.py"))
            session.history.append(result(number, LARGE))
        if compacts:
            session.prepare()
            session.compact()
        return session.id


def show(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["stats", *arguments]) == code
    out = capsys.readouterr()
    return out.err if code else out.out


def read(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    return json.loads(show(capsys, "--json", *arguments))


def test_a_project_without_sessions_says_so_and_where_to_begin(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = show(capsys)
    assert "No session of" in out
    assert "sevenfold chat" in out
    assert not home.exists()


def test_rounds_tokens_and_cost_are_added_up_by_day_and_session(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = talk(home), talk(home, 2)
    found = read(capsys)
    assert found["total"]["sessions"] == 2
    assert found["total"]["rounds"] == 5
    main_lane = found["total"]["spent"]["main"]
    assert (main_lane["calls"], main_lane["prompt_tokens"], main_lane["output_tokens"]) == (5, 25_000, 100)
    assert float(main_lane["usd"]) > 0
    assert {each["id"] for each in found["sessions"]} == {first, second}
    [day] = found["days"].values()
    assert day["rounds"] == 5
    lines = show(capsys, "--sessions").splitlines()
    assert sum(line.startswith((first[:8], second[:8])) for line in lines) == 2
    assert lines[3].split()[:3] == ["all", "2", "5"]


def test_what_an_agent_that_was_started_spent_is_not_booked_to_the_conversation(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk(home)
    talk(home, 2, session_id=new_agent_session())
    total = read(capsys)["total"]
    assert {who: one["calls"] for who, one in total["spent"].items()} == {"main": 3, "agent": 2}
    assert "Spent by agent: " in show(capsys)


def test_what_a_branch_has_copied_is_counted_once(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = talk(home, compacts=True)
    before = read(capsys)["total"]
    (place,) = home.glob("projects/*/sessions")
    with Folder.open(place) as sessions:
        branch = fork_transcript(sessions, SessionId(first), SystemClock().now())
    assert read(capsys)["total"] == before
    talk(home, 2, session_id=branch)
    found = read(capsys)["total"]
    assert (found["sessions"], found["rounds"], found["compactions"]) == (2, 5, 1)


def test_compactions_and_events_are_counted(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = talk(home, 4, compacts=True)
    [place] = home.glob(f"projects/*/sessions/{session}")
    with Folder.open(place) as folder:
        log = EventLog(folder, SystemClock())
        log.add(example(PrefixBroken))
        log.flush()
    total = read(capsys)["total"]
    assert total["compactions"] == 1
    assert total["compactions_per_100_rounds"] == 25.0
    assert total["events"]["PrefixBroken"] == 1
    assert "PrefixBroken: 1 time" in show(capsys)


def test_rules_are_counted_with_what_became_of_them(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = talk(home, 1)
    [place] = home.glob(f"projects/*/sessions/{session}")
    with Folder.open(place) as folder:
        log = EventLog(folder, SystemClock())
        for _ in range(2):
            log.add(
                RuleShown(
                    memory="release.md",
                    condition="command:git push",
                    tool="shell",
                    tool_use_id="t1",
                    is_held=True,
                )
            )
        log.add(RuleAnswered("release.md", "changed"))
        log.flush()
    assert read(capsys)["total"]["rules"] == {"shown": 2, "changed": 1}
    assert "Rules put before actions: 2; then 1 changed" in show(capsys)


def test_fidelity_is_measured_for_each_cut_when_asked_for(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "Nothing was cut" in (talk(home), show(capsys, "--fidelity"))[1]
    session = talk(home, 4, compacts=True)
    found = read(capsys, "--fidelity")["sessions"]
    cuts = next(each["fidelity"] for each in found if each["id"] == session)
    [cut] = [each for each in cuts if each["layer"] == 4]
    assert (cut["layer"], cut["used"]) == (4, 0)
    assert "manual compaction" in show(capsys, "--fidelity")


def test_only_sessions_since_a_day_count(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk(home)
    assert read(capsys, "--since", "2100-01-01")["total"]["sessions"] == 0
    assert "'soon' is not a day" in show(capsys, "--since", "soon", code=2)


def test_a_bill_that_cannot_be_read_is_in_no_sum_and_said(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sevenfold.core.json import JsonObject
    from sevenfold.store.transcript.records import Record, UsageRecord
    from sevenfold.store.transcript.transcript import Transcript

    session = talk(home)
    [place] = home.glob("projects/*/sessions")
    with Folder.open(place) as folder, Transcript.open(folder, session) as transcript:
        bad = UsageRecord(model=FRAME.model, who="main", wire=JsonObject({"input_tokens": "many"}))
        transcript.append(Record(bad, SystemClock().now()))
    assert read(capsys)["total"]["rounds"] == 3
    assert "1 bill could not be read" in show(capsys)


def test_a_request_that_no_bill_came_for_is_counted(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk(home, rounds=2)
    assert read(capsys)["total"]["unbilled_requests"] == 0
    with BlockingSession.open(
        FRAME, project=home.parent / "project", environ={"HOME": str(home.parent)}
    ) as one:
        one.history.append(Message("user", "Please mend the parser."))
        one.prepare()
        # The process could die here: what was sent is on the disk.
        assert read(capsys)["total"]["unbilled_requests"] == 1
    assert read(capsys)["total"]["unbilled_requests"] == 1
    assert "1 request without a bill" in show(capsys)


def test_memory_pollution_is_what_was_contradicted_reverted_or_found_broken(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk(home)
    project = home.parent / "project"
    with MemoryDir.for_project(project) as memory:
        memory.add("retries", "The retrier makes 7 attempts before it gives up.")
        memory.add("tabs", "Indent Makefiles with tabs.")
        memory.add("paths", "The entry point is `src/main.py`.")
        memory.add("colours", "Charts use the palette of the brand.")
        memory.add("words", "Answer in short words.")
        first = memory.read("retries.md")
        changed = first.memory.text.replace("7 attempts", "9 attempts")
        memory.commit([Write("retries.md", changed, first.sha256)], SAID)
        words = memory.read("words.md")
        memory.commit([Write("words.md", f"{words.memory.text} And plain ones.\n", words.sha256)], SAID)
        memory.remove("tabs")
        memory.revert(memory.log("colours.md")[0].id)
        mark = BrokenMark(memory.read("paths.md").sha256, ("src/main.py: no such file",), SystemClock().now())
        MarkStore(memory.project.memory_state).put({"paths.md": mark})
    counts = {"contradicted": 1, "reverted": 2, "broken": 1}
    found = read(capsys)["memory"]
    assert found == {"written": 7, **counts, "polluted": 4, "pollution": 4 / 7}
    assert "Memory pollution: 57.1% of 7 written; 1 contradicted, 2 reverted, 1 found broken" in show(capsys)
    assert read(capsys, "--since", "2999-01-01")["memory"]["written"] == 0


def test_a_recalled_memory_is_used_when_a_name_or_value_of_it_comes_up_in_the_turn(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = home.parent / "project"
    with MemoryDir.for_project(project) as memory:
        memory.add("uploads", "Uploads over 40 MB go through the relay in Oslo.")
        memory.add("releases", "Releases are tagged by Mira on Thursdays.")
    patient = {"recall": {"budget_ms": 60_000, "vectors": False}}
    with BlockingSession.open(
        FRAME, project=project, environ={"HOME": str(home.parent)}, settings=patient
    ) as session:
        turns = [("Which relay do large uploads take?", "oslo"), ("Who tags the releases?", "I do not know.")]
        for number, (asked, answer) in enumerate(turns):
            session.history.append(Message("user", asked))
            session.prepare()
            session.record(reply(Message("assistant", f"It is {answer}"), number))
    assert read(capsys)["total"]["recalled"] == {"judged": 2, "unused": 1}
    assert "Recalled memories not used: 50.0% of 2" in show(capsys)
