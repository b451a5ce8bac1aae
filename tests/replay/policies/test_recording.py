"""A transcript as what a policy could have acted on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sevenfold.replay.policies.recording import FRAME_TOKENS, Recording, read_recordings

LONG = "return compute_the_total(of_all_the_items, with_tax=True)"


def line(role: str, minute: int, content: list[object], **meta: object) -> str:
    return json.dumps(
        {"role": role, "content": content, "meta": {"ts": f"2026-11-01T12:{minute:02}:00Z", **meta}}
    )


def call(number: int, tool: str, **given: object) -> dict[str, object]:
    return {"type": "tool_use", "id": f"use{number}", "name": tool, "input": given}


def result(number: int, content: str) -> dict[str, object]:
    return {"type": "tool_result", "tool_use_id": f"use{number}", "content": content}


def read(tmp_path: Path, *lines: str) -> Recording:
    path = tmp_path / "one.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (found,) = read_recordings(path, "messages")
    return found


def billed(tokens: int) -> dict[str, int]:
    return {"input_tokens": 3, "cache_read_input_tokens": 0, "cache_creation_input_tokens": tokens - 3}


def test_rounds_results_and_uses_are_read_from_the_log(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        line("user", 0, [{"type": "text", "text": "please fix the total"}]),
        line("assistant", 1, [call(1, "Read", file_path="/src/a.py"), call(2, "TodoWrite", todos=[])]),
        line("user", 2, [result(1, f"def total():\n    {LONG}\n" * 20), result(2, "ok")]),
        line("assistant", 3, [call(3, "Edit", file_path="/src/a.py", old_string=LONG, new_string="0")]),
        line("user", 4, [result(3, "The file /src/a.py has been updated.")]),
        line("assistant", 5, [{"type": "text", "text": "done"}]),
    )
    (segment,) = found.segments
    assert [item.result.tool for item in segment.results] == ["Read", "Edit"], "a todo list stays"
    assert [turn.results for turn in segment.rounds] == [range(0), range(1), range(1, 2)]
    assert [turn.started.minute for turn in segment.rounds] == [0, 2, 4]
    assert [turn.answered.minute for turn in segment.rounds] == [1, 3, 5]
    spans = [use for use in segment.rounds[1].uses if use.kind == "span"]
    assert [use.sources for use in spans] == [(0,)]
    first, second = segment.results
    assert FRAME_TOKENS < first.place < first.place + first.result.tokens < second.place
    assert segment.rounds[1].tokens >= first.place + first.result.tokens
    assert found.tokens > first.result.tokens


def test_a_boundary_starts_a_stretch_whose_uses_of_the_past_are_lost(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        line("user", 0, [{"type": "text", "text": "go"}]),
        line("assistant", 1, [call(1, "Grep", pattern="total")]),
        line("user", 2, [result(1, f"/src/a.py: {LONG}")]),
        line("assistant", 3, [{"type": "text", "text": "seen"}]),
        line(
            "user",
            4,
            [{"type": "text", "text": "a summary"}],
            boundary={"kind": "compact"},
            compact_summary=True,
        ),
        line("assistant", 5, [call(2, "Edit", file_path="/x/b.py", old_string=LONG, new_string="0")]),
    )
    first, second = found.segments
    assert (len(first.rounds), len(second.rounds)) == (2, 1)
    assert second.previous == first.rounds[-1].started
    assert [use.sources for use in second.rounds[0].uses if use.kind == "span"] == [()]
    assert second.rounds[0].tokens < first.rounds[-1].tokens


@pytest.mark.parametrize(("bill", "frame"), [(30_000, 30_000), (900_000, 100_000), (10, 5_000)])
def test_the_frame_is_what_the_first_bill_holds_besides_the_messages(
    tmp_path: Path, bill: int, frame: int
) -> None:
    found = read(
        tmp_path,
        line("user", 0, [{"type": "text", "text": "go"}]),
        line("assistant", 1, [{"type": "text", "text": "done"}], usage=billed(bill)),
    )
    assert found.segments[0].frame_tokens == pytest.approx(frame, abs=20)


def test_bills_set_how_heavy_the_messages_are(tmp_path: Path) -> None:
    def lines(second: int) -> list[str]:
        return [
            line("user", 0, [{"type": "text", "text": "go"}]),
            line("assistant", 1, [call(1, "Bash", command="make")], usage=billed(30_000)),
            line("user", 2, [result(1, "all is well that ends well\n" * 400)]),
            line("assistant", 3, [{"type": "text", "text": "done"}], usage=billed(second)),
        ]

    light, heavy = read(tmp_path, *lines(32_500)), read(tmp_path, *lines(33_500))
    assert light.segments[0].rounds[1].tokens == pytest.approx(32_500, abs=60)
    assert heavy.segments[0].rounds[1].tokens == pytest.approx(33_500, abs=60)
    assert heavy.tokens > light.tokens


def test_a_log_without_times_or_calls_has_nothing_to_play(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text('{"role": "user", "content": "hello"}\n{"role": "assistant", "content": "hi"}\n')
    assert read_recordings(path, "messages") == []
