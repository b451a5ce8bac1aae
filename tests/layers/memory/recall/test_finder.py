"""Recalling without an engine."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sevenfold.core.clock import ManualClock
from sevenfold.core.events import ClaimsBroken, Event, ignore_event
from sevenfold.layers.memory.recall.finder import MemoryFinder, MemoryLibrary, recall
from sevenfold.store.memory.directory import MemoryDir
from sevenfold.store.memory.sidecars import BrokenMark, MarkStore


def test_a_prompt_brings_what_it_is_about_and_nothing_else(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    with MemoryDir.for_project(tmp_path, environ=environ) as memory:
        memory.add("deploys", "The shop is deployed on Tuesdays, never on a Friday.")
        memory.add("colours", "The logo is orange; the brand book says so.")
        found = recall(memory, "May I deploy the shop today?", environ=environ)
        assert [one.key for one in found] == ["deploys.md"]
        assert "never on a Friday" in found[0].body
        assert recall(memory, "What is the capital of France?", environ=environ) == ()


def test_prompts_that_ask_for_nothing_bring_nothing_unless_a_memory_is_named_after_them(
    tmp_path: Path,
) -> None:
    environ = {"HOME": str(tmp_path)}
    with MemoryDir.for_project(tmp_path, environ=environ) as memory:
        memory.add(
            "notes", "Please run the tests before you commit a change, every time, and look at the file."
        )
        for prompt in ("go on", "commit this", "what time is it?", "run the tests", "thanks, looks good"):
            assert recall(memory, prompt, environ=environ) == ()
        memory.add("running-tests", "Run the tests with `make test`.")
        assert recall(memory, "run the tests", environ=environ)[0].key == "running-tests.md"


def test_one_word_of_any_code_brings_nothing_and_two_bring_what_holds_both(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    with MemoryDir.for_project(tmp_path, environ=environ) as memory:
        memory.add("review", "Ann wants small things: one function a job, and vim bindings in examples.")
        memory.add("dev-setup", "The dev server listens on port 8123; a second process takes the next one.")
        for prompt in (
            "split this function in two",
            "how do I exit vim?",
            "kill the process",
            "option b",
        ):
            assert recall(memory, prompt, environ=environ) == ()
        found = recall(memory, "which port does the server listen on?", environ=environ)
        assert [one.key for one in found] == ["dev-setup.md"]


def test_what_it_names_and_is_not_there_is_doubted(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    with MemoryDir.for_project(tmp_path, environ=environ) as memory:
        memory.add("deploys", "The shop is deployed by `scripts/ship_shop.sh`, on Tuesdays.")
        (found,) = recall(memory, "How is the shop deployed?", environ=environ)
        assert "scripts/ship_shop.sh" in found.doubt


def test_at_most_so_many_come_as_were_asked_for(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    with MemoryDir.for_project(tmp_path, environ=environ) as memory:
        for day in ("Monday", "Tuesday", "Friday"):
            memory.add(f"deploys-{day.lower()}", f"The shop is deployed by the {day} team.")
        assert len(recall(memory, "Who deploys the shop?", limit=2, environ=environ)) == 2


@pytest.fixture
def library(tmp_path: Path) -> Generator[MemoryLibrary]:
    home = tmp_path / "home"
    with MemoryDir.for_project(tmp_path, environ={"HOME": str(home)}) as memory:
        memory.add("deploys", "The shop is deployed on Tuesdays, never on a Friday.")
        memory.add("colours", "The logo is orange; the brand book says so.")
        memory.add("scripts", "The shop is deployed by `scripts/ship_shop.sh`.")
        yield MemoryLibrary(memory.project, memory, home, tmp_path)


def test_found_memories_are_filled_up_with_the_newest_others(library: MemoryLibrary) -> None:
    with closing(MemoryFinder(library, ManualClock(), ignore_event)) as finder:
        found = finder.find("Is the logo orange?", 5)
        assert [one.key for one in found] == ["colours.md"]
        assert found[0].share > 0
        newest = [stored.memory.key for stored in library.memory.scan() if stored.memory.key != "colours.md"]
        for limit in range(4):
            filled = finder.filled(found, limit)
            assert filled[:1] == found
            assert [one.key for one in filled[1:]] == newest[: max(0, limit - 1)]
        other = finder.filled((), 1)[0]
        assert (other.share, other.rare_words, other.warmth, other.meaning) == (0.0, 0.0, 0.0, None)
        assert other.body.strip()
        assert finder.find("What is the capital of France?", 5) == ()


def test_a_finder_follows_what_is_written_and_removed(library: MemoryLibrary) -> None:
    with closing(MemoryFinder(library, ManualClock(), ignore_event)) as finder:
        assert finder.find("Which printer is broken?", 5) == ()
        library.memory.add("printer", "The printer of the second floor is broken.")
        assert [one.key for one in finder.find("Which printer is broken?", 5)] == ["printer.md"]
        (line,) = finder.list(["printer.md"])
        assert (line.key, line.description) == ("printer.md", "The printer of the second floor is broken.")
        stored = library.memory.read("printer.md")
        assert (line.kind, line.modified) == (stored.memory.kind, stored.modified)
        library.memory.remove("printer.md")
        assert finder.find("Which printer is broken?", 5) == ()


def test_what_is_counted_as_recalled_is_warmer(library: MemoryLibrary) -> None:
    clock = ManualClock()
    with closing(MemoryFinder(library, clock, ignore_event)) as finder:
        (before,) = finder.find("Is the logo orange?", 5)
        finder.count(["colours.md"], clock.now())
        (after,) = finder.find("Is the logo orange?", 5)
        assert (before.warmth, after.warmth) == (0.0, 1.0)


def test_of_two_that_rank_the_same_the_warmer_comes_first(library: MemoryLibrary) -> None:
    clock = ManualClock()
    library.memory.add("north", "The printer is broken.")
    library.memory.add("south", "The printer is broken.")
    with closing(MemoryFinder(library, clock, ignore_event)) as finder:
        first, last = (one.key for one in finder.find("Which printer is broken?", 5))
        finder.count([last], clock.now())
        assert [one.key for one in finder.find("Which printer is broken?", 5)] == [last, first]


def test_a_mark_of_an_earlier_check_counts_while_the_memory_is_the_same(library: MemoryLibrary) -> None:
    heard: list[Event] = []
    with closing(MemoryFinder(library, ManualClock(), heard.append)) as finder:
        candidates = {one.key: one for one in finder.filled(finder.find("deploy the shop", 5), 3)}
        marks, at = MarkStore(library.project.control), datetime(2026, 11, 2, tzinfo=UTC)
        stored = library.memory.read("deploys.md")

        def doubts(mark: BrokenMark) -> str:
            marks.put({"deploys.md": mark})
            (taken,) = finder.take([candidates["deploys.md"]])
            assert taken.body == stored.memory.body
            assert taken.path == str(library.memory.path / "deploys.md")
            return taken.doubt

        own = stored.sha256
        assert doubts(BrokenMark(own, ("a.py",), at)) == "could not be confirmed on 2026-11-02: a.py"
        assert doubts(BrokenMark("of another text", ("a.py",), at)) == ""
        assert doubts(BrokenMark(own, (), at)) == ""
        assert heard == []
        (taken,) = finder.take([candidates["scripts.md"]])
        assert "scripts/ship_shop.sh" in taken.doubt
        assert [type(event) for event in heard] == [ClaimsBroken]


def test_without_an_encoder_words_alone_are_searched(library: MemoryLibrary) -> None:
    with closing(MemoryFinder(library, ManualClock(), ignore_event)) as finder:
        assert finder.load_encoder() is False
        assert finder.has_meanings is False
        assert finder.embed() == 0
