"""Uses of memories: counted by many at once, forgotten by nobody, and never in the way."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenfold.core.events import Event, UsesLost
from sevenfold.core.memories import HALF_LIFE, MEMORY_USE_KINDS, NO_USES, MemoryUse, MemoryUses, add_uses
from sevenfold.store.files.folder import Folder
from sevenfold.store.memory.sidecars import USES_NAME, UseStore
from tests.examples import up_to

NOW = datetime(2026, 11, 2, 9, 30, tzinfo=UTC)

USES = st.lists(
    st.builds(MemoryUse, st.sampled_from(["a.md", "b.md", "team/c.md"]), st.sampled_from(MEMORY_USE_KINDS))
)


@pytest.fixture
def control(tmp_path: Path) -> Iterator[Folder]:
    with Folder.open(tmp_path / "control", create=True) as folder:
        yield folder


def test_uses_come_back_as_they_were_counted(control: Folder) -> None:
    book = UseStore(control)
    book.add([MemoryUse("a.md", "recalled"), MemoryUse("a.md", "shown"), MemoryUse("b.md", "given up")], NOW)
    book.add([MemoryUse("a.md", "changed")], NOW + timedelta(days=1))
    read = book.read()
    assert read["a.md"] == MemoryUses({"recalled": 1, "shown": 1, "changed": 1}, NOW, 2.0)
    assert read["b.md"].count("given up") == 1
    assert read["b.md"].last is None


@settings(max_examples=up_to(25), deadline=None)
@given(USES)
def test_what_is_written_reads_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, uses: list[MemoryUse]
) -> None:
    with Folder.open(tmp_path_factory.mktemp("control")) as control:
        book = UseStore(control)
        book.add(uses, NOW)
        assert book.read() == add_uses({}, uses, NOW)


def test_counts_of_many_at_once_are_all_kept(control: Folder) -> None:
    def count(_: int) -> None:
        UseStore(control).add([MemoryUse("a.md", "shown")], NOW)

    with ThreadPoolExecutor(8) as crowd:
        list(crowd.map(count, range(40)))
    assert UseStore(control).read()["a.md"].count("shown") == 40


def test_a_memory_that_is_gone_is_forgotten_and_the_others_stay(control: Folder) -> None:
    book = UseStore(control)
    book.add([MemoryUse("a.md", "shown"), MemoryUse("b.md", "shown")], NOW)
    book.forget(["a.md", "never.md"])
    assert set(book.read()) == {"b.md"}


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'"text"'])
def test_a_damaged_file_is_told_and_counting_begins_anew(control: Folder, damage: bytes) -> None:
    events: list[Event] = []
    control.replace(f"{USES_NAME}.json", damage)
    book = UseStore(control, emit=events.append)
    book.add([MemoryUse("a.md", "shown")], NOW)
    assert book.read()["a.md"].count("shown") == 1
    assert any(isinstance(event, UsesLost) for event in events)


def test_lines_that_make_no_sense_count_for_nothing(control: Folder) -> None:
    control.replace(
        f"{USES_NAME}.json",
        b'{"a.md": 3, "b.md": {"shown": -1}, "c.md": {"shown": true, "last": "noon", "warmth": 4}}',
    )
    assert UseStore(control).read() == {}


def test_half_of_the_warmth_is_gone_after_a_half_life() -> None:
    uses = add_uses({}, [MemoryUse("a.md", "shown")] * 4, NOW)["a.md"]
    assert uses.warmth_at(NOW) == pytest.approx(4.0)
    assert uses.warmth_at(NOW + HALF_LIFE) == pytest.approx(2.0)
    assert NO_USES.warmth_at(NOW) == 0.0


@given(st.lists(st.integers(0, 400), min_size=1, max_size=8))
def test_warmth_grows_with_each_use_and_never_beyond_their_number(days: list[int]) -> None:
    uses = NO_USES
    for number, day in enumerate(sorted(days), 1):
        at = NOW + timedelta(days=day)
        before = uses.warmth_at(at)
        uses = uses.with_use("shown", at)
        assert before < uses.warmth_at(at) <= number + 1e-9


def test_a_clock_that_was_set_back_makes_nothing_warmer() -> None:
    uses = NO_USES.with_use("shown", NOW)
    assert uses.warmth_at(NOW - timedelta(days=90)) == 1.0
