"""Files are read again from disk: only what was read before, only what is fit to be shown."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from sevenfold.core.events import Event, FileRestored, RestoreSkipped
from sevenfold.layers.compaction.compose import MAX_RESTORED_BYTES, read_restored_blocks
from sevenfold.layers.compaction.keep_policy import Extra, RestoreFacts
from sevenfold.layers.compaction.policy import CompactSettings

SETTINGS = CompactSettings(restored_file_tokens=100, restored_files_tokens=150)


def count(text: str) -> int:
    return len(text) // 4


def bring_back(
    *seen: Path | str, folder: str = "", barred: frozenset[str] = frozenset(), extras: tuple[Extra, ...] = ()
) -> tuple[list[str], list[Event]]:
    heard: list[Event] = []
    facts = RestoreFacts(tuple(map(str, seen)), barred=barred, extras=extras)
    blocks = asyncio.run(read_restored_blocks(facts, SETTINGS, count, heard.append, folder=folder))
    return [block.text for block in blocks], heard


def skipped(heard: list[Event]) -> dict[str, str]:
    return {Path(event.what).name: event.reason for event in heard if isinstance(event, RestoreSkipped)}


def test_a_file_comes_back_as_it_is_now(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("print('new')\n", encoding="utf-8")
    (text,), heard = bring_back(file)
    assert "print('new')" in text
    assert str(file) in text
    assert heard == [FileRestored(str(file), 3, is_cut=False)]


def test_long_files_are_cut_and_share_a_budget(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text("a line of code\n" * 200, encoding="utf-8")
    texts, heard = bring_back(*(tmp_path / name for name in "abc"))
    tokens = [event.tokens for event in heard if isinstance(event, FileRestored) and event.is_cut]
    assert len(texts) == len(tokens) == 2
    assert tokens[0] <= 100
    assert sum(tokens) <= 150
    assert "only its beginning is shown" in texts[0]
    assert skipped(heard) == {"c": "the budget for files is used up"}


def test_what_is_not_fit_to_be_shown_is_told_with_its_reason(tmp_path: Path) -> None:
    names = ("missing", "folder", "link", "binary", "huge")
    (tmp_path / "folder").mkdir()
    (tmp_path / "target").write_text("secret", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0\1")
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(MAX_RESTORED_BYTES + 1)
    texts, heard = bring_back(*(tmp_path / name for name in names))
    assert texts == []
    told = skipped(heard)
    assert set(told) == set(names)
    for name, part in zip(
        names, ("No such file", "no plain file", "symbolic links", "no text", "bytes now"), strict=True
    ):
        assert part in told[name]
    assert "secret" not in str(heard)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    texts, heard = bring_back(tmp_path / "pipe")
    assert texts == []
    assert "no plain file" in skipped(heard)["pipe"]


def test_relative_paths_start_from_the_given_folder(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n", encoding="utf-8")
    assert len(bring_back("a.py", folder=str(tmp_path))[0]) == 1
    assert "relative" in skipped(bring_back("a.py")[1])["a.py"]


@pytest.mark.parametrize("spelling", ["plan.md", "./sub/../plan.md"])
def test_a_barred_file_is_barred_in_every_spelling(tmp_path: Path, spelling: str) -> None:
    (tmp_path / "plan.md").write_text("1. release", encoding="utf-8")
    texts, heard = bring_back(spelling, folder=str(tmp_path), barred=frozenset({str(tmp_path / "plan.md")}))
    assert texts == []
    assert len(heard) == 1


def test_an_empty_file_and_one_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "latin").write_bytes("äöü ".encode("latin-1") * 50)
    told = skipped(bring_back(tmp_path / "empty", tmp_path / "latin")[1])
    assert told["empty"] == "it is empty"
    assert "UTF-8" in told["latin"]


def test_a_character_cut_in_two_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a" + "é" * 2_000, encoding="utf-8")
    (text,), _ = bring_back(tmp_path / "a")
    assert "\N{REPLACEMENT CHARACTER}" not in text


def test_what_else_was_in_view_follows_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n", encoding="utf-8")
    texts, _ = bring_back(tmp_path / "a.py", extras=(Extra("todo", "todo list", "- mend"),))
    assert len(texts) == 2
    assert "- mend" in texts[1]
