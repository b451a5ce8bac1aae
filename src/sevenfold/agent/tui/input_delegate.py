"""What a terminal shows around its input, and whom its keys are for."""

from __future__ import annotations

from typing import Protocol

from sevenfold.agent.tui.text_renderer import TextRenderer


class InputDelegate(Protocol):
    """What stands around the input, and what its keys do."""

    def live(self, brush: TextRenderer) -> str:
        """What is still moving."""
        ...

    def question(self, brush: TextRenderer) -> str:
        """What is asked, while something is."""
        ...

    def status_line(self, columns: int) -> str: ...

    def interrupt(self, *, is_typed: bool) -> None:
        """Ctrl-C, with something in the input or nothing."""
        ...

    def unfold(self) -> None:
        """Ctrl-O."""
        ...
