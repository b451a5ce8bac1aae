"""The command lines that try to get out: as they were written down, and put together from parts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

CORPUS = Path(__file__).parent / "corpus"
TARGETS_EACH = 6
"""Of each verb. All of them with all targets would be five thousand lines that differ little."""
LINES_EACH = 6
"""That each wrapping is tried with."""

ENDLESS = ("no end", "too much of it", "processes that want to stay")


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    section: str

    @property
    def timeout_seconds(self) -> int:
        return 1 if self.section in ENDLESS else 4

    @property
    def is_bomb(self) -> bool:
        """It starts processes as fast as it can; once is enough for everybody on the machine."""
        return ":(){" in self.text or "while True: os.fork()" in self.text


def read_lines(name: str) -> Iterator[Line]:
    """The lines of one file, with the heading that they stand under."""
    section = name
    for text in (CORPUS / name).read_text(encoding="utf-8").splitlines():
        if text.startswith("## "):
            section = text[3:].partition(":")[0]
        elif text and not text.startswith("# "):
            yield Line(text.replace("⏎", "\n"), section)


def all_lines() -> list[Line]:
    """Every line there is, in an order that does not change."""
    plain = list(read_lines("shell_lines.txt"))
    targets = [line.text for line in read_lines("shell_targets.txt")]
    written: list[Line] = []
    for at, verb in enumerate(read_lines("shell_verbs.txt")):
        for step in range(TARGETS_EACH):
            target = targets[(at + step * 7) % len(targets)]
            written.append(Line(verb.text.replace("{t}", target), "verbs"))
    random = Random("wraps")
    short = [line for line in (*plain, *written) if line.section not in ENDLESS and "\n" not in line.text]
    wrapped = [
        Line(wrap.text.replace("{q}", shlex.quote(inner.text)).replace("{l}", inner.text), "wraps")
        for wrap in read_lines("shell_wraps.txt")
        for inner in random.sample(short, LINES_EACH)
    ]
    return [*plain, *written, *wrapped]
