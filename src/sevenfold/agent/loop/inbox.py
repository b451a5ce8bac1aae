"""What others say to an agent while it works: kept until its next round begins."""

from __future__ import annotations

import asyncio
from collections import deque

from sevenfold.core.messages import Message


class Inbox:
    """Messages in the order they came. Filled at any moment, emptied at the boundary of a round."""

    def __init__(self) -> None:
        self._waiting = deque[Message]()
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, note: Message) -> None:
        self._waiting.append(note)
        self._arrived.set()

    def take_all(self) -> list[Message]:
        taken = list(self._waiting)
        self._waiting.clear()
        self._arrived.clear()
        return taken

    async def wait(self) -> None:
        """Until there is something."""
        await self._arrived.wait()
