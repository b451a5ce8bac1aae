"""A page in a window of a real browser. `conftest.py` opens it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from sevenfold.replay.report import ReplayReport

CHROMIUM = shutil.which("chromium")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
PHONE, DESKTOP = 360, 1280
PATIENCE_MS = 30_000
"""For a busy machine; nothing is judged by it."""

Scheme: TypeAlias = Literal["light", "dark"]


@dataclass(slots=True)
class Opened:
    """A page, and all that it did behind our back."""

    page: Page
    requests: list[str] = field(default_factory=list[str])
    complaints: list[str] = field(default_factory=list[str])

    def __getitem__(self, selector: str) -> Locator:
        return self.page.locator(selector)

    def texts(self, selector: str) -> list[str]:
        return self.page.locator(selector).all_inner_texts()

    def expect_text(self, selector: str, text: str) -> None:
        """It is there, or comes to be there."""
        from playwright.sync_api import expect

        expect(self[selector]).to_contain_text(text)

    def expect_hidden(self, selector: str) -> None:
        from playwright.sync_api import expect

        expect(self[selector]).to_be_hidden()

    def expect_sound(self) -> None:
        """No figure on the page is the wreck of a sum."""
        shown = self["body"].inner_text()
        assert "Sevenfold" in shown
        assert not [wreck for wreck in ("NaN", "undefined", "Infinity", "[object") if wreck in shown]


class Open(Protocol):
    def __call__(
        self, report: ReplayReport, width: int = DESKTOP, scheme: Scheme = "light", *, touch: bool = False
    ) -> Opened:
        """Open the page of this report."""
        ...
