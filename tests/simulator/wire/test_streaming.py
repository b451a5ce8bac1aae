"""Streams: their events, and what happens when they break."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import anthropic
import httpx2
import pytest
from anthropic import Anthropic
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.json import Json, JsonObject, freeze, read_json, read_object
from sevenfold.core.messages import Text, Thinking
from sevenfold.simulator.wire.answer import iter_stream_events, render_sse
from sevenfold.testing import DropFault, Reply, Simulator, SlowFault, StreamFault, call_tool
from tests.simulator.asking import MARK, MODEL, PROSE, Asker, stream, text, user

RICH = Reply(
    (
        Thinking("Hmm, what could it be?"),
        Text("I will look at it."),
        call_tool("look", {"at": "it", "n": [1]}),
    )
)
BINDING = "thinking-binding-controls-2026-08-01"


def inside(event: JsonObject, *path: str) -> Json:
    value: Json = event
    for step in path:
        value = value.get(step) if isinstance(value, JsonObject) else None
    return value


def kinds(events: list[JsonObject]) -> list[Json]:
    return [event["type"] for event in events]


def deltas(events: list[JsonObject], index: int) -> list[JsonObject]:
    found = [event for event in events if event["type"] == "content_block_delta" and event["index"] == index]
    return [delta for event in found if isinstance(delta := event["delta"], JsonObject)]


@pytest.mark.rule("streaming-1")
@pytest.mark.rule("streaming-2")
def test_events_come_in_order_and_under_their_names(ask: Asker) -> None:
    ask.sim.reset(lambda _: RICH)
    found = kinds(stream(ask, "Hi", thinking={"type": "adaptive", "display": "summarized"}))
    outline = [kind for kind in found if kind != "content_block_delta"]
    blocks = ["content_block_start", "content_block_stop"] * 3
    assert outline == ["message_start", "ping", *blocks, "message_delta", "message_stop"]
    assert found[3] == "content_block_delta"


@pytest.mark.rule("streaming-3")
def test_a_stream_begins_with_what_is_known(ask: Asker) -> None:
    said = user(text(PROSE, cache_control=MARK))
    written = ask.create(said).usage.written_5m
    start, *_ = stream(ask, said)
    assert inside(start, "message", "content") == ()
    assert inside(start, "message", "stop_reason") is None
    assert inside(start, "message", "usage", "cache_read_input_tokens") == written
    assert inside(start, "message", "usage", "output_tokens") == 1


@pytest.mark.rule("streaming-4")
def test_a_stream_ends_with_the_reason_and_the_bill(ask: Asker) -> None:
    whole = ask.create(PROSE)
    delta = stream(ask, PROSE)[-2]
    assert inside(delta, "delta", "stop_reason") == "end_turn"
    for key in ("input_tokens", "output_tokens", "cache_read_input_tokens"):
        assert inside(delta, "usage", key) == whole.at("usage", key)


@pytest.mark.rule("streaming-5")
def test_text_comes_in_pieces(ask: Asker) -> None:
    pieces = deltas(stream(ask, PROSE[:200]), 0)
    assert {piece["type"] for piece in pieces} == {"text_delta"}
    assert "".join(str(piece["text"]) for piece in pieces) == PROSE[:200]
    assert len(pieces) > 3


@pytest.mark.rule("streaming-6")
def test_a_tools_input_comes_as_json_in_pieces(ask: Asker) -> None:
    given = {"at": PROSE[:100], "n": [1, {"m": None}]}
    ask.sim.reset(lambda _: Reply((call_tool("look", given), call_tool("walk", {}))))
    events = stream(ask, "Hi")
    start = next(event for event in events if event["type"] == "content_block_start")
    assert inside(start, "content_block", "input") == JsonObject()
    pieces = [str(piece["partial_json"]) for piece in deltas(events, 0)]
    assert len(pieces) > 2
    assert read_json("".join(pieces)) == freeze(given)
    assert deltas(events, 1) == []


@pytest.mark.rule("streaming-7")
@pytest.mark.parametrize("display", ["summarized", "omitted"])
def test_thinking_ends_with_its_signature(ask: Asker, display: str) -> None:
    ask.sim.reset(lambda _: RICH)
    pieces = deltas(stream(ask, "Hi", thinking={"type": "adaptive", "display": display}), 0)
    shown = "".join(str(piece["thinking"]) for piece in pieces[:-1])
    assert shown == ("Hmm, what could it be?" if display == "summarized" else "")
    assert [piece["type"] for piece in pieces].count("signature_delta") == 1
    assert pieces[-1]["type"] == "signature_delta"


@pytest.mark.rule("streaming-8")
def test_streamed_or_not_an_answer_is_the_same(sim: Simulator, client: Anthropic) -> None:
    sim.reset(lambda _: RICH)
    plain = client.messages.create(
        model="claude-opus-5-5", max_tokens=500, messages=[{"role": "user", "content": PROSE}]
    )
    with client.messages.stream(
        model="claude-opus-5-5", max_tokens=500, messages=[{"role": "user", "content": PROSE}]
    ) as streaming:
        final = streaming.get_final_message()
    streamed, whole = ([block.to_dict() for block in message.content[:2]] for message in (final, plain))
    assert streamed == whole
    assert final.stop_reason == plain.stop_reason == "tool_use"
    assert final.usage == plain.usage


@pytest.mark.rule("streaming-8")
def test_the_sdk_streams_text(sim: Simulator, client: Anthropic) -> None:
    with client.messages.stream(
        model=MODEL, max_tokens=500, messages=[{"role": "user", "content": PROSE[:300]}]
    ) as streaming:
        assert "".join(streaming.text_stream) == PROSE[:300]


@pytest.mark.rule("streaming-8")
def test_the_async_sdk_streams_text(sim: Simulator) -> None:
    async def read() -> str:
        async with (
            sim.async_client() as client,
            client.messages.stream(
                model=MODEL, max_tokens=500, messages=[{"role": "user", "content": PROSE[:300]}]
            ) as streaming,
        ):
            return "".join([piece async for piece in streaming.text_stream])

    assert asyncio.run(read()) == PROSE[:300]


@pytest.mark.rule("streaming-9")
def test_a_refused_stream_is_a_plain_error(sim: Simulator, client: Anthropic) -> None:
    with (
        pytest.raises(anthropic.BadRequestError) as caught,
        client.messages.stream(model=MODEL, max_tokens=10**7, messages=[{"role": "user", "content": "Hi"}]),
    ):
        pass
    assert caught.value.type == "invalid_request_error"


@pytest.mark.rule("streaming-10")
@pytest.mark.parametrize(("status", "kind"), [(529, "overloaded_error"), (500, "api_error")])
def test_an_error_in_mid_stream_surfaces_and_is_not_retried(
    sim: Simulator, patient: Anthropic, status: int, kind: str
) -> None:
    sim.fail(StreamFault(after_events=4, status=status))
    pieces: list[str] = []
    with (
        pytest.raises(anthropic.APIStatusError) as caught,
        patient.messages.stream(
            model=MODEL, max_tokens=500, messages=[{"role": "user", "content": PROSE[:300]}]
        ) as streaming,
    ):
        pieces.extend(streaming.text_stream)
    assert (caught.value.status_code, caught.value.type) == (200, kind)
    assert "".join(pieces) == PROSE[:32]
    assert len(sim.ledger.entries) == 1
    assert sim.last.fault == "StreamFault"


@pytest.mark.rule("streaming-11")
def test_a_dropped_stream_surfaces(sim: Simulator, patient: Anthropic) -> None:
    sim.fail(DropFault(after_events=4))
    with (
        pytest.raises((anthropic.APIConnectionError, httpx2.RemoteProtocolError)),
        patient.messages.stream(
            model=MODEL, max_tokens=500, messages=[{"role": "user", "content": PROSE[:300]}]
        ) as streaming,
    ):
        list(streaming.text_stream)
    assert len(sim.ledger.entries) == 1


@pytest.mark.rule("streaming-11")
def test_a_dropped_answer_is_asked_for_again(sim: Simulator, patient: Anthropic) -> None:
    sim.fail(DropFault())
    message = patient.messages.create(
        model=MODEL, max_tokens=50, messages=[{"role": "user", "content": "Hi"}]
    )
    assert message.content
    assert [entry.fault for entry in sim.ledger.entries] == ["DropFault", None]


@pytest.mark.rule("streaming-12")
def test_what_is_known_at_the_start_and_what_at_the_end(ask: Asker) -> None:
    management = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    betas = f"{BINDING},context-management-2025-06-27"
    events = stream(
        ask, "Hi", betas=betas, context_management=management, diagnostics={"previous_message_id": "msg_x"}
    )
    start, end = events[0], events[-2]
    assert inside(start, "message", "input_transformations") == ()
    told = inside(start, "message", "diagnostics", "cache_miss_reason", "type")
    assert told == "previous_message_not_found"
    assert inside(start, "message", "context_management") is None
    assert inside(end, "context_management", "applied_edits") == ()


@pytest.mark.rule("streaming-13")
def test_a_compaction_is_streamed_whole(ask: Asker) -> None:
    fields: dict[str, object] = {"betas": "compact-2026-09-04", "compaction": {"type": "summarize"}}
    events = stream(ask, "Hi", **fields)
    start = next(event for event in events if event["type"] == "content_block_start")
    assert inside(start, "content_block", "signature")
    assert inside(start, "content_block", "content") is None
    (delta,) = deltas(events, 0)
    assert delta["type"] == "compaction_delta"
    assert str(delta["content"]).startswith("A conversation of 1 blocks.")
    assert inside(events[-2], "usage", "iterations")


@pytest.mark.rule("streaming-13")
def test_the_sdk_puts_a_streamed_compaction_together(sim: Simulator, client: Anthropic) -> None:
    with client.beta.messages.stream(
        model=MODEL,
        max_tokens=500,
        messages=[{"role": "user", "content": "Hi"}],
        betas=["compact-2026-09-04"],
        compaction={"type": "summarize"},
    ) as streaming:
        final = streaming.get_final_message()
    (block,) = final.content
    assert block.type == "compaction"
    assert block.signature
    resumed = client.beta.messages.create(
        model=MODEL,
        max_tokens=500,
        messages=[{"role": "assistant", "content": final.content}, {"role": "user", "content": "Go on."}],
        betas=["compact-2026-09-04"],
    )
    assert resumed.stop_reason == "end_turn"


@pytest.mark.rule("streaming-14")
def test_a_ping_means_nothing(sim: Simulator, client: Anthropic) -> None:
    with client.messages.create(
        model=MODEL, max_tokens=50, stream=True, messages=[{"role": "user", "content": "Hi"}]
    ) as raw:
        assert "ping" not in [event.type for event in raw]


def test_slow_tokens_run_into_a_clients_timeout(sim: Simulator) -> None:
    sim.fail(SlowFault(first=timedelta(seconds=30)), times=1)
    client = sim.client(max_retries=0, timeout=0.05)
    with pytest.raises(anthropic.APITimeoutError):
        client.messages.create(model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "Hi"}])


def _text(said: str) -> JsonObject:
    return JsonObject({"type": "text", "text": said})


def _thought(said: str, signature: str) -> JsonObject:
    return JsonObject({"type": "thinking", "thinking": said, "signature": signature})


def _request(given: dict[str, Json]) -> JsonObject:
    return JsonObject({"type": "tool_use", "id": "x", "name": "y", "input": JsonObject(given)})


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.text())
BLOCKS = st.one_of(
    st.builds(_text, st.text()),
    st.builds(_thought, st.text(), st.text(min_size=1)),
    st.builds(_request, st.dictionaries(st.text(), SCALARS)),
)


class Joined:
    """A reader of streams, written from the contract and not from the code."""

    def __init__(self) -> None:
        self.blocks: list[dict[str, Json]] = []
        self._spelt = ""

    def read(self, event: JsonObject) -> None:
        started, delta = event.get("content_block"), event.get("delta")
        if isinstance(started, JsonObject):
            self.blocks.append(dict(started))
            self._spelt = ""
        elif event["type"] == "content_block_delta" and isinstance(delta, JsonObject):
            for key, value in delta.without("type").items():
                if key == "partial_json":
                    self._spelt += str(value)
                else:
                    self.blocks[-1][key] = f"{self.blocks[-1][key]}{value}"
        elif event["type"] == "content_block_stop" and self._spelt:
            self.blocks[-1]["input"] = read_json(self._spelt)


@given(st.lists(BLOCKS, max_size=5))
def test_putting_a_stream_together_gives_the_message_back(blocks: list[JsonObject]) -> None:
    message = JsonObject({"id": "m", "content": tuple(blocks), "usage": JsonObject()})
    joined = Joined()
    for event in iter_stream_events(message):
        joined.read(read_object(render_sse(event).split(b"data: ", 1)[1]))
    assert [JsonObject(block) for block in joined.blocks] == blocks
