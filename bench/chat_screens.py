"""Pictures of a chat, from a real one in a terminal of its own: the SVG files of `docs/images`.

    python bench/chat_screens.py            # write them
    python bench/chat_screens.py --check    # say whether they are as they should be

The model is the simulator, with fixed answers. Session ids and folders are replaced by others of the same
length, so that two runs draw the same. A picture has no font and no address of its own: every viewer shows it
with what it has.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.sax.saxutils import escape

from sevenfold.testing import Prompt, Reply, Simulator, say
from tests.stories.living import Place
from tests.stories.stage import Stage

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
ROW, CHARACTER = 18, 8.4
"""Pixels of one row, and of one character at 14 pixels."""
DARK_COLOURS = {
    "default": "#d4d4d4",
    "black": "#666666",
    "red": "#f48771",
    "green": "#89d185",
    "brown": "#e2c08d",
    "blue": "#75beff",
    "magenta": "#c586c0",
    "cyan": "#4fc1ff",
    "white": "#ffffff",
    "brightblack": "#8a8a8a",
    "brightred": "#f48771",
    "brightgreen": "#89d185",
    "brightbrown": "#e2c08d",
    "brightblue": "#75beff",
    "brightmagenta": "#c586c0",
    "brightcyan": "#4fc1ff",
    "brightwhite": "#ffffff",
}
LIGHT_COLOURS = {
    "default": "#1f2328",
    "black": "#24292f",
    "red": "#a40e26",
    "green": "#116329",
    "brown": "#7d4e00",
    "blue": "#0550ae",
    "magenta": "#8250df",
    "cyan": "#1b7c83",
    "white": "#57606a",
    "brightblack": "#57606a",
    "brightred": "#a40e26",
    "brightgreen": "#116329",
    "brightbrown": "#633c01",
    "brightblue": "#0550ae",
    "brightmagenta": "#8250df",
    "brightcyan": "#1b7c83",
    "brightwhite": "#57606a",
}


@dataclass(frozen=True, slots=True)
class Palette:
    """What a terminal makes of the sixteen colours."""

    colours: Mapping[str, str]
    background: str

    def find_colour(self, name: str) -> str:
        """Of the sixteen by name, of the others as six digits."""
        return self.colours.get(name) or f"#{name}"


DARK, LIGHT = Palette(DARK_COLOURS, "#1e1e1e"), Palette(LIGHT_COLOURS, "#ffffff")
MASKS = (
    (r"session [0-9a-f]{8}", "session 3f2a91c0"),
    (r"sevenfold \d\S*", "sevenfold"),
    (r"project on \S+", "project on main"),
    (r"cache warm \d+ min", "cache warm 5 min"),
    (r"\d+% context", "1% context"),
    (r" \(saved \S+\)", ""),
)
_SESSION_ROW = re.compile(r"^(..\S.*?) +(?:just now|\d+ min) +\$\d+\.\d+ +ma\w+")
ANSWER = """The parser reads one line at a time:

| file | what it does |
|---|---|
| `parser.py` | splits lines into fields |
| `fields.py` | checks each field |

```python
def parse(line: str) -> list[str]:
    return line.split(",")
```
"""


PROGRAM = """def split(line: str) -> list[str]:
    # One field after the other.
    return line.split(",")


def join(fields: list[str]) -> str:
    return ",".join(fields)
"""
CHANGE = {
    "file_path": "parser.py",
    "old_string": '    return line.split(",")\n',
    "new_string": '    return line.split(";")\n',
}

_EDIT_ROUND = 5
"""The number of messages once the file was read and changed."""


def brain(prompt: Prompt) -> Reply | str:
    is_edit = "semicolons" in prompt.last_text
    if is_edit and len(prompt.messages) < _EDIT_ROUND:
        return say(calls={"edit": CHANGE} if prompt.results else {"read": {"file_path": "parser.py"}})
    if prompt.results:
        return "It says that the cat sat on the mat."
    if "read" in prompt.last_text:
        return say("I read it.", calls={"read": {"file_path": "cat.txt"}})
    return ANSWER


def is_idle(stage: Stage) -> bool:
    return stage.is_drawn and "opus-5-5" in stage.shown and "working" not in stage.shown


def draw_answer(place: Place, columns: int) -> str:
    with place.chat(columns=columns, TERM="xterm-256color") as stage:
        stage.enter("read the cat")
        stage.wait_for("It says that")
        stage.wait_until(lambda: is_idle(stage), "the turn is over")
        stage.enter("how does the parser work?")
        stage.wait_for("return line.split")
        stage.wait_until(lambda: is_idle(stage), "the turn is over")
        return draw_screen(stage, place)


def draw_question(place: Place, columns: int, palette: Palette = DARK, background: str = "15;0") -> str:
    (place.project / "parser.py").write_text(PROGRAM, encoding="utf-8")
    with place.chat(columns=columns, TERM="xterm-256color", COLORFGBG=background) as stage:
        stage.enter("split at semicolons")
        stage.wait_for("yes")
        stage.wait_until(lambda: stage.is_drawn and 'split(";")' in stage.shown, "it is asked")
        return draw_screen(stage, place, palette)


def draw_light(place: Place, columns: int) -> str:
    """On a light background, which the terminal names."""
    return draw_question(place, columns, LIGHT, background="0;15")


def draw_models(place: Place, columns: int) -> str:
    with place.chat(columns=columns, TERM="xterm-256color") as stage:
        stage.enter("/model")
        stage.wait_for("type to filter")
        stage.type("haiku")
        stage.wait_until(lambda: stage.is_drawn and "filter: haiku" in stage.shown, "it is filtered")
        return draw_screen(stage, place)


def draw_sessions(place: Place, columns: int) -> str:
    for asked in ("how does the parser work?", "read the cat"):
        place.run("chat", "-p", asked)
    with place.chat("--resume", columns=columns, TERM="xterm-256color") as stage:
        stage.wait_for("type to filter")
        stage.wait_until(lambda: stage.is_drawn and "read the cat" in stage.shown, "sessions are listed")
        return draw_screen(stage, place)


SCREENS = {
    "chat-answer": draw_answer,
    "chat-question": draw_question,
    "chat-light": draw_light,
    "chat-models": draw_models,
    "chat-sessions": draw_sessions,
}


def mask(text: str, place: Place) -> str:
    """The same for every run: ids, folders, clocks, and the bill, which grows with the system prompt."""
    text = text.replace(str(place.project), "/home/you/project")
    for pattern, fixed in MASKS:
        text = re.sub(pattern, fixed, text)
    text = _SESSION_ROW.sub(lambda row: f"{row[1]:<72}  2 min  $0.03  main", text)
    return re.sub(r"\$\d+\.\d+", "$0.03", text) if "% context" in text else text


def draw_screen(stage: Stage, place: Place, palette: Palette = DARK) -> str:
    """What stands on the screen, as SVG."""
    rows = [read_row(stage, at, palette) for at in range(len(stage.screen.display))]
    while rows and not "".join(part.text for part in rows[-1]).strip():
        rows.pop()
    height, width = ROW * len(rows) + 16, round(CHARACTER * len(stage.screen.display[0])) + 16
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">',
        f'<rect width="{width}" height="{height}" rx="6" fill="{palette.background}"/>',
        # Chromium collapses spaces in spite of `xml:space`; other viewers know that alone.
        "<style>text { white-space: pre }</style>",
        '<g font-family="monospace" font-size="14" xml:space="preserve">',
    ]
    for at, row in enumerate(rows):
        y, column = ROW * at + 8, 0
        for part in row:
            size = len(part.text)
            if part.ground:
                box = (
                    f'x="{8 + CHARACTER * column:.1f}" y="{y}" width="{CHARACTER * size:.1f}" height="{ROW}"'
                )
                lines.append(f'<rect {box} fill="{part.ground}"/>')
            column += size
        spans = "".join(_draw_part(part, mask(part.text, place)) for part in row)
        lines.append(f'<text x="8" y="{y + 14}">{spans}</text>')
    return "\n".join([*lines, "</g>", "</svg>", ""])


def _draw_part(part: Part, text: str) -> str:
    weight = ' font-weight="bold"' if part.is_bold else ""
    return f'<tspan fill="{part.colour}"{weight}>{escape(text)}</tspan>'


@dataclass(frozen=True, slots=True)
class Part:
    """Some characters of a row that look alike."""

    text: str
    colour: str
    ground: str
    """Empty where it is that of the screen."""
    is_bold: bool


def read_row(stage: Stage, at: int, palette: Palette) -> list[Part]:
    cells, found = stage.screen.buffer[at], list[Part]()
    for column in range(len(stage.screen.display[at].rstrip())):
        cell = cells[column]
        ground = "" if cell.bg == "default" else palette.find_colour(cell.bg)
        part = Part(cell.data, palette.find_colour(cell.fg), ground, cell.bold)
        last = found[-1] if found else None
        if last and last.ground == ground and (replace(last, text=part.text) == part or cell.data == " "):
            found[-1] = replace(last, text=last.text + cell.data)
        else:
            found.append(part)
    return found


def draw_all(columns: int = 100) -> dict[str, str]:
    drawn: dict[str, str] = {}
    for name, draw in SCREENS.items():
        with tempfile.TemporaryDirectory() as folder, Simulator(brain) as sim:
            drawn[name] = draw(Place(Path(folder), sim), columns)
    return drawn


def find_differences(drawn: dict[str, str]) -> list[str]:
    """Names of the pictures that are not as they were drawn."""
    return [
        name
        for name, text in drawn.items()
        if not (path := IMAGES / f"{name}.svg").is_file() or path.read_text(encoding="utf-8") != text
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing, and fail where a picture is old"
    )
    options = parser.parse_args(arguments)
    drawn = draw_all()
    if options.check:
        old = find_differences(drawn)
        print("\n".join(f"{name} is not as it is drawn now" for name in old) or "all pictures are up to date")
        return int(bool(old))
    for name, text in drawn.items():
        (IMAGES / f"{name}.svg").write_text(text, encoding="utf-8")
        print(f"{name}.svg  {len(text):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
