"""A session at one width: what is looked for is shown whole, and stays in scrollback."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from tests.stories.stage import Stage

WIDTHS = pytest.mark.parametrize("columns", [40, 60, 100, 160])


def flatten(text: str) -> str:
    """Lines joined at their breaks: a word that was torn at one stays torn."""
    return " ".join(text.replace("│", " ").split())


def wait_for_input(stage: Stage, text: str) -> None:
    """Until this is typed in, in the input with the status line below it: not what was sent before."""

    def is_there() -> bool:
        typed, _, below = stage.shown.rpartition("›")[2].partition("\n")
        has_status = re.search(r"\$\d+\.\d\d", below) is not None and "interrupted" not in below
        return stage.is_drawn and has_status and typed.strip() == text

    stage.wait_until(is_there, f"{text!r} is in the input")


@dataclass(slots=True)
class Walk:
    """A session at one width, and all that was seen in it for good."""

    stage: Stage
    columns: int
    seen: list[str]
    mark: int = 0
    """Where in the text the last command began: what it prints comes after."""

    def see(self, *texts: str) -> None:
        """Until each is shown after what was typed last."""
        for text in texts:
            self.stage.wait_until(
                lambda text=text: text in flatten(self.stage.everything[self.mark :]),
                f"{text!r} is whole at {self.columns} columns",
            )
            self.seen.append(text)

    def see_now(self, text: str) -> None:
        """Until it stands on the screen, where it may be drawn over later."""
        self.stage.wait_until(
            lambda: text in flatten(self.stage.shown), f"{text!r} is on the screen at {self.columns} columns"
        )

    def rest(self) -> None:
        self.stage.wait_until(
            lambda: (
                self.stage.is_drawn
                # Where there is little room, the status line is without the model.
                and re.search(r"\$\d+\.\d\d", self.stage.shown.rpartition("›")[2]) is not None
                and "working" not in self.stage.shown
                and self.stage.shown.rpartition("›")[2].split("\n")[0].strip() == ""
            ),
            "nothing is going on and the input is empty",
        )

    def enter(self, typed: str, *texts: str) -> None:
        self.mark = len(self.stage.everything.rpartition("\n›")[0])
        self.stage.enter(typed)
        self.see(*texts)
        self.rest()

    def check_end(self, typed: str = "/quit\r") -> None:
        """Leave: all that was seen is in scrollback, and no line is too wide."""
        self.stage.type(typed)
        assert self.stage.wait_for_end() == 0
        whole = flatten(self.stage.everything)
        assert [text for text in self.seen if text not in whole] == [], "nothing is lost from scrollback"
        assert max(map(len, self.stage.everything.splitlines())) <= self.columns
