"""The benchmark itself, on sessions whose cache is known because it was made up here."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypedDict

import pytest

from tests.bench.scripts import ScriptRun, run_script

START = datetime(2026, 2, 1, 12, tzinfo=UTC)
FRAME, GROWTH, TRAILER = 20_000, 3_000, 8

Line = dict[str, object]


class Found(TypedDict):
    """What the tests look at of a report."""

    closeness: dict[str, dict[str, float]]
    explained: dict[str, int]
    unexplained: list[dict[str, object]]
    sessions: list[dict[str, object]]
    failures: list[str]


class Log:
    """A transcript in the making: one tool call after the other, billed as it is told."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.now = START
        self.total = FRAME
        self.calls = 0
        self.results: list[Line] = []
        self.tell("user", [{"type": "text", "text": "Go."}])

    def tell(self, role: str, content: list[Line], **meta: object) -> None:
        at = self.now.isoformat().replace("+00:00", "Z")
        self.lines.append({"role": role, "content": content, "meta": {"ts": at, **meta}})

    def call(
        self, read: int, *, wait: timedelta = timedelta(seconds=20), tools: int = 1, fresh: int = TRAILER
    ) -> None:
        """A call of so many tools that read so much, then their results."""
        self.now += wait
        self.calls += 1
        usage = {
            "input_tokens": fresh,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": self.total - read - fresh,
            "output_tokens": 1,
        }
        names = [f"t{self.calls}_{n}" for n in range(tools)]
        asked: list[Line] = [
            {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": "ls"}} for name in names
        ]
        self.tell("assistant", asked, model="claude-opus-4-6", usage=usage)
        self.results = [result(name) for name in names]
        self.tell("user", self.results)
        self.total += GROWTH * tools

    def compact(self) -> None:
        """The last results are answered by a summary, and the prompt starts over."""
        boundary = {"kind": "compact", "trigger": "auto", "pre_tokens": self.total}
        self.lines.pop()
        summary: Line = {"type": "text", "text": "They looked at many things."}
        self.tell("user", [*self.results, summary], boundary=boundary, merged_at=len(self.results))
        self.total = FRAME + GROWTH

    def write(self, folder: Path, name: str) -> None:
        target = folder / "sessions" / "claude_made" / f"{name}.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(json.dumps(line) + "\n" for line in self.lines), encoding="utf-8")


def result(name: str) -> Line:
    return {"type": "tool_result", "tool_use_id": name, "content": f"{name} found a word or two. " * 300}


def steady(calls: int = 20) -> Log:
    """Every call reads all that the one before it wrote."""
    log = Log()
    read = 0
    for _ in range(calls):
        before = log.total
        log.call(read)
        read = before - TRAILER
    return log


def run(folder: Path, *extra: str) -> ScriptRun:
    return run_script("cache_model.py", "--data", str(folder), *extra)


def report(folder: Path, *, code: int = 0) -> Found:
    done = run(folder, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_a_steady_session_is_foretold_to_a_hair(tmp_path: Path) -> None:
    steady().write(tmp_path, "steady")
    found = report(tmp_path)
    assert found["closeness"]["unbroken, ours"]["mean_points"] < 0.05
    assert (found["explained"], found["unexplained"], found["failures"]) == ({}, [], [])


def test_a_long_pause_and_a_compaction_explain_their_breaks(tmp_path: Path) -> None:
    log = steady()
    log.call(0, wait=timedelta(minutes=6))
    log.compact()
    log.call(FRAME)
    log.write(tmp_path, "cut")
    found = report(tmp_path)
    assert found["explained"] == {"idle beyond TTL": 1, "compaction": 1}
    assert found["unexplained"] == []
    ours, rule = (found["closeness"][f"all, {name}"]["mean_points"] for name in ("ours", "the rule"))
    assert ours < rule


def test_a_marker_that_stood_before_the_last_result_explains_a_smaller_read(tmp_path: Path) -> None:
    log = steady()
    log.call(log.total - GROWTH - TRAILER, tools=2)
    # The result that came last is marked and sent first: the other one is fresh, and nobody can read it.
    log.call(log.total - 2 * GROWTH - TRAILER, fresh=GROWTH)
    log.call(log.total - 2 * GROWTH)
    log.write(tmp_path, "parallel")
    found = report(tmp_path)
    assert found["explained"] == {"marker before the end": 1}


def test_a_break_out_of_nowhere_is_listed_as_not_explained(tmp_path: Path) -> None:
    log = steady()
    log.call(FRAME)
    log.write(tmp_path, "odd")
    (odd,) = report(tmp_path)["unexplained"]
    assert (odd["number"], odd["logged"], odd["pause"]) == (21, FRAME, 20.0)


def test_the_run_fails_when_the_rule_is_closer(tmp_path: Path) -> None:
    log = steady(3)
    log.compact()
    log.call(log.total - TRAILER)
    log.write(tmp_path, "unlikely")
    found = report(tmp_path, code=1)
    assert found["failures"]


@pytest.mark.parametrize("extra", [(), ("--choices",), ("--limit", "1")])
def test_every_way_of_running_prints_a_table(tmp_path: Path, extra: tuple[str, ...]) -> None:
    for name in ("a", "b"):
        steady(5).write(tmp_path, name)
    done = run(tmp_path, *extra)
    assert done.returncode == 0, done.stderr
    assert "within 2 points" in done.stdout
    assert "reading sessions" in done.stderr


def test_a_folder_without_sessions_is_named(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 1
    assert "give --data the folder above it" in done.stderr
