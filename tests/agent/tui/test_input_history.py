"""What was typed is there again, in order, whatever happened to the file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sevenfold.agent.tui.prompt_input import INPUT_HISTORY_FILE, MAX_INPUT_HISTORY_BYTES, InputHistory
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
