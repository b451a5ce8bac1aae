"""Transcripts for tests of the index of sessions."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sevenfold.core.events import Event
from sevenfold.store.foreign.transcripts import find_transcripts
from sevenfold.store.session_index.finder import SessionHit, SessionQuery
from sevenfold.store.session_index.index import IndexUpdate, SessionIndex

DAY = datetime(2026, 11, 3, 10, tzinfo=UTC)


def line(role: str, content: object, *, session: str = "s1", minute: int = 0, **more: object) -> bytes:
    wire = {
        "type": role,
        "uuid": f"u{minute}",
        "parentUuid": None,
        "sessionId": session,
        "cwd": "/srv/app",
        "timestamp": (DAY + timedelta(minutes=minute)).isoformat(),
        "message": {"role": role, "content": content, "id": f"m{minute}", "model": "claude-opus-5-5"},
        **more,
    }
    return json.dumps(wire).encode() + b"\n"


class Machine:
    """A folder of transcripts, and the index over it."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / "transcripts"
        self.folder.mkdir()
        self.events: list[Event] = []
        self.index = SessionIndex.open(root / "home", emit=self.events.append)
        self._clock = 0

    def write(self, name: str, *lines: bytes) -> Path:
        path = self.folder / f"{name}.jsonl"
        with path.open("ab") as file:
            file.write(b"".join(lines))
        # Two writes within one tick of the file system's clock would look like none.
        self._clock += 1
        os.utime(path, ns=(self._clock, self._clock))
        return path

    def update(self) -> IndexUpdate:
        return self.index.update(find_transcripts([self.folder]).files)

    def search(self, text: str, **more: object) -> list[SessionHit]:
        return self.index.search(SessionQuery(text=text, **more))  # type: ignore[arg-type]

    def reopen(self) -> None:
        self.index.close()
        self.index = SessionIndex.open(self.root / "home", emit=self.events.append)
