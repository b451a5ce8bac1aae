"""Text that tells a terminal what to do, through every way that a command prints and at a real terminal.

A terminal obeys OSC 52 (it fills the clipboard), titles, links that show another address, clearing, and
requests that it answers as if somebody had typed. None may come through; our own colours may.
"""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

from sevenfold.agent.tui.render.markdown_stream import CodeBlock, MarkdownStream
from sevenfold.agent.tui.text_renderer import TextRenderer
from sevenfold.cli.screen import Screen, TableCell
from sevenfold.testing import Simulator
from tests.torture.rig import Orders, Outcome, outcome

PIECES = (
    *("\x1b]52;c;ZXZpbA==\x07", "\x1b]0;title\x07", "\x1b[2J", "\x1b[H", "\x1b[6n", "\x1b[?1049h", "\x1bc"),
    *("\x1b]8;;https://evil.example\x1b\\", "\x9d52;c;ZXZpbA==\x9c", "\x9b2J", "\x90$q q\x9c", "\x1b[8m"),
    *("\r", "\x08", "\x0b", "\x0c", "\x7f", "\x00", "\x07", "\x0e", "\x05", "\t", "\n", "\u2028", "\u202e"),
    *(
        "\u200b",
        "\ufeff",
        "\U000e0041",
        "\ud800",
        "&#27;[2J",
        "&#x9b;2J",
        "**",
        "`",
        "# ",
        "| ",
        "~~~",
        "word",
    ),
)
PAINT = re.compile(r"\x1b\[[0-9;]*m")
SHOWN_TOO = re.compile(r"\r(?=[^\r\n]*\x1b\[K)|\x1b\[K|\r\n|[\n\u3000\xa0]")
"""Ours: the progress line, and the ends of lines that a terminal makes of ours."""


def make_text(random: Random) -> str:
    return "before " + "".join(random.choice(PIECES) for _ in range(random.randint(1, 12))) + " after"


def find_obeyed(shown: str) -> str:
    """The first thing that a terminal would act on; empty: there is none."""
    plain = SHOWN_TOO.sub("", PAINT.sub("", shown))
    return next((repr(sign) for sign in plain if not sign.isprintable()), "")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def _terminal() -> Generator[_Terminal]:
    before, made = (sys.stdout, sys.stderr), _Terminal()
    sys.stdout = sys.stderr = made
    try:
        yield made
    finally:
        sys.stdout, sys.stderr = before


def _show_all(text: str) -> Mapping[str, str]:
    """The text by every way there is."""
    screen, renderer = Screen(), TextRenderer(60, has_colour=True)
    ways = {
        "line": lambda: screen.show_line(text, "warning"),
        "table": lambda: screen.show_table([[TableCell(text), TableCell(text)]]),
        "answer": lambda: screen.show_text(text),
        "json": lambda: screen.show_json({text: text}),
        "note": lambda: screen.note(text),
        "error": lambda: screen.fail(text),
        "bug": lambda: screen.report_bug(ValueError(text)),
        "progress": lambda: screen.show_progress(text, 0.5),
    }
    shown: dict[str, str] = {}
    for name, way in ways.items():
        with _terminal() as terminal:
            way()
        shown[name] = terminal.getvalue()
    stream = MarkdownStream()
    blocks = [*stream.feed(text), *stream.end(), CodeBlock(text, text)]
    return {
        **shown,
        "markdown": "\n".join(map(renderer.markdown, blocks)),
        "diff": renderer.diff(f"+{text}", 9),
    }


def run_terminal(orders: Orders) -> list[Outcome]:
    return [_run_ways(orders), _run_commands(orders)]


def _run_ways(orders: Orders) -> Outcome:
    cases, random = orders.pick(40, 300, 20_000), orders.random("terminal")
    with outcome("terminal escapes", "texts") as found:
        for number in range(cases):
            text = make_text(random)
            for way, shown in _show_all(text).items():
                if obeyed := find_obeyed(shown):
                    found.wrong(f"{way} passes {obeyed} of {text!r}")
            found.count += 1
            orders.progress("terminal", number + 1, cases, "texts")
    return found


def _run_commands(orders: Orders) -> Outcome:
    """Real commands at a real terminal: an answer of a model, and a repository whose names are attacks."""
    cases, random = orders.pick(1, 1, 20), orders.random("commands")
    with outcome("escapes at a terminal", "commands") as found:
        for number in range(cases):
            text = make_text(random).replace("\x00", "").replace("\ud800", "")
            with orders.scratch("terminal") as place, Simulator(lambda _prompt, text=text: text) as sim:
                environ = _plant(place, text, sim.url)
                for words in COMMANDS if orders.size == "long" else COMMANDS[:4]:
                    shown = run_at_terminal([*words], place / "project", environ)
                    if obeyed := find_obeyed(shown):
                        found.wrong(
                            f"sevenfold {' '.join(words)} passes {obeyed} of {text!r}: {shown!r:.300}"
                        )
                    if words[0] == "chat" and "after" not in shown:
                        found.wrong(f"sevenfold {' '.join(words)} shows no answer: {shown!r:.300}")
                    found.count += 1
            orders.progress("commands", number + 1, cases, "texts")
    return found


COMMANDS = (
    ("chat", "-p", "hello"),
    ("doctor",),
    ("settings", "--project", "."),
    ("stats",),
    ("chat", "-p", "hello", "--output", "stream-json"),
    ("context",),
    ("memory", "list"),
    ("recall", "hello"),
)


def _plant(place: Path, text: str, base_url: str) -> dict[str, str]:
    project, home = place / "project", place / "home"
    (project / ".sevenfold").mkdir(parents=True)
    home.mkdir()
    hooks = {"hooks": {text: [], "Stop": [{"hooks": [{"command": text, "timeout": text}]}]}}
    (project / ".sevenfold/hooks.json").write_text(json.dumps(hooks))
    (project / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"x": {"command": text.strip(), "args": []}}})
    )
    (project / ".sevenfold/settings.toml").write_text(
        f"[cache]\n{json.dumps('x' + text)} = {json.dumps(text)}\n"
    )
    (project / "AGENTS.md").write_text(text)
    with suppress(OSError):
        (project / text.replace("/", "")[:60]).write_text(text)
    return {
        "HOME": str(home),
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "TERM": "xterm",
        "LANG": "C.UTF-8",
        "ANTHROPIC_BASE_URL": base_url,
        "ANTHROPIC_API_KEY": "k",
        "SEVENFOLD_RECALL_SIDE_QUERY": "off",
    }


def run_at_terminal(words: list[str], cwd: Path, environ: Mapping[str, str]) -> str:
    """All that a command writes to the terminal it runs at."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "sevenfold", *words]
    with subprocess.Popen(
        command, cwd=cwd, env=dict(environ), stdin=subprocess.DEVNULL, stdout=slave, stderr=slave
    ) as process:
        os.close(slave)
        shown = bytearray()
        with suppress(OSError):  # how Linux says that nobody holds the other end any more
            while part := os.read(master, 65_536):
                shown += part
        process.wait()
    os.close(master)
    return shown.decode("utf-8", "replace")
