"""What a chat writes to its terminal: the pictures of the docs, and how many bytes it takes."""

from __future__ import annotations

import re
import time
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest
from bench.chat_screens import IMAGES, SCREENS, draw_all, find_differences

from sevenfold.testing import Prompt, Simulator, SlowFault
from tests.stories.living import Place
from tests.stories.stage import Stage

pytestmark = pytest.mark.story

PARAGRAPH = (
    "The parser reads **one line** at a time and splits it into `fields`, each of which is checked. " * 4
)
ANSWER = "\n\n".join(
    [
        "# The parser",
        PARAGRAPH,
        "\n".join(f"- point {number}: a field that is checked before it is used" for number in range(10)),
        PARAGRAPH,
        "```python\n"
        + "\n".join(f"def check_{n}(field: str) -> bool:\n    return bool(field)" for n in range(8))
        + "\n```",
        PARAGRAPH,
    ]
)
MAX_ANSWER_BYTES = 1.2 * 21_100
"""Of what the terminal gets for an answer of 2.4 kB that streams in small pieces."""
MAX_WAITING_BYTES = 300
"""A second, while nothing comes."""


WORDS = " ".join(f"word{number}" for number in range(60))
MIXED = f"""{WORDS}
a line of its own
and a third line

| name | kind | meaning |
|---|---|---|
| columns | number | how wide the terminal is, at least ten |
| theme | word | colours for a light or a dark background |

```python
def check_everything(lines: list[str], *, separator: str = ",") -> list[tuple[str, int]]:
    return [(line, len(line)) for line in lines]
```

The end."""


def brain(prompt: Prompt) -> str:
    asked = prompt.last_text
    return ANSWER if "explain" in asked else MIXED if "mixed" in asked else "Short."


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    with Simulator(brain) as sim:
        yield Place(tmp_path, sim)


def is_idle(stage: Stage) -> bool:
    return stage.is_drawn and "opus-5-5" in stage.shown and "working" not in stage.shown


def read_clock(stage: Stage) -> int:
    """How many seconds the turn has been running, as the status line has it."""
    found = re.search(r"working (\d+) s", stage.shown)
    return int(found[1]) if found else 0


def test_the_pictures_of_the_docs_are_what_a_chat_draws() -> None:
    assert find_differences(draw_all()) == [], "PYTHONPATH=. python bench/chat_screens.py draws them anew"


@pytest.mark.parametrize("name", SCREENS)
def test_a_picture_is_small_and_needs_nothing_from_elsewhere(name: str) -> None:
    text = (IMAGES / f"{name}.svg").read_text(encoding="utf-8")
    assert len(text) < 20_000
    assert "<style>text { white-space: pre }</style>" in text, "no browser collapses the spaces of a column"
    assert re.findall(r"https?://[^\"]*|url\(|<script|<image", text) == ["http://www.w3.org/2000/svg"]


@pytest.mark.parametrize("columns", [40, 60, 100, 160])
def test_a_streamed_answer_takes_few_bytes_and_clears_no_screen(place: Place, columns: int) -> None:
    with place.chat(columns=columns, TERM="xterm-256color") as stage:
        place.sim.fail(SlowFault(each=timedelta(milliseconds=30)))
        before = len(stage.raw)
        stage.enter("explain the parser")
        stage.wait_for("def check_7")
        stage.wait_until(lambda: is_idle(stage), "the turn is over")
        written = bytes(stage.raw[before:])
        assert len(written) * 2_400 / len(ANSWER) <= MAX_ANSWER_BYTES
        assert written.count(b"\x1b[?2026h") == written.count(b"\x1b[?2026l") > 5
        assert b"\x1b[2J" not in stage.raw
        assert b"\x1b[3J" not in stage.raw
        lines = stage.everything.splitlines()
        assert max(map(len, lines)) <= columns
        assert sum("point 3:" in line for line in lines) == 1, "nothing is left behind of what was redrawn"


@pytest.mark.parametrize("columns", [40, 60, 100, 160, 200])
def test_lines_tables_and_code_that_streamed_are_whole(place: Place, columns: int) -> None:
    counted: set[str] = set()
    marked = re.sub(r"[|`]", " ", MIXED.replace("---", " ").replace("python", " "))

    def is_over() -> bool:
        counted.update(re.findall(r"↓ (\d+) tokens", stage.shown))
        return "The end." in stage.shown and is_idle(stage)

    with place.chat(columns=columns) as stage:
        place.sim.fail(SlowFault(each=timedelta(milliseconds=30)))
        stage.enter("mixed")
        stage.wait_until(is_over, "the answer is whole")
        stage.enter("/quit")
        assert stage.wait_for_end() == 0
        said = stage.everything.rpartition("› mixed")[2].partition("› /quit")[0]
    assert [word for word in marked.split() if word not in said] == [], "no word is lost or torn"
    assert said.count("word0 ") == said.count("def check_everything") == 1, (
        "nothing is left of what was redrawn"
    )
    assert "\na line of its own\nand a third line\n" in said
    assert max(map(len, stage.everything.splitlines())) <= columns
    assert columns < 60 or len(counted) > 1, "how much was written is counted where there is room"


@pytest.mark.parametrize("columns", [40, 60, 100, 160])
def test_waiting_costs_few_bytes_and_the_clock_moves(place: Place, columns: int) -> None:
    with place.chat(columns=columns, TERM="xterm-256color") as stage:
        place.sim.fail(SlowFault(first=timedelta(seconds=8)))
        stage.enter("hello")
        stage.wait_until(lambda: read_clock(stage) >= 1, "the clock moves")
        began, before, first = time.monotonic(), len(stage.raw), read_clock(stage)
        stage.wait_until(lambda: read_clock(stage) >= first + 2, "the clock moves on")
        written, took = len(stage.raw) - before, time.monotonic() - began
        assert 0 < written <= MAX_WAITING_BYTES * took
        stage.wait_for("Short.")


@pytest.mark.parametrize("columns", [40, 60, 100, 160])
def test_menus_and_reports_fit_the_terminal(place: Place, columns: int) -> None:
    with place.chat(columns=columns, TERM="xterm-256color") as stage:
        stage.enter("hello")
        stage.wait_for("Short.")
        stage.wait_until(lambda: is_idle(stage), "the turn is over")
        for command, answer in (
            ("/status", "version"),
            ("/cost", "without Sevenfold"),
            ("/why", "neither broken"),
        ):
            stage.enter(command)
            stage.wait_for(answer)
        stage.enter("/model")
        stage.wait_for("type to filter")
        stage.type("haiku-4")
        stage.wait_until(lambda: "filter: haiku-4" in stage.shown, "it is filtered")
        stage.type("\r")
        stage.wait_for("the model is claude-haiku-4-5")
        assert max(map(len, stage.everything.splitlines())) <= columns
        assert b"\x1b]2;" in stage.raw, "the title says what the chat does"
