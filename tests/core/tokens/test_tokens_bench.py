"""The benchmark itself, on sessions whose bills are known because they were made up here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TypeAlias

import pytest

from sevenfold.core.messages import read_message
from sevenfold.core.tokens.estimation import weigh_by_shape
from tests.bench.scripts import ScriptRun, run_script

WORDS = ("the", "estimate", "of", "context", "never", "exact", "but", "bill", "corrects", "it")

Line: TypeAlias = dict[str, object]


def write_sessions(folder: Path, *, noise: float) -> Path:
    for kind in ("claude_made", "codex"):
        target = folder / "sessions" / kind / "one.jsonl"
        target.parent.mkdir(parents=True)
        lines = (json.dumps(line) + "\n" for line in _session(Random(1), noise, is_codex=kind == "codex"))
        target.write_text("".join(lines), encoding="utf-8")
    return folder


def _session(chance: Random, noise: float, *, is_codex: bool) -> Iterator[Line]:
    prompt = 20_000
    yield {"role": "user", "content": "Go.", "meta": {}}
    for number in range(60):
        reply: Line = {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "ls"}}],
        }
        text = " ".join(chance.choices(WORDS, k=chance.randrange(50, 800)))
        result: Line = {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": text}],
        }
        counts = {"cached_input_tokens": 0} if is_codex else {"cache_read_input_tokens": 0}
        meta: Line = {
            "model": "claude-opus-4-6",
            "usage": {"input_tokens": prompt, "output_tokens": 1, **counts},
        }
        if number == 30:
            meta["boundary"] = {"kind": "microcompact"}
        yield {**reply, "meta": meta}
        yield {**result, "meta": {}}
        prompt += round(_tokens(reply, result) * chance.uniform(1 - noise, 1 + noise))


def _tokens(*messages: Line) -> float:
    return sum(weigh_by_shape(block) for message in messages for block in read_message(message).blocks)


def run_bench(data: Path, *options: str) -> ScriptRun:
    return run_script("tokens.py", "--data", str(data), *options)


def test_the_benchmark_passes_where_bills_are_as_estimated(tmp_path: Path) -> None:
    ran = run_bench(write_sessions(tmp_path, noise=0.02), "--json")
    report = json.loads(ran.stdout)
    ours = report["rules"]["calibrated (ours)"]
    assert ran.returncode == 0
    assert ours["calls"] == 58
    assert report["left_out"] == {"first_of_session": 1, "after_boundary": 1}
    assert ours["median"] < 0.03
    assert report["times_closer"] > 3


def test_the_benchmark_fails_where_bills_have_nothing_to_do_with_the_content(tmp_path: Path) -> None:
    ran = run_bench(write_sessions(tmp_path, noise=0.9))
    assert ran.returncode == 1
    assert "MISSED median" in ran.stdout


@pytest.mark.parametrize("script", ["tokens.py", "token_weights.py", "counting.py"])
def test_each_benchmark_explains_itself(script: str) -> None:
    ran = run_script(script, "--help")
    assert ran.returncode == 0
    assert len(ran.stdout.splitlines()) > 8


def test_missing_data_is_named(tmp_path: Path) -> None:
    ran = run_bench(tmp_path)
    assert ran.returncode == 1
    assert "claude*/*.jsonl" in ran.stderr
