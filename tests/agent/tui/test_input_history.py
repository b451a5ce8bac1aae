"""What was typed is there again, in order, whatever happened to the file."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sevenfold.agent.tui.input_keys import PastedTexts
from sevenfold.agent.tui.prompt_input import (
    INPUT_HISTORY_FILE,
    MAX_INPUT_HISTORY_BYTES,
    InputHistory,
    make_prompt_history,
)
from sevenfold.store.files.disk import SystemDisk
from sevenfold.store.files.folder import Folder


@pytest.fixture
def home(tmp_path: Path) -> Folder:
    return Folder.open(tmp_path / "home", create=True)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(max_size=30), max_size=8))
def test_lines_come_back_in_order_with_their_line_breaks(texts: list[str], home: Folder) -> None:
    past = InputHistory(home)
    before = past.read_all()
    for text in texts:
        past.add(text)
    assert past.read_all() == before + texts


def test_a_torn_line_costs_itself_alone(home: Folder) -> None:
    past = InputHistory(home)
    past.add("one")
    with (home.path / INPUT_HISTORY_FILE).open("ab") as file:
        file.write(b'{"text":"ha\n{"text":7}\n')
    past.add("two")
    assert past.read_all() == ["one", "two"]


def test_only_the_newest_are_read_of_a_long_past(home: Folder) -> None:
    past = InputHistory(home)
    for number in range(3):
        past.add(f"{number}" * (MAX_INPUT_HISTORY_BYTES // 2))
    assert [text[0] for text in past.read_all()] == ["2"]


def test_nobody_else_may_read_it(home: Folder) -> None:
    InputHistory(home).add("one")
    assert os.stat(home.path / INPUT_HISTORY_FILE).st_mode & 0o077 == 0


def test_a_prompt_is_sent_where_the_disk_takes_no_more(home: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(SystemDisk, "write", refuse)
    make_prompt_history(InputHistory(home), PastedTexts()).store_string("one")
    assert InputHistory(home).read_all() == []


def test_lines_have_the_time_they_were_typed_at_and_older_ones_have_none(home: Folder) -> None:
    home.append(INPUT_HISTORY_FILE, b'{"text":"old"}\n{"text":"odd","at":"yesterday"}\n', durable=False)
    past = InputHistory(home)
    past.add("new")
    old, odd, new = past.read_entries()
    assert (old.text, old.at, odd.at) == ("old", None, None)
    assert new.at is not None
    assert new.at.tzinfo is not None
