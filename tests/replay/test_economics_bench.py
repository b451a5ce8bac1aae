"""The benchmark of the clearing policies runs, on a corpus small enough for a test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contracts.source_tree import ROOT


def run(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, ROOT / "bench" / "economics.py", "--workers", "1", *arguments]
    return subprocess.run(command, capture_output=True, check=False)


def session(rounds: int) -> str:
    lines: list[object] = []
    for number in range(rounds):
        at = f"2026-11-01T{10 + number // 60:02}:{number % 60:02}:00Z"
        call = {
            "type": "tool_use",
            "id": f"use{number}",
            "name": "Bash",
            "input": {"command": f"make {number}"},
        }
        lines.append({"role": "assistant", "content": [call], "meta": {"ts": at}})
        log = f"step {number} is done and nothing went wrong\n" * 300
        result = {"type": "tool_result", "tool_use_id": f"use{number}", "content": log}
        lines.append({"role": "user", "content": [result], "meta": {"ts": at}})
    first = {"role": "user", "content": "go", "meta": {"ts": "2026-11-01T09:59:00Z"}}
    return "\n".join(json.dumps(line) for line in [first, *lines]) + "\n"


@pytest.mark.story
def test_the_benchmark_plays_every_policy_at_every_rate_and_draws_the_frontier(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "one.jsonl").write_text(session(40), encoding="utf-8")
    picture = tmp_path / "frontier.svg"
    done = run("--data", tmp_path, "--json", "--picture", picture)
    assert done.returncode in {0, 1}, done.stderr.decode()
    found = json.loads(done.stdout)
    assert (found["sessions"], len(found["rows"])) == (1, 5 * 6)
    kept = {
        row["read"]: row["median"] for row in found["rows"] if (row["policy"], row["ttl"]) == ("keep", "5m")
    }
    ours = {
        row["read"]: row["median"] for row in found["rows"] if (row["policy"], row["ttl"]) == ("thrift", "5m")
    }
    assert ours[0.1] < kept[0.1], "a log that nobody looks at again is worth clearing"
    drawn = picture.read_text(encoding="utf-8")
    assert drawn.startswith("<svg")
    assert drawn.count("<polyline") == 2 * 6


@pytest.mark.story
def test_the_benchmark_says_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    done = run("--data", tmp_path)
    assert done.returncode == 1
    assert b"no session of over 50,000 tokens" in done.stderr
