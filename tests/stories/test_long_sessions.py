"""A session of a thousand rounds is as quick to type in as one of ten, and opens on its end."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sevenfold.core.json import freeze_object
from sevenfold.core.messages import Message, Text, ToolResult, ToolUse, ToolUseId
from sevenfold.store.files.folder import Folder
from sevenfold.store.transcript.records import MessageRecord, Record, UsageRecord
from sevenfold.store.transcript.transcript import Transcript
from sevenfold.testing import Prompt, Reply, Simulator, SlowFault, say
from tests.stories.living import Place
from tests.stories.stage import Stage
from tests.stories.walk import WIDTHS, flatten

pytestmark = pytest.mark.story

MOST = 1.3
"""Of the processor time, and of the bytes, of a key in a session of ten rounds."""
WORDS = "the quick brown fox "
BLOCKS = 3
"""Of keys that are measured; the one in the middle counts."""
CLEAR = "\x15"
LIVED_ROUNDS = 80
BILL = freeze_object({"input_tokens": 9, "cache_read_input_tokens": 9_000, "output_tokens": 90})


def brain(prompt: Prompt) -> Reply | str:
    if prompt.last_text.startswith("talk") and not prompt.results:
        return "word " * 400
    rounds = sum(message.role == "assistant" for message in prompt.messages)
    if rounds < LIVED_ROUNDS and "work" in str(prompt.messages[0].content):
        return say("I look at it.", calls={"read": {"file_path": "cat.txt"}})
    return "Done."


@pytest.fixture
def sim() -> Generator[Simulator]:
    with Simulator(brain) as running:
        yield running


def make_session(place: Place, rounds: int) -> None:
    """One on disk, of one turn with so many rounds."""
    place.run("chat", "-p", "hello")
    (path,) = place.transcripts()
    at, records = datetime.now(UTC), [Record(MessageRecord(Message("user", "look at it")), datetime.now(UTC))]
    for number in range(rounds):
        use = ToolUse(ToolUseId(f"toolu_{number:04}"), "read", freeze_object({"file_path": "cat.txt"}))
        result = ToolResult(use.id, "\n".join(f"     {line}\tThe cat sat." for line in range(20)))
        bill = UsageRecord(model="claude-opus-5-5", who="main", wire=BILL)
        bodies = (
            MessageRecord(Message("assistant", (Text("I look at it."), use))),
            bill,
            MessageRecord(Message("user", (result,))),
        )
        records += [Record(body, at) for body in bodies]
    records.append(Record(MessageRecord(Message("assistant", "All of it was looked at.")), at))
    with Folder.open(path.parent) as folder, Transcript.open(folder, path.stem) as transcript:
        transcript.append_all(records)


@dataclass(slots=True)
class Typist:
    """One person at one terminal."""

    stage: Stage

    def type(self, keys: str) -> float:
        """Key by key, as the terminal answers each; the processor time a key, in seconds."""
        began = measure_busy_time(self.stage)
        for key in keys:
            before = len(self.stage.raw)
            self.stage.type(key)
            self.stage.wait_until(lambda before=before: len(self.stage.raw) > before, "a key is answered")
        return (measure_busy_time(self.stage) - began) / len(keys)

    def rest(self) -> None:
        """With an empty input."""
        self.stage.type(CLEAR)
        self.stage.wait_until(
            lambda: self.stage.shown.rpartition("›")[2].lstrip(" ")[:1] == "\n", "it is empty"
        )


def measure_busy_time(stage: Stage) -> float:
    """Of all threads that run."""
    tasks = Path(f"/proc/{stage.process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def compare(short: Typist, long: Typist, keys: str, first: str = "") -> None:
    """Type the same in both, a little here and a little there. A busy machine only ever adds
    to a time: the least of each counts."""
    taken: dict[str, list[float]] = {"short": [], "long": []}
    for one in (short, long):
        one.rest()
        one.type(first or " ")
    for _ in range(BLOCKS):
        taken["short"].append(short.type(keys))
        taken["long"].append(long.type(keys))
    for one in (short, long):
        one.rest()
    assert min(taken["short"]) > 0
    assert min(taken["long"]) <= MOST * min(taken["short"]), taken


@WIDTHS
def test_a_keypress_costs_the_same_after_ten_rounds_and_after_a_thousand(
    sim: Simulator, tmp_path: Path, columns: int
) -> None:
    with ExitStack() as stack:
        pair: list[Typist] = []
        for rounds in (10, 1_000):
            (tmp_path / str(rounds)).mkdir()
            place = Place(tmp_path / str(rounds), sim)
            make_session(place, rounds)
            stage = stack.enter_context(place.chat("--continue", columns=columns, TERM="xterm-256color"))
            stage.wait_for("goes on:")
            pair.append(Typist(stage))
        short, long = pair
        assert "995 earlier rounds" in flatten(long.stage.everything)
        assert len(long.stage.everything) <= 1.1 * len(short.stage.everything), "it opens on the end"
        before = [len(one.stage.raw) for one in pair]
        compare(short, long, WORDS)
        written = [len(one.stage.raw) - size for one, size in zip(pair, before, strict=True)]
        assert written[1] <= MOST * written[0]
        compare(short, long, "mo\x7f\x7f" * 4, first="/")
        compare(short, long, "ca\x7f\x7f" * 4, first="@")
        sim.fail(SlowFault(each=timedelta(milliseconds=60)))
        sim.fail(SlowFault(each=timedelta(milliseconds=60)))
        for one in pair:
            one.stage.enter("talk")
        for one in pair:
            one.stage.wait_for("word word")
        compare(short, long, WORDS)


def test_a_keypress_costs_the_same_in_a_session_that_has_lived_long(sim: Simulator, tmp_path: Path) -> None:
    place = Place(tmp_path, sim)
    with place.chat(columns=100, TERM="xterm-256color", SEVENFOLD_AGENT_MAX_ROUNDS="2000") as stage:
        one = Typist(stage)
        stage.enter("hello")
        stage.wait_for("Done.")
        one.rest()
        fresh = min(one.type(WORDS) for _ in range(BLOCKS))
        one.rest()
        stage.enter("work on it")
        stage.wait_until(lambda: stage.everything.count("Done.") == 2, "all rounds are over")
        one.rest()
        used = min(one.type(WORDS) for _ in range(BLOCKS))
        assert used <= MOST * fresh
