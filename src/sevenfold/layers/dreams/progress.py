"""The progress of a dream: its state, the files it touched, its last steps."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sevenfold.core.events import DreamProgressed, Emit

DreamState: TypeAlias = Literal["starting", "updating"]

_STEPS = 30
STEP_CHARS = 300


@dataclass(slots=True, kw_only=True)
class DreamProgress:
    dream: str
    emit: Emit
    state: DreamState = "starting"
    tools: int = 0
    touched: dict[str, None] = field(default_factory=dict[str, None])
    steps: deque[str] = field(default_factory=lambda: deque[str](maxlen=_STEPS))

    def step(self, text: str) -> None:
        said = " ".join(text.split())[:STEP_CHARS]
        self.steps.append(said)
        self.emit(
            DreamProgressed(
                dream=self.dream, state=self.state, step=said, tools=self.tools, touched=len(self.touched)
            )
        )

    def tool(self, said: str) -> None:
        self.tools += 1
        self.step(said)

    def touch(self, key: str) -> None:
        self.state = "updating"
        self.touched[key] = None
