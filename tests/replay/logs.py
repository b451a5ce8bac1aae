"""Claude Code transcripts of a few lines, written for a test."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from tests.replay.steps import MODEL, START

Row = dict[str, object]


def row(kind: str, seconds: float, **more: object) -> Row:
    time = (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    return {"type": kind, "sessionId": "s1", "uuid": f"u{seconds}", "timestamp": time, **more}


def asked(text: str, seconds: float = 0, **more: object) -> Row:
    return row("user", seconds, message={"role": "user", "content": text}, **more)


def usage(fresh: int = 0, read: int = 0, written: int = 0, output: int = 0, *, hour: bool = False) -> Row:
    split = {
        "ephemeral_5m_input_tokens": 0 if hour else written,
        "ephemeral_1h_input_tokens": written if hour else 0,
    }
    return {
        "input_tokens": fresh,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "cache_creation": split,
        "output_tokens": output,
    }


def answered(
    call: str, bill: Row, *blocks: Row, seconds: float = 1, model: str = MODEL, **more: object
) -> list[Row]:
    """One line a block, the bill on each."""
    content = blocks or ({"type": "text", "text": "Done."},)
    return [
        row(
            "assistant",
            seconds + place / 10,
            message={"id": call, "model": model, "role": "assistant", "content": [block], "usage": bill},
            **more,
        )
        for place, block in enumerate(content)
    ]


def write_log(path: Path, *rows: Row | list[Row]) -> Path:
    flat = [item for each in rows for item in (each if isinstance(each, list) else [each])]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(item) + "\n" for item in flat), encoding="utf-8")
    return path
