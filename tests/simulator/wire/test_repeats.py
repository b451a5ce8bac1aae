"""Requests that repeat what came before: read by their bytes, and answered as if everything were new."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sevenfold.core.cache.prompt_cache import PromptPart, render_prompt
from sevenfold.core.errors import WireError
from sevenfold.core.json import Json, JsonObject, read_json, read_object
from sevenfold.core.prices import CATALOG
from sevenfold.simulator.exchange import MessagesExchange, MessagesResponse
from sevenfold.simulator.load_brain import EchoBrain
from sevenfold.simulator.simulator_state import SimulatorState, estimate_tokens, make_part_counter
from sevenfold.simulator.wire import message_cache
from sevenfold.simulator.wire.message_cache import BodyReader
from tests.examples import up_to
from tests.simulator.asking import NEWER, PROSE, Fields, assistant, blocks_of, result, text, tool, use, user

HEADERS = {"x-api-key": "k", "anthropic-version": NEWER}

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(["messages", "system", "tools", "model", "stream", ""])
BODIES = st.dictionaries(KEYS, VALUES | st.lists(VALUES, max_size=5), max_size=5)


@dataclass(frozen=True, slots=True)
class Spelling:
    """One of the ways to write the same JSON."""

    ascii: bool
    indent: int | None
    separators: tuple[str, str]

    def write(self, value: object) -> bytes:
        text = json.dumps(value, ensure_ascii=self.ascii, indent=self.indent, separators=self.separators)
        return text.encode("utf-8", "surrogatepass")


SPELLINGS = st.builds(
    Spelling,
    st.booleans(),
    st.none() | st.just(1),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", "\n:\r\n ")]),
)


def outcome(read: Callable[[bytes], Json], data: bytes) -> object:
    try:
        return read(data)
    except WireError as error:
        return str(error)


@given(st.lists(st.tuples(BODIES, SPELLINGS), min_size=1, max_size=4))
def test_a_body_is_read_as_any_json_is(sent: list[tuple[dict[str, object], Spelling]]) -> None:
    bodies = BodyReader()
    for body, spelling in [*sent, *sent]:
        data = spelling.write(body)
        assert outcome(bodies.read, data) == outcome(read_json, data)


@given(
    st.lists(VALUES, min_size=1, max_size=4),
    st.floats(0, 1),
    st.binary(max_size=2),
    st.integers(0, 3),
)
def test_a_body_that_is_damaged_is_refused_as_any_json_is(
    messages: list[object], where: float, junk: bytes, gone: int
) -> None:
    body = {"model": "m", "messages": messages, "max_tokens": 9}
    whole = Spelling(ascii=False, indent=None, separators=(",", ":")).write(body)
    bodies = BodyReader()
    bodies.read(whole)
    at = round(where * len(whole))
    broken = whole[:at] + junk + whole[at + gone :]
    assert outcome(bodies.read, broken) == outcome(read_json, broken)
    assert bodies.read(whole) == read_json(whole)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b'{"messages": []}',
        b'{"messages": [1, 2, 3]}',
        b'{"messages": [{"a": 1}], "messages": [{"b": 2}]}',
        b'{"messages": [{"a": 1}] , "n": 12}  ',
        b'{"messages": [{"a": 1},]}',
        b'{"messages": [{"a": NaN}]}',
        b'{"messages": [{"a": 1e999}], "n": -0.0}',
        b'{"messages": [{"a": "\\ud83d"}]}',
        b'{"messages": [{"a": "\xff"}]}',
        b'{"messages": [{"a": 1}]} x',
        b'\xef\xbb\xbf{"messages": [{"a": 1}]}',
        '{"messages": [{"a": "é"}]}'.encode("utf-16"),
        b'{"messages": [' + b"[" * 197 + b"]" * 197 + b"]}",
        b'{"messages": [' + b"[" * 199 + b"]" * 199 + b"]}",
        b'{"messages": [' + b"[" * 99_999 + b"]" * 99_999 + b"]}",
        b'{"messages": [{"a": "' + "é".encode() * 9_000 + b'"}, 1]}',
        b'{"n": 1' + b"0" * 9_000 + b"}",
    ],
    ids=range(20),
)
def test_odd_bodies_are_read_as_any_json_is(data: bytes) -> None:
    bodies = BodyReader()
    for _ in range(2):
        assert outcome(bodies.read, data) == outcome(read_json, data)


def messages_of(value: Json) -> tuple[Json, ...]:
    assert isinstance(value, JsonObject)
    messages = value["messages"]
    assert isinstance(messages, tuple)
    return messages


def test_what_came_before_is_the_same_object(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = BodyReader()
    said: list[object] = [user(f"{number} {PROSE}") for number in range(5)]

    def read(*messages: object) -> tuple[Json, ...]:
        return messages_of(bodies.read(json.dumps({"messages": messages}).encode()))

    first = read(*said)
    grown = read(*said, user("More."))
    branched = read(*said[:3], user("Less."), said[4])
    again = read(*said, user("More."))
    for one, other in ((first, grown), (first[:3], branched), (first[4:], branched[4:]), (grown, again)):
        assert all(before is after for before, after in zip(one, other, strict=False))
    monkeypatch.setattr(message_cache, "MAX_KEPT_BODY_BYTES", 0)
    assert read(*said)[0] is not first[0]
    assert bodies.generation == 1


def marked(message: object) -> Fields:
    blocks = [dict(block) for block in blocks_of(message)]
    return {
        **cast("Fields", message),
        "content": [*blocks[:-1], {**blocks[-1], "cache_control": {"type": "ephemeral"}}],
    }


@dataclass(slots=True)
class Talk:
    """A conversation that is changed step by step, as agents and people change theirs."""

    messages: list[Fields]
    fields: dict[str, object]
    rounds: int = 0

    def go_on(self, _: int) -> None:
        name = f"toolu_{self.rounds}"
        self.rounds += 1
        self.messages += [
            assistant("I look.", use(name, at=self.rounds)),
            user(result(name, PROSE[:99]), "So?"),
        ]

    def edit(self, at: int) -> None:
        self.messages[at % len(self.messages)] = user(f"Edited {at}.")

    def drop(self, at: int) -> None:
        if len(self.messages) > 1:
            del self.messages[at % len(self.messages)]

    def mark(self, at: int) -> None:
        at %= len(self.messages)
        self.messages[at] = marked(self.messages[at])

    def mark_all(self, _: int) -> None:
        self.fields["cache_control"] = {"type": "ephemeral"}

    def instruct(self, at: int) -> None:
        self.fields["system"] = f"Be {at}. {PROSE}"

    def equip(self, at: int) -> None:
        self.fields["tools"] = [tool(f"look_{number}") for number in range(at % 3 + 1)]

    def switch(self, at: int) -> None:
        self.fields["model"] = ("claude-opus-5", "claude-opus-5-5", "claude-haiku-4-5")[at % 3]

    def break_off(self, at: int) -> None:
        self.messages[at % len(self.messages)] = {"role": "user", "content": [{"type": "text"}]}

    def body(self) -> bytes:
        return json.dumps({"max_tokens": 99, **self.fields, "messages": self.messages}).encode()


STEPS = (
    *(Talk.go_on, Talk.go_on, Talk.go_on, Talk.edit, Talk.drop, Talk.mark, Talk.mark_all),
    *(Talk.instruct, Talk.equip, Talk.switch, Talk.break_off),
)


@settings(max_examples=up_to(60))
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9)), max_size=12))
def test_a_request_is_answered_as_if_nothing_were_known(
    steps: list[tuple[Callable[[Talk, int], None], int]],
) -> None:
    talk = Talk([user(PROSE)], {"model": "claude-opus-5", "tools": [tool()]})
    world = SimulatorState(brain=EchoBrain())

    async def serve(one: SimulatorState, data: bytes) -> MessagesResponse:
        return await MessagesExchange(one).serve("messages", HEADERS, data)

    for step, at in [(Talk.go_on, 0), *steps]:
        step(talk, at)
        data = talk.body()
        served, fresh = (asyncio.run(serve(one, data)) for one in (world, SimulatorState(brain=EchoBrain())))
        assert (served.status, served.body.get("content")) == (fresh.status, fresh.body.get("content"))
        if served.status == 200:
            latest = world.records.latest
            assert latest is not None
            body = read_object(data)
            count = make_part_counter(estimate_tokens, world.catalog.find(latest.sent.model))
            assert latest.sent == render_prompt(body, count)
            assert world.ledger.entries[-1].usage.prompt == latest.seen.tokens
        else:
            told = [one.body["error"] for one in (served, fresh)]
            assert told[0] == told[1]


def test_what_is_known_of_a_message_depends_on_the_circumstances() -> None:
    """Found in order under one version, a message is looked at again under another."""
    said = [user({**text("Hi"), "citations": [{"type": "x"}]})]
    data = json.dumps({"model": "claude-opus-5", "max_tokens": 9, "messages": said}).encode()
    world = SimulatorState(brain=EchoBrain())
    statuses = [
        asyncio.run(
            MessagesExchange(world).serve("messages", {**HEADERS, "anthropic-version": version}, data)
        ).status
        for version in ("2023-06-01", NEWER, "2023-06-01")
    ]
    assert statuses == [200, 400, 200]


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_cache, "MAX_CACHED_MESSAGES", 3)
    monkeypatch.setattr(message_cache, "MAX_CACHED_FRAMES", 2)
    world = SimulatorState(brain=EchoBrain())
    talk = Talk([user(PROSE)], {"model": "claude-opus-5-5", "tools": [tool()]})
    for number in range(6):
        talk.go_on(number)
        talk.instruct(number)
        served = asyncio.run(MessagesExchange(world).serve("messages", HEADERS, talk.body()))
        assert served.status == 200
        assert world.ledger.entries[-1].usage.prompt == sum(part.tokens for part in _fresh(talk.body()))


def _fresh(data: bytes) -> tuple[PromptPart, ...]:
    body = read_object(data)
    return render_prompt(body, make_part_counter(estimate_tokens, CATALOG.find(str(body["model"])))).parts
