"""The usage is read from a response in any pieces, and whatever else comes does no harm."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.proxy.requests import WireFormat
from sevenfold.proxy.responses import UsageReader

SSE = {"content-type": "text/event-stream"}
START = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 7, "output_tokens": 1}}}
DELTA = {"type": "message_delta", "usage": {"output_tokens": 40, "cache_read_input_tokens": None}}


def events(*values: object) -> bytes:
    return b"".join(b"event: x\r\ndata: " + json.dumps(value).encode() + b"\r\n\r\n" for value in values)


def test_a_line_in_very_many_pieces_costs_no_more_than_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """What came before is not copied and not looked through again with each piece."""
    looked: list[int] = []

    class Kept(bytearray):
        def __iadd__(self, other: object) -> Kept:
            looked.append(len(other) if isinstance(other, bytes) else 0)
            self.extend(other if isinstance(other, bytes) else b"")
            return self

        def split(self, sep: Any = None, maxsplit: Any = -1) -> list[bytearray]:
            raise AssertionError("all that was kept is looked through")

    reader = UsageReader("messages", SSE)
    monkeypatch.setattr(reader, "_waiting", Kept())
    for _ in range(1_000):
        reader.feed(b"x" * 10)
    reader.feed(b"\n" + events(DELTA))
    assert sum(looked) == 10_000
    usage = reader.read_usage()
    assert usage is not None
    assert usage.output == 40


@given(st.lists(st.integers(1, 60), max_size=20), st.booleans())
def test_pieces_do_not_matter(sizes: list[int], is_packed: bool) -> None:
    data = events(START, {"type": "ping"}, DELTA)
    headers = {**SSE, **({"content-encoding": "gzip"} if is_packed else {})}
    data = gzip.compress(data) if is_packed else data
    reader, at = UsageReader("messages", headers), 0
    for size in [*sizes, len(data)]:
        reader.feed(data[at : at + size])
        at += size
    usage = reader.read_usage()
    assert usage is not None
    assert (usage.fresh, usage.output, reader.model) == (7, 40, "m")


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        ("chat", {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}),
        (
            "responses",
            {"type": "response.completed", "response": {"usage": {"input_tokens": 9, "output_tokens": 2}}},
        ),
    ],
)
def test_openai_names_its_counts_otherwise(wire: WireFormat, body: object) -> None:
    for headers, data in ((SSE, events({"id": "x"}, body)), ({}, json.dumps(body).encode())):
        reader = UsageReader(wire, headers)
        reader.feed(data)
        usage = reader.read_usage()
        assert usage is not None
        assert (usage.fresh, usage.output) == (9, 2)


@pytest.mark.parametrize(
    "data", [b"", b"<html>", b'data: {"usage": [\n', b'data: {"usage": {"x": -1}}\n', b"[1]"]
)
@pytest.mark.parametrize("headers", [SSE, {}, {"content-encoding": "br"}, {"content-encoding": "gzip"}])
def test_what_cannot_be_read_names_no_usage(data: bytes, headers: dict[str, str]) -> None:
    reader = UsageReader("messages", headers)
    reader.feed(data)
    assert reader.read_usage() is None
