from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sevenfold.core.canonical import (
    EMPTY_DIGEST,
    Digest,
    block_bytes,
    canonical_bytes,
    chain_digest,
    digest,
    find_cache_control,
    strip_cache_control,
)
from sevenfold.core.json import freeze, read_json
from sevenfold.core.messages import Message, Text, read_message, write_block, write_message
from tests.core import wires

GOLDEN = Path(__file__).parent / "golden" / "canonical.json"
CASES = cast("list[dict[str, str]]", json.loads(GOLDEN.read_text(encoding="ascii")))
MARKER = {"type": "ephemeral"}

conversations = st.lists(wires.messages, max_size=4)


def prefix_digests(messages: Iterable[Message], start: Digest = EMPTY_DIGEST) -> Iterator[Digest]:
    """The chained hash after each block; the split into messages and their own fields do not count."""
    current = start
    for message in messages:
        for block in message.blocks:
            current = chain_digest(current, block_bytes(message.role, write_block(block)))
            yield current


def digests(conversation: list[wires.Wire]) -> list[str]:
    return list(prefix_digests(read_message(wire) for wire in conversation))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["about"])
def test_canonical_bytes_are_what_they_always_were(case: dict[str, str]) -> None:
    assert canonical_bytes(read_json(case["wire"])) == case["canonical"].encode()
    assert canonical_bytes(write_message(read_message(read_json(case["wire"])))) == case["canonical"].encode()


def test_chained_digests_are_what_they_always_were() -> None:
    current = EMPTY_DIGEST
    for case in CASES:
        message = read_message(read_json(case["wire"]))
        steps = cast("list[dict[str, str]]", case["blocks"])
        made = [block_bytes(message.role, write_block(block)) for block in message.blocks]
        assert made == [step["bytes"].encode() for step in steps], case["about"]
        for step, after in zip(steps, prefix_digests([message], current), strict=True):
            assert after == step["digest"], case["about"]
            # The rule itself, so that the file cannot drift together with the code.
            assert after == hashlib.sha256(f"{current}\n{step['bytes']}".encode()).hexdigest()
            current = after


@pytest.mark.parametrize(
    "kind",
    [*wires.KNOWN, "server_tool_use", "cache_control", "\\\\ud83d"],
)
def test_the_golden_file_covers(kind: str) -> None:
    assert kind in GOLDEN.read_text(encoding="ascii")


@given(wires.anything)
def test_canonical_bytes_read_back_to_the_same_bytes(value: object) -> None:
    assert canonical_bytes(read_json(canonical_bytes(value))) == canonical_bytes(value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_canonical_bytes_of_plain_values_are_sorted_compact_json(value: object) -> None:
    assert (
        canonical_bytes(value)
        == json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    )


@given(conversations, st.data())
def test_feeding_only_the_new_messages_gives_the_same_digests(
    conversation: list[wires.Wire], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(conversation)))
    messages = [read_message(wire) for wire in conversation]
    whole = list(prefix_digests(messages))
    first = list(prefix_digests(messages[:cut]))
    rest = list(prefix_digests(messages[cut:], first[-1] if first else EMPTY_DIGEST))
    assert first + rest == whole


def marked(conversation: list[wires.Wire], data: st.DataObject) -> list[wires.Wire]:
    """The same conversation with its cache markers anywhere else, on blocks and on what they hold."""
    moved = deepcopy(conversation)
    for message in moved:
        _mark(message["content"], data)
    return moved


def _mark(holder: object, data: st.DataObject) -> None:
    if not isinstance(holder, list):
        return
    for block in cast("list[object]", holder):
        if not isinstance(block, dict):
            continue
        wire = cast("wires.Wire", block)
        wire.pop("cache_control", None)
        if data.draw(st.booleans()):
            wire["cache_control"] = data.draw(wires.markers)
        _mark(wire.get("content"), data)
        source = wire.get("source")
        if isinstance(source, dict):
            _mark(cast("wires.Wire", source).get("content"), data)


@given(conversations, st.data())
def test_moving_a_cache_marker_never_changes_a_digest(
    conversation: list[wires.Wire], data: st.DataObject
) -> None:
    assert digests(marked(conversation, data)) == digests(conversation)


@given(conversations, conversations)
def test_digests_are_equal_exactly_when_the_unmarked_blocks_are(
    one: list[wires.Wire], other: list[wires.Wire]
) -> None:
    def content(conversation: list[wires.Wire]) -> list[bytes]:
        messages = [read_message(wire) for wire in conversation]
        pairs = [(message.role, write_block(block)) for message in messages for block in message.blocks]
        return [canonical_bytes([role, strip_cache_control(freeze(block))]) for role, block in pairs]

    assert (digests(one) == digests(other)) == (content(one) == content(other))


def change_somewhere(value: object, data: st.DataObject) -> object:
    """The value with one scalar in it changed, or one field more; never a cache marker."""
    if isinstance(value, dict):
        wire = cast("wires.Wire", value)
        names = [name for name in wire if name != "cache_control"]
        if not names or data.draw(st.booleans()):
            return {**wire, "a field more": 1}
        name = data.draw(st.sampled_from(names))
        return {**wire, name: change_somewhere(wire[name], data)}
    if isinstance(value, list):
        items = cast("list[object]", value)
        if not items:
            return ["an item more"]
        index = data.draw(st.integers(0, len(items) - 1))
        return [*items[:index], change_somewhere(items[index], data), *items[index + 1 :]]
    return ["was", value]


@given(st.lists(wires.blocks, min_size=1, max_size=4), st.data())
def test_any_other_change_changes_every_digest_from_there_on(
    blocks: list[wires.Wire], data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(blocks) - 1))
    changed = [*blocks[:index], change_somewhere(blocks[index], data), *blocks[index + 1 :]]
    before = digests([{"role": "user", "content": blocks}])
    after = digests([{"role": "user", "content": changed}])
    assert after[:index] == before[:index]
    assert not set(after[index:]) & set(before)


@pytest.mark.parametrize("role", ["assistant", "system"])
def test_the_role_is_part_of_a_digest(role: str) -> None:
    assert digests([{"role": role, "content": "a"}]) != digests([{"role": "user", "content": "a"}])


def test_how_blocks_are_split_into_messages_of_one_role_is_no_part_of_a_digest() -> None:
    together = Message("user", (Text("a"), Text("b")))
    assert list(prefix_digests([together])) == list(
        prefix_digests([Message("user", "a"), Message("user", "b")])
    )


def test_a_key_named_like_a_marker_is_kept_where_it_is_somebody_elses() -> None:
    tool = {"name": "n", "cache_control": MARKER, "input_schema": {"properties": {"cache_control": MARKER}}}
    call = {"type": "tool_use", "input": {"cache_control": 1, "content": [{"cache_control": 2}]}}
    assert strip_cache_control(freeze(tool)) == freeze({"name": "n", "input_schema": tool["input_schema"]})
    assert strip_cache_control(freeze([call])) == freeze([call])
    assert strip_cache_control("text") == "text"


def test_order_and_length_are_part_of_a_chain() -> None:
    ab = chain_digest(chain_digest(EMPTY_DIGEST, b"a"), b"b")
    assert ab != chain_digest(chain_digest(EMPTY_DIGEST, b"b"), b"a")
    assert ab != chain_digest(EMPTY_DIGEST, b"ab")
    assert chain_digest(EMPTY_DIGEST, b"a") != digest(b"a")


def test_the_last_breakpoint_of_a_block_is_found_its_own_first() -> None:
    first, last = freeze({"type": "ephemeral"}), freeze({"type": "ephemeral", "ttl": "1h"})
    inside = [
        {"type": "text", "cache_control": first},
        {"type": "text", "cache_control": last},
        {"type": "x"},
    ]
    assert find_cache_control(freeze({"type": "x", "content": inside})) == last
    assert find_cache_control(freeze({"type": "x", "content": inside, "cache_control": first})) == first
    assert find_cache_control(freeze({"type": "document", "source": {"content": inside[:1]}})) == first
    assert find_cache_control(freeze([])) is None
    for nothing in ({"type": "x"}, {"content": "text"}, {"content": [{"type": "x"}]}, {"source": "url"}):
        assert find_cache_control(freeze(nothing)) is None
