"""What `docs/store.md` shows is so."""

from __future__ import annotations

import re
from pathlib import Path

from sevenfold.store.files import is_whole
from sevenfold.store.transcript.records import BoundaryRecord, MessageRecord, read_line, write_line
from tests.contracts.source_tree import run_snippets

PAGE = (Path(__file__).parents[3] / "docs" / "store.md").read_text("utf-8")


def fenced(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_example_lines_are_lines() -> None:
    lines = fenced("jsonl")[0].encode().splitlines()
    assert [is_whole(line) for line in lines] == [True, True]
    records = [read_line(line) for line in lines]
    assert [type(record.body) for record in records] == [MessageRecord, BoundaryRecord]
    assert [write_line(record).rstrip(b"\n") for record in records] == lines


def test_the_examples_of_code_run(tmp_path: Path) -> None:
    snippets = fenced("python")
    assert snippets
    done = run_snippets(snippets, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
